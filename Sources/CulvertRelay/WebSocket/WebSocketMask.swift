/// The four bytes with which a client masks a frame (RFC 6455 section 5.3), in their order on the wire. A client takes
/// them fresh from a random source for each frame.
package struct WebSocketMask: Hashable, Sendable {
    // As it lies in memory.
    private let word: UInt32

    /// A mask of random bits.
    package init(random: UInt32) {
        word = random
    }

    init(_ bytes: UnsafeRawBufferPointer) {
        word = bytes.loadUnaligned(as: UInt32.self)
    }

    func write(to room: UnsafeMutableRawBufferPointer, at offset: Int) {
        room.storeBytes(of: word, toByteOffset: offset, as: UInt32.self)
    }

    /// Masks or unmasks a whole payload in place. Every byte of a relay's traffic passes here, so it goes by 64.
    package func apply(to payload: UnsafeMutableRawBufferPointer) {
        guard let start = payload.baseAddress else { return }
        let wide = SIMD16<UInt32>(repeating: word)
        var offset = 0
        while offset + 64 <= payload.count {
            let place = start + offset
            place.storeBytes(of: place.loadUnaligned(as: SIMD16<UInt32>.self) ^ wide, as: SIMD16<UInt32>.self)
            offset += 64
        }
        while offset + 4 <= payload.count {
            let place = start + offset
            place.storeBytes(of: place.loadUnaligned(as: UInt32.self) ^ word, as: UInt32.self)
            offset += 4
        }
        withUnsafeBytes(of: word) { key in
            while offset < payload.count {
                payload[offset] ^= key[offset & 3]
                offset += 1
            }
        }
    }
}
