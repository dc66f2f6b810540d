import CulvertCore
import Testing

@Suite("Time")
struct TimeTests {
    @Test("instants saturate instead of overflowing")
    func instants() {
        let instant = Instant(nanoseconds: 5)
        #expect(instant + .nanoseconds(2) == Instant(nanoseconds: 7))
        #expect(instant + .nanoseconds(-2) == Instant(nanoseconds: 3))
        #expect(instant + .seconds(-1) == Instant(nanoseconds: 0))
        #expect(Instant.never + .seconds(1) == .never)
        #expect(instant + .seconds(Int64.max) == Instant(nanoseconds: 5 + UInt64(Int64.max)))
        #expect(Instant(nanoseconds: 7) - instant == .nanoseconds(2))
        #expect(instant - Instant(nanoseconds: 7) == .nanoseconds(-2))
        #expect(Instant.never - Instant(nanoseconds: 0) == .nanoseconds(Int64.max))
    }

    @Test("durations convert to nanoseconds, clamped")
    func durations() {
        #expect(Duration.milliseconds(1500).nanoseconds == 1_500_000_000)
        #expect(Duration.milliseconds(-1500).nanoseconds == -1_500_000_000)
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
        #expect(Duration.seconds(Int64.min).nanoseconds == .min)
        #expect(Duration.microseconds(1500).milliseconds == 1.5)
    }

    @Test("dates saturate instead of overflowing")
    func dates() {
        let date = UnixTime(seconds: 100)
        #expect(date + .seconds(20) == UnixTime(seconds: 120))
        #expect(UnixTime(seconds: 120) - date == .seconds(20))
        #expect(date + .seconds(Int64.max) == UnixTime(seconds: .max))
        #expect(UnixTime(seconds: -100) + .seconds(Int64.min) == UnixTime(seconds: .min))
        #expect(UnixTime(seconds: .max) - UnixTime(seconds: .min) == .seconds(Int64.max))
        #expect(UnixTime(seconds: .min) - UnixTime(seconds: .max) == .seconds(Int64.min))
    }
}
