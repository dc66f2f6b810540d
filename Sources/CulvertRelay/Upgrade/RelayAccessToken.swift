import CulvertIdentity

/// What an operator shares with those who may use a relay. It never prints by accident.
package struct RelayAccessToken: Sendable {
    /// The token itself, for the wire.
    package let text: String

    /// The token that `text` is; nil when it is empty, longer than 512 characters or has other than visible ASCII, so
    /// that it cannot end a header field.
    package init?(_ text: String) {
        guard (1...RelayLimits.accessToken).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else { return nil }
        self.text = text
    }

    /// What a server compares, in constant time, and keeps.
    package var hash: TokenHash { TokenHash(ofText: text) }
}

extension RelayAccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Nothing of the token.
    package var description: String { "RelayAccessToken(<redacted>)" }
    /// Nothing of the token.
    package var debugDescription: String { description }
    /// No children, so that `dump` shows nothing either.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
