import CulvertCore

extension RelayFrame {
    /// The wire form: one WebSocket message.
    package var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.byte(type.rawValue)
        switch self {
        case .serverChallenge(let challenge):
            writer.append(challenge.bytes)
        case .clientAuth(let nodeID, let signature):
            writer.append(nodeID.bytes)
            writer.leb128(UInt64(signature.count))
            writer.append(signature)
        case .serverConfirmsAuth:
            break
        case .serverDeniesAuth(let reason):
            writer.leb128(UInt64(reason.utf8.count))
            writer.append(reason.utf8)
        case .endpointGone(let peer):
            writer.append(peer.bytes)
        case .ping(let payload), .pong(let payload):
            writer.bigEndian(payload)
        case .health(let text):
            writer.append(text.utf8)
        case .restarting(let restart):
            writer.bigEndian(Self.wireMilliseconds(restart.reconnectIn))
            writer.bigEndian(Self.wireMilliseconds(restart.tryFor))
        case .status(let status):
            writer.byte(status.rawValue)
        }
        return writer.bytes
    }

    private static func wireMilliseconds(_ duration: Duration) -> UInt32 {
        UInt32(clamping: duration.nanoseconds / 1_000_000)
    }
}

extension ByteWriter {
    fileprivate mutating func bigEndian(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.bigEndian) { append($0) }
    }
}
