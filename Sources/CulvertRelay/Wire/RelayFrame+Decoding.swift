import CulvertCore
import CulvertIdentity

/// A decoded frame. Datagrams lie in the buffer that was decoded and are valid as long as that is.
package enum RelayMessage {
    /// A frame without datagrams.
    case frame(RelayFrame)
    /// Datagrams.
    case datagrams(RelayDatagramView)

    /// Decodes one WebSocket message.
    ///
    /// - Throws: `framing` for a body that is too short, too long or malformed; `protocolViolation` for a type that is
    ///   unknown or that `rules` do not allow.
    package static func decode(
        _ bytes: UnsafeRawBufferPointer, under rules: RelayRules
    ) throws(TransportError) -> RelayMessage {
        guard let first = bytes.first else { throw TransportError(.framing, "the relay connection got an empty frame") }
        guard let type = RelayFrameType(rawValue: first) else {
            throw TransportError(.protocolViolation, "the relay connection got a frame of an unknown type")
        }
        guard rules.allow(type) else {
            throw TransportError(.protocolViolation, "the relay connection got a frame that is not allowed there")
        }
        let body = UnsafeRawBufferPointer(rebasing: bytes[1...])
        guard body.count <= RelayLimits.frameBody else {
            throw TransportError(.framing, "the relay connection got a frame that is too long")
        }
        switch type {
        case .clientToRelayDatagram, .relayToClientDatagram, .clientToRelayDatagramBatch, .relayToClientDatagramBatch:
            let isBatch = type == .clientToRelayDatagramBatch || type == .relayToClientDatagramBatch
            return .datagrams(try RelayDatagramView(body: body, isBatch: isBatch))
        default:
            guard let frame = RelayFrame(type, body: body) else {
                throw TransportError(.framing, "the relay connection got a malformed frame")
            }
            return .frame(frame)
        }
    }
}

extension RelayFrame {
    /// nil for a malformed body and for types that carry datagrams. No field may be followed by anything, except the
    /// status byte, behind which later versions may say more.
    fileprivate init?(_ type: RelayFrameType, body: UnsafeRawBufferPointer) {
        switch type {
        case .serverChallenge:
            guard let challenge = RelayChallenge(bytes: body) else { return nil }
            self = .serverChallenge(challenge)
        case .clientAuth:
            // postcard: the key raw, the signature as a byte string with its length.
            var reader = ByteReader(body)
            guard let key = reader.take(NodeID.byteCount), let nodeID = NodeID(bytes: key),
                reader.byte() == UInt8(SecretKey.signatureByteCount),
                let signature = reader.take(SecretKey.signatureByteCount), reader.remaining == 0
            else { return nil }
            self = .clientAuth(nodeID, signature: Array(signature))
        case .serverConfirmsAuth:
            guard body.isEmpty else { return nil }
            self = .serverConfirmsAuth
        case .serverDeniesAuth:
            var reader = ByteReader(body)
            guard let length = reader.leb128(), length == UInt64(reader.remaining),
                let bytes = reader.take(reader.remaining), let reason = String(validating: bytes, as: UTF8.self)
            else { return nil }
            self = .serverDeniesAuth(reason: reason)
            guard encoded.count == body.count + 1 else { return nil }  // The length was not in its shortest form.
        case .endpointGone:
            guard body.count == PeerKey.byteCount else { return nil }
            self = .endpointGone(PeerKey(body))
        case .ping:
            guard body.count == 8 else { return nil }
            self = .ping(body.bigEndian(at: 0))
        case .pong:
            guard body.count == 8 else { return nil }
            self = .pong(body.bigEndian(at: 0))
        case .health:
            guard let text = String(validating: body, as: UTF8.self) else { return nil }
            self = .health(text)
        case .restarting:
            guard body.count == 8 else { return nil }
            let reconnectIn: UInt32 = body.bigEndian(at: 0)
            let tryFor: UInt32 = body.bigEndian(at: 4)
            self = .restarting(
                RelayRestart(reconnectIn: .milliseconds(Int64(reconnectIn)), tryFor: .milliseconds(Int64(tryFor))))
        case .status:
            guard let byte = body.first else { return nil }
            self = .status(RelayStatus(rawValue: byte))
        case .clientToRelayDatagram, .relayToClientDatagram, .clientToRelayDatagramBatch, .relayToClientDatagramBatch:
            return nil
        }
    }
}

extension UnsafeRawBufferPointer {
    /// The number at `offset`, most significant byte first; the bytes must be there.
    func bigEndian<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Number {
        Number(bigEndian: loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
}
