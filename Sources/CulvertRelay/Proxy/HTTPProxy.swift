import CulvertCore
import CulvertIdentity

/// An HTTP proxy that passes connections on by CONNECT.
package struct HTTPProxy: Sendable {
    /// The host name or address, without brackets.
    package let host: String
    /// The TCP port.
    package let port: UInt16
    /// How the user proves to be one of the proxy's; nil when the proxy lets everybody in.
    package let credentials: BasicCredentials?

    /// The port of a proxy whose URL names none: what curl takes (CURLOPT_PROXY(3)), not the port of the scheme.
    package static let defaultPort: UInt16 = 1080

    /// The proxy at `text`, which is `http://[USER:PASSWORD@]HOST[:PORT]`, with an optional `/` at the end; nil for
    /// anything else, other schemes included, and for user names that cannot be sent.
    init?(_ text: String) {
        guard let url = URLText(text), url.scheme == "http", let host = url.host, url.tail == "/", url.writtenPort != 0
        else { return nil }
        if let userInfo = url.userInfo {
            guard let credentials = BasicCredentials(userInfo: userInfo) else { return nil }
            self.credentials = credentials
        } else {
            credentials = nil
        }
        switch host {
        case .name(let name): self.host = name
        case .ip(let ip): self.host = ip.description
        }
        port = url.writtenPort ?? Self.defaultPort
    }
}

/// A user name and a password for the Basic scheme (RFC 7617). They never print by accident.
package struct BasicCredentials: Sendable {
    /// The value of a Proxy-Authorization field, for the wire.
    let fieldValue: String

    /// Reads `USER[:PASSWORD]`, each percent-encoded; nil when the encoding is wrong, or a part holds a control
    /// character, or the user name a colon, which the scheme has no way to carry.
    init?(userInfo: String) {
        let parts = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = PercentText.decode(parts[0]), let password = PercentText.decode(parts.dropFirst().first ?? ""),
            !user.contains(UInt8(ascii: ":")), (user + password).allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
        else { return nil }
        fieldValue = "Basic " + Base64.encode(user + [UInt8(ascii: ":")] + password)
    }
}

extension BasicCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Nothing of the credentials.
    package var description: String { "BasicCredentials(<redacted>)" }
    /// Nothing of the credentials.
    package var debugDescription: String { description }
    /// No children, so that `dump` shows nothing either.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
