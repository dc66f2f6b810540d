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

    /// Masks or unmasks a whole payload in place.
    package func apply(to payload: UnsafeMutableRawBufferPointer) {
        let wide = UInt64(word) << 32 | UInt64(word)
        var offset = 0
        while offset + 8 <= payload.count {
            let masked = payload.loadUnaligned(fromByteOffset: offset, as: UInt64.self) ^ wide
            payload.storeBytes(of: masked, toByteOffset: offset, as: UInt64.self)
            offset += 8
        }
        withUnsafeBytes(of: word) { key in
            while offset < payload.count {
                payload[offset] ^= key[offset & 3]
                offset += 1
            }
        }
    }
}
