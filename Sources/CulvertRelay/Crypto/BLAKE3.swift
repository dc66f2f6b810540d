/// The one use of BLAKE3 that the relay protocol makes: deriving 32 bytes from a short input.
///
/// Only inputs of a single chunk are implemented (BLAKE3 specification sections 2.2 to 2.4); there is no tree.
package enum BLAKE3 {
    /// Bytes of context and of key material at most: one chunk.
    package static let chunkBytes = 1024
    private static let blockBytes = 64

    private static let chunkStart: UInt32 = 1 << 0
    private static let chunkEnd: UInt32 = 1 << 1
    private static let root: UInt32 = 1 << 3
    private static let deriveKeyContext: UInt32 = 1 << 5
    private static let deriveKeyMaterial: UInt32 = 1 << 6

    // The initial state of SHA-256, as in the specification's table 1.
    private static let initialValue: [UInt32] = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]
    private static let permutation = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]

    /// The 32-byte `derive_key` output for `material` under `context`, each at most ``chunkBytes`` long.
    package static func deriveKey(context: some Collection<UInt8>, material: some Collection<UInt8>) -> [UInt8] {
        let contextKey = hashChunk(Array(context), key: initialValue, flags: deriveKeyContext)
        return hashChunk(Array(material), key: contextKey, flags: deriveKeyMaterial).flatMap { word in
            withUnsafeBytes(of: word.littleEndian, Array.init)
        }
    }

    private static func hashChunk(_ bytes: [UInt8], key: [UInt32], flags: UInt32) -> [UInt32] {
        precondition(bytes.count <= chunkBytes, "more than one chunk")
        var chaining = key
        var offset = 0
        repeat {
            let block = bytes[offset..<min(offset + blockBytes, bytes.count)]
            let isLast = offset + blockBytes >= bytes.count
            var blockFlags = flags
            if offset == 0 { blockFlags |= chunkStart }
            if isLast { blockFlags |= chunkEnd | root }
            chaining = compress(chaining, words(block), length: UInt32(block.count), flags: blockFlags)
            offset += blockBytes
        } while offset < bytes.count
        return chaining
    }

    /// Sixteen little-endian words, padded with zeros.
    private static func words(_ block: ArraySlice<UInt8>) -> [UInt32] {
        var words = [UInt32](repeating: 0, count: 16)
        for (index, byte) in block.enumerated() { words[index / 4] |= UInt32(byte) << UInt32(8 * (index % 4)) }
        return words
    }

    /// The compression function; the counter is 0 because there is only the first chunk.
    private static func compress(_ chaining: [UInt32], _ block: [UInt32], length: UInt32, flags: UInt32) -> [UInt32] {
        var state = chaining + initialValue[..<4] + [0, 0, length, flags]
        var message = block
        for round in 0..<7 {
            if round > 0 { message = permutation.map { message[$0] } }
            for column in 0..<4 {
                mix(&state, column, column + 4, column + 8, column + 12, message[2 * column], message[2 * column + 1])
            }
            for diagonal in 0..<4 {
                mix(
                    &state, diagonal, (diagonal + 1) % 4 + 4, (diagonal + 2) % 4 + 8, (diagonal + 3) % 4 + 12,
                    message[8 + 2 * diagonal], message[9 + 2 * diagonal])
            }
        }
        return (0..<8).map { state[$0] ^ state[$0 + 8] }
    }

    private static func mix(
        _ state: inout [UInt32], _ a: Int, _ b: Int, _ c: Int, _ d: Int, _ first: UInt32, _ second: UInt32
    ) {
        state[a] = state[a] &+ state[b] &+ first
        state[d] = rotated(state[d] ^ state[a], 16)
        state[c] = state[c] &+ state[d]
        state[b] = rotated(state[b] ^ state[c], 12)
        state[a] = state[a] &+ state[b] &+ second
        state[d] = rotated(state[d] ^ state[a], 8)
        state[c] = state[c] &+ state[d]
        state[b] = rotated(state[b] ^ state[c], 7)
    }

    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 {
        word >> count | word << (32 - count)
    }
}
