import CulvertCore

/// The client's side of a confirmed relay connection: what the relay's frames mean, and whether it is still there.
///
/// A Ping goes out at once and after 15 s of silence; 5 s without the Pong end the connection. So a dead relay is
/// noticed within 20 s. Read what has arrived before asking ``expire(pingPayload:at:)``: a Pong may lie there.
package struct RelayClientSession: Sendable {
    /// What a frame means.
    package enum Event {
        /// Datagrams of a node, valid as long as the buffer.
        case datagrams(RelayDatagramView)
        /// Send this frame.
        case reply([UInt8])
        /// The relay answered a Ping, and took this long.
        case roundTrip(Duration)
        /// A node is not at this relay any more.
        case endpointGone(PeerKey)
        /// How the connection is (version 2).
        case status(RelayStatus)
        /// How the connection is (version 1), in the relay's own words: not to be trusted, at most a frame long.
        case health(String)
        /// The relay restarts; give it to ``RelayBackoff/announced(_:at:)`` when the connection ends.
        case restarting(RelayRestart)
        /// Nothing to do.
        case nothing
    }

    /// The frame to send first.
    package let greeting: [UInt8]
    private let rules: RelayRules
    private var liveness: RelayLiveness

    /// A session that begins now; `pingPayload` are eight random bytes.
    package init(version: RelayVersion, pingPayload: UInt64, at now: Instant) {
        rules = RelayRules(sender: .server, phase: .established, version: version)
        liveness = RelayLiveness(interval: RelayLimits.pingInterval, at: now)
        liveness.sendPing(pingPayload, interval: RelayLimits.pingInterval, at: now)
        greeting = RelayFrame.ping(pingPayload).encoded
    }

    /// What it means that the Pong does not come.
    package static let dead = TransportError(.timedOut, "the relay does not answer any more")

    /// When ``expire(pingPayload:at:)`` is due.
    package var deadline: Instant { liveness.deadline }

    /// Takes a binary message. Throws `framing` or `protocolViolation`; the connection must be closed then.
    package mutating func receive(
        _ message: UnsafeRawBufferPointer, at now: Instant
    ) throws(TransportError) -> Event {
        let message = try RelayMessage.decode(message, under: rules)
        liveness.received(at: now)
        switch message {
        case .datagrams(let view): return .datagrams(view)
        case .frame(.ping(let payload)): return .reply(RelayFrame.pong(payload).encoded)
        case .frame(.pong(let payload)): return liveness.receivedPong(payload, at: now).map(Event.roundTrip) ?? .nothing
        case .frame(.endpointGone(let peer)): return .endpointGone(peer)
        case .frame(.status(let status)): return .status(status)
        case .frame(.health(let text)): return .health(text)
        case .frame(.restarting(let restart)): return .restarting(restart)
        case .frame(.serverChallenge), .frame(.clientAuth), .frame(.serverConfirmsAuth), .frame(.serverDeniesAuth):
            return .nothing  // The rules have refused them.
        }
    }

    /// The timer fired. `pingPayload` are eight fresh random bytes.
    package mutating func expire(pingPayload: UInt64, at now: Instant) -> RelayExpiry {
        RelayExpiry(liveness.expire(payload: pingPayload, interval: RelayLimits.pingInterval, at: now))
    }
}
