/// A small seeded generator (Steele, Lea and Flood, 2014), so that a failing case can be run again.
package struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    /// A generator that gives the same numbers for the same seed.
    package init(seed: UInt64) {
        state = seed
    }

    /// The next number.
    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// True with the given probability.
    package mutating func chance(_ probability: Double) -> Bool {
        probability > 0 && Double.random(in: 0..<1, using: &self) < probability
    }

    /// Random bytes.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}

extension SplitMix64 {
    /// `bytes` cut at random places, empty pieces included.
    package mutating func chunks(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var pieces: [ArraySlice<UInt8>] = []
        var rest = bytes[...]
        let longest = Int.random(in: 1...max(1, min(bytes.count, 300)), using: &self)
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 0...longest, using: &self))
            pieces.append(piece)
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }

    /// `bytes` with one thing wrong: cut short, a bit flipped, a byte changed, removed, doubled or put in.
    package mutating func damaged(_ bytes: [UInt8]) -> [UInt8] {
        guard !bytes.isEmpty else { return self.bytes(8) }
        var bytes = bytes
        let index = Int.random(in: bytes.indices, using: &self)
        switch Int.random(in: 0..<6, using: &self) {
        case 0: bytes.removeSubrange(index...)
        case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &self)
        case 2: bytes[index] = UInt8.random(in: 0...255, using: &self)
        case 3: bytes.remove(at: index)
        case 4: bytes.insert(bytes[index], at: index)
        default: bytes.insert(UInt8.random(in: 0...255, using: &self), at: index)
        }
        return bytes
    }
}
