import CulvertCore

/// What a frame is (RFC 6455 section 5.2).
package enum WebSocketOpcode: UInt8, CaseIterable, Sendable {
    /// More of a message that was begun.
    case continuation = 0x0
    /// A message of UTF-8 text.
    case text = 0x1
    /// A message of bytes.
    case binary = 0x2
    /// The connection ends.
    case close = 0x8
    /// Answer this.
    case ping = 0x9
    /// The answer.
    case pong = 0xa

    /// Whether it is about the connection: short, whole, and allowed between the parts of a message.
    package var isControl: Bool { rawValue & 0x8 != 0 }
}

/// Why a connection ends, in a Close frame (RFC 6455 section 7.4).
package struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable {
    /// The number on the wire.
    package let rawValue: UInt16

    /// The code of a number that may stand in a Close frame; nil for the others.
    package init?(rawValue: UInt16) {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: self.rawValue = rawValue
        default: return nil
        }
    }

    private init(known: UInt16) {
        rawValue = known
    }

    /// Done.
    package static let normal = WebSocketCloseCode(known: 1000)
    /// The end goes away, such as a relay that restarts.
    package static let goingAway = WebSocketCloseCode(known: 1001)
    /// The other side broke a rule of WebSocket or of the protocol inside.
    package static let protocolError = WebSocketCloseCode(known: 1002)
    /// Text where only bytes are understood.
    package static let unsupportedData = WebSocketCloseCode(known: 1003)
    /// Text that is not UTF-8.
    package static let invalidPayload = WebSocketCloseCode(known: 1007)
    /// The other side is not welcome.
    package static let policyViolation = WebSocketCloseCode(known: 1008)
    /// A message over the limit.
    package static let tooBig = WebSocketCloseCode(known: 1009)
}

/// Which rule of RFC 6455 the other side broke.
package enum WebSocketFault: Error, Hashable, Sendable, CaseIterable {
    /// A reserved bit is set, and no extension was agreed on (section 5.2).
    case reservedBits
    /// The opcode is reserved (section 5.2).
    case opcode
    /// A client's frame is not masked (section 5.1).
    case unmasked
    /// A server's frame is masked (section 5.1).
    case masked
    /// A length is not in its shortest form, or has its top bit set (section 5.2).
    case length
    /// A control frame comes in parts (section 5.5).
    case fragmentedControl
    /// A control frame has more than 125 bytes (section 5.5).
    case longControl
    /// A continuation with nothing to continue (section 5.4).
    case continuation
    /// A new message before the end of the last (section 5.4).
    case interrupted
    /// The message is longer than the limit.
    case tooBig
    /// The code of a Close frame is half or not allowed (section 7.4).
    case closeCode
    /// The reason of a Close frame is not UTF-8 (section 5.5.1).
    case closeReason

    /// The code to close the connection with.
    package var closeCode: WebSocketCloseCode {
        switch self {
        case .tooBig: .tooBig
        case .closeReason: .invalidPayload
        case .reservedBits, .opcode, .unmasked, .masked, .length, .fragmentedControl, .longControl, .continuation,
            .interrupted, .closeCode:
            .protocolError
        }
    }

    /// The error for those who wait.
    package var error: TransportError {
        switch self {
        case .tooBig:
            TransportError(.framing, "the relay connection got a WebSocket message that is too long")
        case .length, .closeCode, .closeReason:
            TransportError(.framing, "the relay connection got a malformed WebSocket frame")
        case .reservedBits, .opcode, .unmasked, .masked, .fragmentedControl, .longControl, .continuation, .interrupted:
            TransportError(.protocolViolation, "the other side of the relay connection breaks the rules of WebSocket")
        }
    }
}
