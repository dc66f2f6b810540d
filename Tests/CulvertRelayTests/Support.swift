import CulvertCore
import CulvertIdentity
import Testing

@testable import CulvertRelay

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

/// The key of the relay vectors: seed 32 x 2a, or 32 x another byte.
func key(_ byte: UInt8 = 0x2a) throws -> SecretKey {
    try #require(SecretKey(seed: [UInt8](repeating: byte, count: 32)))
}

func peer(_ byte: UInt8) -> PeerKey {
    [UInt8](repeating: byte, count: 32).withUnsafeBytes { PeerKey($0) }
}
