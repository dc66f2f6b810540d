import CulvertCore

/// When to dial again after a connection was lost: at once, then after 1, 2, 4, 8 and from then on every 16 s
/// (docs/protocol.md, Tunnel). A proven connection starts it over.
struct ReconnectSchedule: Hashable, Sendable {
    private static let pauses: [Duration] = [.zero, .seconds(1), .seconds(2), .seconds(4), .seconds(8), .seconds(16)]
    private var attempts = 0

    /// The pause before the next attempt; counts it.
    mutating func next() -> Duration {
        defer { attempts += 1 }
        return Self.pauses[min(attempts, Self.pauses.count - 1)]
    }

    /// A connection was proven: the next loss is dialled at once again.
    mutating func reset() {
        attempts = 0
    }
}
