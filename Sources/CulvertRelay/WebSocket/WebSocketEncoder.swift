/// Writes frames of a WebSocket (RFC 6455 section 5). A client gives a mask for each frame, a server gives none.
package enum WebSocketEncoder {
    /// A relay frame without datagrams as one binary message.
    package static func message(_ frame: [UInt8], mask: WebSocketMask?) -> [UInt8] {
        encode(.binary, frame, mask)
    }

    /// A Ping.
    package static func ping(_ payload: UnsafeRawBufferPointer, mask: WebSocketMask?) -> [UInt8] {
        encode(.ping, Array(payload.prefix(RelayLimits.controlPayload)), mask)
    }

    /// The answer to a Ping.
    package static func pong(_ payload: UnsafeRawBufferPointer, mask: WebSocketMask?) -> [UInt8] {
        encode(.pong, Array(payload.prefix(RelayLimits.controlPayload)), mask)
    }

    /// The end of this direction; nothing may be sent after it. No code answers a Close that had none.
    package static func close(_ code: WebSocketCloseCode?, mask: WebSocketMask?) -> [UInt8] {
        let payload = code.map { [UInt8($0.rawValue >> 8), UInt8(truncatingIfNeeded: $0.rawValue)] }
        return encode(.close, payload ?? [], mask)
    }

    /// Bytes that ``write(_:contents:mask:into:)`` writes.
    package static func count(_ header: RelayDatagramHeader, contentsCount: Int, isMasked: Bool) -> Int {
        let payload = header.count + contentsCount
        return WebSocketHeader.count(payloadCount: payload, isMasked: isMasked) + payload
    }

    /// Writes a datagram frame as one binary message to the front of `room`, which must have
    /// ``count(_:contentsCount:isMasked:)`` bytes; returns that count. The contents are copied once, and masked where
    /// they are then.
    @discardableResult
    package static func write(
        _ header: RelayDatagramHeader, contents: UnsafeRawBufferPointer, mask: WebSocketMask?,
        into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        let payloadCount = header.count + contents.count
        let outer = WebSocketHeader(opcode: .binary, mask: mask, payloadCount: payloadCount)
        let total = outer.count + payloadCount
        precondition(room.count >= total, "too little room for a datagram frame")
        outer.write(into: room)
        let payload = UnsafeMutableRawBufferPointer(rebasing: room[outer.count..<total])
        header.write(into: payload)
        UnsafeMutableRawBufferPointer(rebasing: payload[header.count...]).copyMemory(from: contents)
        mask?.apply(to: payload)
        return total
    }

    static func encode(
        _ opcode: WebSocketOpcode, _ payload: [UInt8], _ mask: WebSocketMask?, isFinal: Bool = true
    ) -> [UInt8] {
        let header = WebSocketHeader(isFinal: isFinal, opcode: opcode, mask: mask, payloadCount: payload.count)
        let total = header.count + payload.count
        return [UInt8](unsafeUninitializedCapacity: total) { buffer, count in
            let room = UnsafeMutableRawBufferPointer(buffer)
            header.write(into: room)
            let body = UnsafeMutableRawBufferPointer(rebasing: room[header.count..<total])
            body.copyBytes(from: payload)
            mask?.apply(to: body)
            count = total
        }
    }
}
