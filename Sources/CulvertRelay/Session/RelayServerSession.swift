import CulvertCore

/// The server's side of a confirmed relay connection: what the client's frames mean, and whether it is still there.
///
/// A Ping goes out after 15 s and a random 1 to 5 s of silence; 5 s without the Pong end the connection. Read what has
/// arrived before asking ``expire(random:at:)``: a Pong may lie there.
package struct RelayServerSession: Sendable {
    /// What a frame means.
    package enum Event {
        /// Pass these on to ``RelayDatagramView/peer``, or drop them silently when it is not here.
        case forward(RelayDatagramView)
        /// Send this frame.
        case reply([UInt8])
        /// The client answered a Ping, and took this long.
        case roundTrip(Duration)
        /// Nothing to do.
        case nothing
    }

    private let rules: RelayRules
    private var liveness: RelayLiveness

    /// A session that begins now; `random` spreads the Pings.
    package init(version: RelayVersion, random: UInt64, at now: Instant) {
        rules = RelayRules(sender: .client, phase: .established, version: version)
        liveness = RelayLiveness(interval: Self.interval(random), at: now)
    }

    /// When ``expire(random:at:)`` is due.
    package var deadline: Instant { liveness.deadline }

    /// Takes a binary message. Throws `framing` or `protocolViolation`; the connection must be closed then.
    package mutating func receive(
        _ message: UnsafeRawBufferPointer, at now: Instant
    ) throws(TransportError) -> Event {
        let message = try RelayMessage.decode(message, under: rules)
        liveness.received(at: now)
        switch message {
        case .datagrams(let view): return .forward(view)
        case .frame(.ping(let payload)): return .reply(RelayFrame.pong(payload).encoded)
        case .frame(.pong(let payload)): return liveness.receivedPong(payload, at: now).map(Event.roundTrip) ?? .nothing
        case .frame: return .nothing  // The rules have refused all others.
        }
    }

    /// The timer fired. `random` are eight fresh random bytes: a Ping's payload, and its jitter.
    package mutating func expire(random: UInt64, at now: Instant) -> RelayExpiry {
        RelayExpiry(liveness.expire(payload: random, interval: Self.interval(random), at: now))
    }

    /// The frame that tells the client how its connection is.
    package func report(_ status: RelayStatus) -> [UInt8] {
        RelayFrame.report(status, version: rules.version).encoded
    }

    private static func interval(_ random: UInt64) -> Duration {
        RelayLimits.pingInterval + RelayLimits.pingJitterFloor + RelayLimits.pingJitterSpan.fraction(random)
    }
}

extension Duration {
    /// A part of the duration: all of it for the largest `random`, nothing for 0, evenly in between.
    func fraction(_ random: UInt64) -> Duration {
        let (high, low) = UInt64(max(0, nanoseconds)).multipliedFullWidth(by: random)
        // Rounded to the nearest, so that both ends of the range are reached.
        return .nanoseconds(Int64(clamping: high + (low >> 63)))
    }
}
