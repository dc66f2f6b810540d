import CulvertCore

/// Answers STUN Binding requests (RFC 8489): tells a client the address it is seen at. Nothing is remembered, and an
/// answer is at most three times as long as its request.
///
/// Credentials are not checked, as everyone may know his own address; MESSAGE-INTEGRITY is skipped.
package enum STUNResponder {
    /// Bytes of the longest answer.
    package static let answerCount = 64

    private static let headerCount = 20
    private static let magicCookie: UInt32 = 0x2112_a442
    private static let bindingRequest: UInt16 = 0x0001
    private static let bindingSuccess: UInt16 = 0x0101
    private static let bindingError: UInt16 = 0x0111
    private static let fingerprint: UInt16 = 0x8028
    private static let fingerprintMask: UInt32 = 0x5354_554e
    /// Attributes that must be understood and are, though most mean nothing here: USERNAME, MESSAGE-INTEGRITY, REALM,
    /// NONCE, MESSAGE-INTEGRITY-SHA256, PASSWORD-ALGORITHM, USERHASH; ICE's PRIORITY and USE-CANDIDATE (RFC 8445).
    private static let known: Set<UInt16> = [0x0006, 0x0008, 0x0014, 0x0015, 0x001c, 0x001d, 0x001e, 0x0024, 0x0025]

    /// Writes the answer to `request`, which came from `source`, to `room`, which must have ``answerCount`` bytes;
    /// returns its length, or nil when there is none to give.
    package static func answer(
        _ request: UnsafeRawBufferPointer, from source: SocketAddress, into room: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard request.count >= headerCount, request.bigEndian(at: 0) as UInt16 == bindingRequest,
            request.bigEndian(at: 4) as UInt32 == magicCookie
        else { return nil }
        let length: UInt16 = request.bigEndian(at: 2)
        guard Int(length) == request.count - headerCount, length % 4 == 0,
            let unknown = unknownAttributes(request)
        else { return nil }
        var writer = Writer(room: room)
        writer.put(unknown.isEmpty ? bindingSuccess : bindingError)
        writer.put(UInt16(0))
        writer.copy(UnsafeRawBufferPointer(rebasing: request[4..<headerCount]))
        if unknown.isEmpty {
            writer.xorMappedAddress(source, transaction: request)
        } else {
            writer.unknownAttributes(unknown)
        }
        // The length includes FINGERPRINT before its checksum is taken (section 14.7).
        writer.setLength(writer.count + 8 - headerCount)
        let checksum = CRC32.of(UnsafeRawBufferPointer(rebasing: room[..<writer.count])) ^ fingerprintMask
        writer.put(fingerprint)
        writer.put(UInt16(4))
        writer.put(checksum)
        return writer.count
    }

    /// The types that must be understood and are not, at most four; nil when the request is malformed.
    private static func unknownAttributes(_ request: UnsafeRawBufferPointer) -> [UInt16]? {
        var unknown: [UInt16] = []
        var offset = headerCount
        while offset < request.count {
            let type: UInt16 = request.bigEndian(at: offset)
            let length: UInt16 = request.bigEndian(at: offset + 2)
            let end = offset + 4 + (Int(length) + 3) / 4 * 4
            guard end <= request.count else { return nil }
            if type == fingerprint {
                guard length == 4, end == request.count else { return nil }
                let checksum = CRC32.of(UnsafeRawBufferPointer(rebasing: request[..<offset])) ^ fingerprintMask
                guard request.bigEndian(at: offset + 4) as UInt32 == checksum else { return nil }
            } else if type < 0x8000, !known.contains(type), unknown.count < 4 {
                unknown.append(type)
            }
            offset = end
        }
        return unknown
    }

    private struct Writer {
        let room: UnsafeMutableRawBufferPointer
        var count = 0

        mutating func put<Number: FixedWidthInteger & BitwiseCopyable>(_ value: Number) {
            room.storeBytes(of: value.bigEndian, toByteOffset: count, as: Number.self)
            count += MemoryLayout<Number>.size
        }

        mutating func copy(_ bytes: UnsafeRawBufferPointer) {
            UnsafeMutableRawBufferPointer(rebasing: room[count...]).copyMemory(from: bytes)
            count += bytes.count
        }

        func setLength(_ length: Int) {
            room.storeBytes(of: UInt16(length).bigEndian, toByteOffset: 2, as: UInt16.self)
        }

        /// Section 14.2: the port and the address, each XORed with the cookie and, for IPv6, the transaction ID.
        mutating func xorMappedAddress(_ address: SocketAddress, transaction: UnsafeRawBufferPointer) {
            put(UInt16(0x0020))
            switch address.ip.unmapped {
            case .v4(let bits):
                put(UInt16(8))
                put(UInt16(1))
                put(address.port ^ UInt16(magicCookie >> 16))
                put(bits ^ magicCookie)
            case .v6(let high, let low):
                put(UInt16(20))
                put(UInt16(2))
                put(address.port ^ UInt16(magicCookie >> 16))
                put(high ^ (transaction.bigEndian(at: 4) as UInt64))
                put(low ^ (transaction.bigEndian(at: 12) as UInt64))
            }
        }

        /// Error 420 and what it is about (sections 14.8 and 14.13).
        mutating func unknownAttributes(_ types: [UInt16]) {
            put(UInt16(0x0009))
            put(UInt16(4))
            put(UInt32(0x0414))
            put(UInt16(0x000a))
            put(UInt16(types.count * 2))
            for type in types { put(type) }
            if types.count % 2 == 1 { put(UInt16(0)) }
        }
    }
}

/// The CRC-32 of ITU V.42, as in Ethernet.
enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xedb8_8320 ^ (value >> 1) : value >> 1 }
    }

    static func of(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        ~bytes.reduce(~0) { table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ ($0 >> 8) }
    }
}
