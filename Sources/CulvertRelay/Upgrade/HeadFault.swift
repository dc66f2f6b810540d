/// Why bytes are not an HTTP/1.1 head (RFC 9112) as the relay's own server and client accept it.
package enum HeadFault: Error, Hashable, Sendable, CaseIterable {
    /// The first line is not of the form of a request or of a status.
    case startLine
    /// Another version than HTTP/1.0 or HTTP/1.1.
    case version
    /// A line ends in a bare CR or a bare LF.
    case lineEnding
    /// There is a NUL or another control character.
    case controlCharacter
    /// A field line has no colon, white space before it, no token as its name, or continues the last one.
    case field
    /// There is not exactly one Host field in HTTP/1.1.
    case host
    /// The request has a body; nothing here takes one.
    case body
    /// There are more than ``RelayLimits/headFields`` fields.
    case tooManyFields
    /// The head is longer than ``RelayLimits/head``.
    case tooLong

    /// The status of the answer to such a request; the connection is closed after it.
    package var status: Int {
        switch self {
        case .tooManyFields, .tooLong: 431
        case .body: 413
        case .version: 505
        case .startLine, .lineEnding, .controlCharacter, .field, .host: 400
        }
    }
}
