/// The head of an HTTP/1 request, as far as the local gate needs to know it (RFC 9112 sections 2 to 5).
package struct HTTPHead: Hashable, Sendable {
    /// What the request line asks for (RFC 9112 section 3.2).
    package enum Target: Hashable, Sendable {
        /// `/path?query`, as sent.
        case origin(String)
        /// `http://authority/path`
        case absolute(Authority)
        /// `authority`, with CONNECT only.
        case authority(Authority)
        /// `*`, with OPTIONS only.
        case asterisk

        /// The authority that the target itself names.
        package var authority: Authority? {
            switch self {
            case .absolute(let authority), .authority(let authority): authority
            case .origin, .asterisk: nil
            }
        }
    }

    /// One field line.
    package struct Field: Hashable, Sendable {
        /// The name in lower case.
        package let name: String
        /// The value without the white space around it.
        package let value: [UInt8]
    }

    /// The method, as sent.
    package let method: String
    /// The target.
    package let target: Target
    /// The minor version: 0 for HTTP/1.0, otherwise 1 or more.
    package let minorVersion: Int
    /// The fields in their order.
    package let fields: [Field]
    /// The value of the Host field; nil only in HTTP/1.0.
    package let host: Authority?

    /// The values of every field called `name` (in lower case).
    package func values(of name: String) -> [[UInt8]] {
        fields.filter { $0.name == name }.map(\.value)
    }
}

/// Why bytes are not the head of an HTTP/1 request.
package enum HTTPHeadFault: Error, Hashable, Sendable, CaseIterable {
    /// The first line is not `method target HTTP/1.x`.
    case requestLine
    /// The request is of another major version.
    case version
    /// The client speaks HTTP/2 without having been asked to.
    case http2
    /// A line ends in a bare CR or a bare LF.
    case lineEnding
    /// There is a NUL or another control character.
    case controlCharacter
    /// A field line has no colon, or its name is not a token.
    case fieldName
    /// There is white space between a field's name and its colon.
    case whitespaceBeforeColon
    /// A line begins with white space: obsolete line folding.
    case lineFolding
    /// There is no Host field.
    case hostMissing
    /// There is more than one Host field.
    case hostRepeated
    /// The Host field is not an authority.
    case hostInvalid
    /// There are more than ``TunnelLimits/headFields`` fields.
    case tooManyFields
    /// The head is longer than ``TunnelLimits/head``.
    case tooLarge

    /// The answer that such a client gets.
    package var refusal: Refusal {
        switch self {
        case .tooManyFields, .tooLarge: .headTooLarge
        case .requestLine, .version, .http2, .lineEnding, .controlCharacter, .fieldName, .whitespaceBeforeColon,
            .lineFolding, .hostMissing, .hostRepeated, .hostInvalid:
            .badRequest
        }
    }
}
