import CulvertCore
import CulvertIdentity
import Testing

@testable import CulvertRelay

/// A small seeded generator (SplitMix64), so that a failing case can be run again.
struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8)
        while bytes.count < count { withUnsafeBytes(of: next()) { bytes.append(contentsOf: $0) } }
        return Array(bytes[..<count])
    }

    /// `bytes` cut at random places, empty pieces included.
    mutating func chunks(_ bytes: [UInt8]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var rest = bytes[...]
        let longest = Int.random(in: 1...max(1, min(bytes.count, 300)), using: &self)
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 0...longest, using: &self))
            pieces.append(Array(piece))
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }

    /// `bytes` with one thing wrong: cut short, a bit flipped, a byte changed, removed, doubled or put in.
    mutating func damaged(_ bytes: [UInt8]) -> [UInt8] {
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

extension Instant {
    /// An instant some seconds after the tests' start of time.
    static func at(_ seconds: Double) -> Instant { Instant(nanoseconds: UInt64(seconds * 1e9)) }

    /// The instant one nanosecond earlier.
    var justBefore: Instant { Instant(nanoseconds: nanoseconds - 1) }
}

extension Array where Element == UInt8 {
    /// The bytes of hexadecimal text.
    init(hex: String) {
        self = Hex.decode(hex) ?? []
    }
}

/// A decoded message that outlives its buffer.
enum Decoded: Hashable {
    case frame(RelayFrame)
    case datagrams(RelayDatagramHeader, [[UInt8]])
}

func decode(_ bytes: [UInt8], _ rules: RelayRules) throws -> Decoded {
    try bytes.withUnsafeBytes { buffer in
        switch try RelayMessage.decode(buffer, under: rules) {
        case .frame(let frame):
            return .frame(frame)
        case .datagrams(let view):
            let sender = rules.sender
            return .datagrams(
                RelayDatagramHeader(
                    sender: sender, peer: view.peer, ecnByte: view.ecnByte, segmentSize: view.segmentSize),
                view.datagrams.map { Array($0) })
        }
    }
}

/// The kind with which `body` fails; nil when it does not.
func failure<T>(_ body: () throws -> T) -> ErrorKind? {
    do {
        _ = try body()
        return nil
    } catch {
        guard let error = error as? TransportError else {
            Issue.record("not a transport error: \(error)")
            return nil
        }
        return error.kind
    }
}

/// The key of RELAY_PROTOCOL.md: seed 32 x 2a, or 32 x another byte.
func key(_ byte: UInt8 = 0x2a) throws -> SecretKey {
    try #require(SecretKey(seed: [UInt8](repeating: byte, count: 32)))
}

func peer(_ byte: UInt8) -> PeerKey {
    [UInt8](repeating: byte, count: 32).withUnsafeBytes { PeerKey($0) }
}
