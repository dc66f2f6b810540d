/// The head of a WebSocket frame (RFC 6455 section 5.2).
struct WebSocketHeader: Hashable {
    var isFinal: Bool
    var opcode: WebSocketOpcode
    var mask: WebSocketMask?
    var payloadCount: Int

    /// Bytes on the wire.
    var count: Int { Self.count(payloadCount: payloadCount, isMasked: mask != nil) }

    static func count(payloadCount: Int, isMasked: Bool) -> Int {
        2 + (payloadCount < 126 ? 0 : payloadCount < 65_536 ? 2 : 8) + (isMasked ? 4 : 0)
    }

    /// How many bytes the header has that begins with `bytes`: 2 as long as there are not that many.
    static func count(from bytes: UnsafeRawBufferPointer) -> Int {
        guard bytes.count >= 2 else { return 2 }
        let short = bytes[1] & 0x7f
        return 2 + (short < 126 ? 0 : short == 126 ? 2 : 8) + (bytes[1] & 0x80 != 0 ? 4 : 0)
    }

    /// Reads what the first two bytes alone can be wrong about, so that a bad peer is refused before it sends more.
    static func check(firstTwo bytes: UnsafeRawBufferPointer, isMasked expectsMask: Bool) throws(WebSocketFault) {
        guard bytes[0] & 0x70 == 0 else { throw .reservedBits }
        guard let opcode = WebSocketOpcode(rawValue: bytes[0] & 0x0f) else { throw .opcode }
        let isMasked = bytes[1] & 0x80 != 0
        guard isMasked == expectsMask else { throw isMasked ? .masked : .unmasked }
        if opcode.isControl {
            guard bytes[0] & 0x80 != 0 else { throw .fragmentedControl }
            guard bytes[1] & 0x7f <= RelayLimits.controlPayload else { throw .longControl }
        }
    }

    /// Reads a header that is complete and passed ``check(firstTwo:isMasked:)``.
    init(complete bytes: UnsafeRawBufferPointer) throws(WebSocketFault) {
        guard let opcode = WebSocketOpcode(rawValue: bytes[0] & 0x0f) else { throw .opcode }
        self.opcode = opcode
        isFinal = bytes[0] & 0x80 != 0
        var end = 2
        switch bytes[1] & 0x7f {
        case 126:
            let length: UInt16 = bytes.bigEndian(at: 2)
            guard length >= 126 else { throw .length }
            payloadCount = Int(length)
            end = 4
        case 127:
            let length: UInt64 = bytes.bigEndian(at: 2)
            guard length >= 65_536, let count = Int(exactly: length) else { throw .length }
            payloadCount = count
            end = 10
        case let short:
            payloadCount = Int(short)
        }
        mask = bytes[1] & 0x80 == 0 ? nil : WebSocketMask(UnsafeRawBufferPointer(rebasing: bytes[end..<end + 4]))
    }

    init(isFinal: Bool = true, opcode: WebSocketOpcode, mask: WebSocketMask?, payloadCount: Int) {
        self.isFinal = isFinal
        self.opcode = opcode
        self.mask = mask
        self.payloadCount = payloadCount
    }

    /// Writes the header to the front of `room`, which must have ``count`` bytes.
    func write(into room: UnsafeMutableRawBufferPointer) {
        precondition(room.count >= count, "too little room for a WebSocket header")
        let maskBit: UInt8 = mask == nil ? 0 : 0x80
        room[0] = (isFinal ? 0x80 : 0) | opcode.rawValue
        if payloadCount < 126 {
            room[1] = maskBit | UInt8(payloadCount)
        } else if payloadCount < 65_536 {
            room[1] = maskBit | 126
            room.storeBytes(of: UInt16(payloadCount).bigEndian, toByteOffset: 2, as: UInt16.self)
        } else {
            room[1] = maskBit | 127
            room.storeBytes(of: UInt64(payloadCount).bigEndian, toByteOffset: 2, as: UInt64.self)
        }
        mask?.write(to: room, at: count - 4)
    }
}
