import CulvertCore

/// Holds a sender to a rate. What is spent beyond the tokens is a debt, during which its connection is not read: the
/// sender's own window stops it, and nothing is dropped.
package struct TokenBucket: Sendable {
    private let rate: Double
    private let burst: Double
    private var level: Double
    private var last: Instant

    /// A full bucket for `bytesPerSecond`; nil for 0, which means no limit.
    package init?(bytesPerSecond: Int, at now: Instant) {
        guard bytesPerSecond > 0 else { return nil }
        rate = Double(bytesPerSecond)
        // One read at least, or a slow rate would be in debt after each.
        burst = max(rate * RelayServerLimits.burst.milliseconds / 1000, Double(RelayServerLimits.readBytes))
        level = burst
        last = now
    }

    /// Takes `count` bytes and returns when the debt is paid; nil when there is none.
    package mutating func spend(_ count: Int, at now: Instant) -> Instant? {
        level = min(burst, level + Double((now - last).nanoseconds) * rate / 1e9) - Double(count)
        last = now
        guard level < 0 else { return nil }
        return now + .nanoseconds(Int64(min(-level / rate * 1e9, 3.6e12)) + 1)
    }
}
