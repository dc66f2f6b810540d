import CulvertCore

/// How long a client waits before it tries its relay again: between half a step and a whole step, where steps double
/// from 0.5 s to 30 s. The least pause is 0.25 s, the longest 30 s.
package struct RelayBackoff: Sendable {
    private struct Restart {
        var reconnectIn: Duration
        var until: Instant
        var isFirst = true
    }

    private var step = RelayLimits.backoffFloor * 2
    private var restart: Restart?

    /// A schedule at its beginning.
    package init() {}

    /// The connection works: the schedule begins anew. Call it when the first Pong has come, not before: a relay that
    /// accepts connections and drops them must not be tried four times a second.
    package mutating func succeeded() {
        self = RelayBackoff()
    }

    /// The relay said that it restarts: the next pause is the one it asks for and 0.25 to 1 s more, together at most
    /// 30 s. After that, for the time it names, up to a minute, pauses do not grow.
    package mutating func announced(_ announcement: RelayRestart, at now: Instant) {
        let tryFor = min(announcement.tryFor, RelayLimits.restartTryFor)
        let reconnectIn = min(announcement.reconnectIn, RelayLimits.backoffCeiling - RelayLimits.restartSpread)
        restart = Restart(reconnectIn: reconnectIn, until: now + reconnectIn + tryFor)
        step = RelayLimits.backoffFloor * 2
    }

    /// The pause before the next attempt; `random` are eight random bytes.
    package mutating func next(random: UInt64, at now: Instant) -> Duration {
        if let restart {
            if restart.isFirst {
                self.restart?.isFirst = false
                let spread = RelayLimits.restartSpread - RelayLimits.backoffFloor
                return restart.reconnectIn + RelayLimits.backoffFloor + spread.fraction(random)
            }
            if now < restart.until { return pause(random) }
            self.restart = nil
        }
        defer { step = min(step * 2, RelayLimits.backoffCeiling) }
        return pause(random)
    }

    private func pause(_ random: UInt64) -> Duration {
        step / 2 + (step / 2).fraction(random)
    }
}
