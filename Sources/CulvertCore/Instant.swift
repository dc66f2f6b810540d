/// A point on the monotonic clock, in nanoseconds since an arbitrary start.
///
/// Protocol code receives instants and never asks for them: the event loop reads the clock, tests make one up.
package struct Instant: Comparable, Hashable, Sendable {
    /// Nanoseconds since the clock's start.
    package var nanoseconds: UInt64

    /// An instant `nanoseconds` after the clock's start.
    package init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    /// The instant that never comes; the deadline of a timer that is not armed.
    package static let never = Instant(nanoseconds: .max)

    /// Orders instants by time.
    package static func < (earlier: Instant, later: Instant) -> Bool {
        earlier.nanoseconds < later.nanoseconds
    }

    /// The instant `duration` later; saturates at ``never`` and at the clock's start.
    package static func + (instant: Instant, duration: Duration) -> Instant {
        let delta = duration.nanoseconds
        if delta >= 0 {
            let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(UInt64(delta))
            return overflow ? .never : Instant(nanoseconds: sum)
        }
        let magnitude = delta.magnitude
        return Instant(nanoseconds: instant.nanoseconds > magnitude ? instant.nanoseconds - magnitude : 0)
    }

    /// The time from `earlier` to `later`; negative when they are the other way round.
    package static func - (later: Instant, earlier: Instant) -> Duration {
        later >= earlier
            ? .nanoseconds(Int64(clamping: later.nanoseconds - earlier.nanoseconds))
            : .nanoseconds(-Int64(clamping: earlier.nanoseconds - later.nanoseconds))
    }
}

extension Duration {
    /// The duration in whole nanoseconds, clamped to what 64 bits hold (292 years).
    package var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carried ? (seconds < 0 ? .min : .max) : sum
    }

    /// The duration in milliseconds, with the fraction kept.
    package var milliseconds: Double {
        Double(nanoseconds) / 1_000_000
    }
}

/// A date on the wall clock, in whole seconds since 1970-01-01T00:00:00Z; used for what outlives a process, such as
/// the expiry of an invite.
public struct UnixTime: Comparable, Hashable, Sendable, Codable {
    /// Seconds since 1970-01-01T00:00:00Z.
    public var seconds: Int64

    /// The date `seconds` after 1970-01-01T00:00:00Z.
    public init(seconds: Int64) {
        self.seconds = seconds
    }

    /// Orders dates by time.
    public static func < (earlier: UnixTime, later: UnixTime) -> Bool {
        earlier.seconds < later.seconds
    }

    /// The date `duration` later, in whole seconds; saturates at what 64 bits hold.
    public static func + (date: UnixTime, duration: Duration) -> UnixTime {
        UnixTime(seconds: saturated(date.seconds.addingReportingOverflow(duration.components.seconds), date < epoch))
    }

    /// The time from `earlier` to `later`; saturates at what 64 bits hold.
    public static func - (later: UnixTime, earlier: UnixTime) -> Duration {
        .seconds(saturated(later.seconds.subtractingReportingOverflow(earlier.seconds), later < epoch))
    }

    private static let epoch = UnixTime(seconds: 0)

    /// The result, or the end of the range beyond which it lies; a sum overflows on the side of its first operand.
    private static func saturated(_ result: (partialValue: Int64, overflow: Bool), _ isNegative: Bool) -> Int64 {
        result.overflow ? (isNegative ? .min : .max) : result.partialValue
    }

    /// Encodes as a bare number of seconds.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(seconds)
    }

    /// Decodes a bare number of seconds.
    public init(from decoder: any Decoder) throws {
        seconds = try decoder.singleValueContainer().decode(Int64.self)
    }
}
