import CulvertCore

/// When to ask whether the other side is still there, and when to believe that it is not.
///
/// Time passes only through the arguments. A message moves the deadline without any timer work: the shell lets its
/// timer fire, hears ``Expiry/notYet``, and arms it for the new deadline.
struct RelayLiveness: Sendable {
    enum Expiry: Hashable, Sendable {
        /// Nothing is due; the deadline may have moved.
        case notYet
        /// Send a Ping with this payload.
        case ping(UInt64)
        /// The Pong did not come in time.
        case dead
    }

    private struct Ping {
        var payload: UInt64
        var sentAt: Instant
    }

    private var lastReceived: Instant
    private var interval: Duration
    private var ping: Ping?

    /// Starts with a silence of `interval`.
    init(interval: Duration, at now: Instant) {
        self.interval = interval
        lastReceived = now
    }

    var deadline: Instant {
        if let ping { ping.sentAt + RelayLimits.pongTime } else { lastReceived + interval }
    }

    mutating func received(at now: Instant) {
        lastReceived = now
    }

    /// The round trip, when `payload` is that of the Ping under way; nil for a Pong that nobody waits for.
    mutating func receivedPong(_ payload: UInt64, at now: Instant) -> Duration? {
        guard let ping, ping.payload == payload else { return nil }
        self.ping = nil
        return now - ping.sentAt
    }

    /// Sends a Ping now; the next one comes after a silence of `interval`.
    mutating func sendPing(_ payload: UInt64, interval: Duration, at now: Instant) {
        ping = Ping(payload: payload, sentAt: now)
        self.interval = interval
    }

    mutating func expire(payload: UInt64, interval: Duration, at now: Instant) -> Expiry {
        guard now >= deadline else { return .notYet }
        guard ping == nil else { return .dead }
        sendPing(payload, interval: interval, at: now)
        return .ping(payload)
    }
}

/// What a session's timer found.
package enum RelayExpiry: Hashable, Sendable {
    /// Nothing is due; arm the timer for the deadline again.
    case notYet
    /// Send this frame, and arm the timer again.
    case send([UInt8])
    /// The other side is gone: close the connection.
    case dead

    init(_ expiry: RelayLiveness.Expiry) {
        switch expiry {
        case .notYet: self = .notYet
        case .ping(let payload): self = .send(RelayFrame.ping(payload).encoded)
        case .dead: self = .dead
        }
    }
}
