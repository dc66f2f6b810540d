/// Every limit and time of the relay protocol, with its reason.
package enum RelayLimits {
    // MARK: Frames

    /// Bytes of a frame after its type: what real relays and clients accept at most.
    package static let frameBody = 65_536
    /// Bytes of a frame with its type, and so of the WebSocket message that carries it.
    package static let frame = frameBody + 1
    /// Bytes of a server's challenge.
    package static let challenge = 16
    /// Bytes of keying material that the TLS shortcut exports (RFC 5705): half is signed, half is shown.
    package static let exporter = 32
    /// Bytes of the UTF-8 reason of a denial that we keep. It is for a log line, and the relay is not trusted yet.
    package static let denialReason = 256

    // MARK: Times

    /// How long a handshake may take, from the upgrade's answer to the confirmation. A peer that says nothing must
    /// not hold its slot; the slowest links need about three seconds.
    package static let handshakeTime = Duration.seconds(10)
    /// A Ping is sent after this much silence of the other side: half of QUIC's idle time, so that a dead relay is
    /// noticed before the connections over it die.
    package static let pingInterval = Duration.seconds(15)
    /// A server adds a random part of this span to ``pingInterval``, from ``pingJitterFloor`` on, so that thousands of
    /// idle clients are not pinged in step.
    package static let pingJitterSpan = Duration.seconds(4)
    /// The least that a server adds to ``pingInterval``: an idle client's own Ping comes first and saves the server's.
    package static let pingJitterFloor = Duration.seconds(1)
    /// How long the Pong may take before the connection counts as dead.
    package static let pongTime = Duration.seconds(5)

    // MARK: Reconnecting

    /// The shortest pause before a connection is tried again: a relay that is back after a restart is found soon.
    package static let backoffFloor = Duration.milliseconds(250)
    /// The longest pause: a relay that was away for hours is found within half a minute.
    package static let backoffCeiling = Duration.seconds(30)
    /// What a relay may ask for as the span of quick attempts after a restart; more would let it be hammered for long
    /// on its own word.
    package static let restartTryFor = Duration.seconds(60)
    /// The span over which clients spread after the pause that a restarting relay asks for, so that they do not all
    /// come in the same instant.
    package static let restartSpread = Duration.seconds(1)

    // MARK: Home relay

    /// How long the first choice waits for slower relays once one has answered: what is not heard of by then is not the
    /// fastest, and a host that starts is to be reachable soon.
    package static let firstAnswerWait = Duration.seconds(1)
    /// The time between rounds of measurements: networks change, and a round costs each relay one small request.
    package static let measuringPeriod = Duration.seconds(60)
    /// The span over which a host's next round is moved at random, so that many hosts do not measure in step.
    package static let measuringSpread = Duration.seconds(6)
    /// The least time between rounds that a lost link asks for: a link that breaks again and again must not become a
    /// flood of requests.
    package static let measuringFloor = Duration.seconds(5)
    /// How often ``measuringFloor`` doubles while no relay works: up to 40 s, so that a machine without a network
    /// tries seldom.
    package static let measuringDoublings = 3
    /// How long an answer counts, and how long a relay to which no link holds is avoided.
    package static let measurementLife = Duration.seconds(300)
    /// How often the time for which such a relay is avoided doubles: up to 80 minutes, so that a relay that never lets
    /// us in costs ten seconds of being reachable now and then, and one that is repaired is found again.
    package static let shunDoublings = 4
    /// In how many rounds in a row a relay must be much faster than the home relay: one may be chance.
    package static let fasterRounds = 2
    /// How long the home relay's link may be down before another relay is taken: a restart takes less.
    package static let homeLinkPatience = Duration.seconds(10)
    /// How long a new home relay stays whatever happens: clients must be able to follow.
    package static let homeHold = Duration.seconds(5)

    // MARK: WebSocket

    /// Bytes of a WebSocket message, however fragmented: what real relay clients accept.
    package static let message = 1024 * 1024
    /// Bytes of a control frame's payload: RFC 6455 section 5.5.
    package static let controlPayload = 125
    /// Bytes of a frame's header at most: two, eight of length, four of mask (RFC 6455 section 5.2).
    package static let webSocketHeader = 14
    /// Bytes that a decoder keeps for the next frame that arrives in parts: a batch of ten full datagrams. Larger
    /// room is given back at once.
    package static let retainedBuffer = 16 * 1024

    // MARK: Upgrade

    /// Bytes of the head of a request or response. Real ones have about 600.
    package static let head = 8 * 1024
    /// Fields in such a head; real ones have about ten, proxies add a few.
    package static let headFields = 64
    /// Characters of an access token: as for the bearer in the tunnel's preface.
    package static let accessToken = 512
}
