import CLinux
import CulvertCore
import Glibc

/// The clocks of the machine; only shells ask them, protocol code is told.
package enum SystemClock {
    /// Time since some start, unaffected by changes of the date; it stands still while the machine sleeps.
    package static func monotonic() -> Instant {
        let time = read(CLOCK_MONOTONIC)
        return Instant(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    /// The date, in whole seconds.
    package static func wall() -> UnixTime {
        UnixTime(seconds: Int64(read(CLOCK_REALTIME).tv_sec))
    }

    private static func read(_ clock: clockid_t) -> timespec {
        var time = timespec()
        // Fails only for unknown clocks.
        _ = clock_gettime(clock, &time)
        return time
    }
}

/// The kernel's random generator.
package enum SystemRandom {
    /// Fills `buffer` with bytes fit for keys. Ends the process when the kernel has no generator.
    package static func fill(_ buffer: UnsafeMutableRawBufferPointer) {
        guard let base = buffer.baseAddress else { return }
        clinux_random(base, buffer.count)
    }

    /// 64 such bits.
    package static func word() -> UInt64 {
        var word: UInt64 = 0
        withUnsafeMutableBytes(of: &word) { fill($0) }
        return word
    }
}
