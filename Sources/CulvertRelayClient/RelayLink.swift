import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

/// What a ``RelayLink`` tells its user. Confined to the loop.
protocol RelayLinkHandler: AnyObject {
    /// Datagrams of a peer of the relay.
    func link(_ link: RelayLink, received datagrams: RelayDatagramView)
    /// The relay has confirmed this node; datagrams may be sent.
    func linkCameUp(_ link: RelayLink)
    /// Datagrams may be sent again.
    func linkHasRoom(_ link: RelayLink)
    /// An attempt to connect failed, or the connection broke; another follows.
    func link(_ link: RelayLink, failed error: TransportError)
    /// How the relay sees the connection.
    func link(_ link: RelayLink, status: RelayStatus)
}

/// Keeps a connection to one relay alive while it is wanted: connects on demand, notices the end, connects again after
/// a growing pause. Confined to the loop.
final class RelayLink {
    private enum State {
        /// Nobody needs it.
        case idle
        case connecting(RelayClient)
        case up(RelayClient)
        /// Waits for the timer before the next attempt.
        case pausing
        case closed
    }

    let relay: RelayURL
    /// Stands for the relay in addresses.
    let number: UInt32
    weak var handler: (any RelayLinkHandler)?
    var peers = RelayPeerTable()
    /// Attempts that failed since the last connection.
    private(set) var failures = 0
    /// Whether it is kept even if nothing goes over it, so that peers find this node there.
    var isKept = false {
        didSet { if isKept { open() } }
    }

    private let credentials: RelayCredentials
    private let loop: EventLoop
    private let pool: ChunkPool
    private var state = State.idle
    private var backoff = RelayBackoff()
    private var timer: LoopTimer?
    private var lastUse: Instant

    init(_ relay: RelayURL, number: UInt32, _ credentials: RelayCredentials, loop: EventLoop, pool: ChunkPool) {
        self.relay = relay
        self.number = number
        self.credentials = credentials
        self.loop = loop
        self.pool = pool
        lastUse = loop.now
        timer = LoopTimer(loop: loop) { [weak self] in self?.timeCame() }
    }

    /// Connects, unless it is connected or about to be.
    func open() {
        lastUse = loop.now
        if case .idle = state { connect() }
    }

    /// Ends the connection for good.
    func close() {
        let previous = state
        state = .closed
        timer?.disarm()
        timer = nil
        handler = nil
        if case .connecting(let client) = previous { client.close() }
        if case .up(let client) = previous { client.close() }
    }

    var isUp: Bool {
        if case .up = state { true } else { false }
    }

    /// Whether datagrams may be sent now; wakes the link up when it was idle.
    var hasRoom: Bool {
        switch state {
        case .up(let client): return client.hasRoom
        case .idle:
            open()
            return false
        case .connecting, .pausing: return false
        // They are dropped: a connection over a relay that is gone has to notice.
        case .closed: return true
        }
    }

    func send(_ datagrams: UnsafeRawBufferPointer, segment: Int, to peer: PeerKey, ecn: UInt8) {
        lastUse = loop.now
        if case .up(let client) = state { client.send(datagrams, segment: segment, to: peer, ecn: ecn) }
    }

    private func connect() {
        let client = RelayClient(to: relay, credentials, loop: loop, pool: pool)
        client.handler = self
        state = .connecting(client)
        client.start()
    }

    private func timeCame() {
        switch state {
        case .pausing: connect()
        case .up(let client):
            let idleEnd = lastUse + RelayClientLimits.idleTime
            if isKept || loop.now < idleEnd { return watchIdleness() }
            state = .idle
            client.close()
        case .idle, .connecting, .closed: break
        }
    }

    private func watchIdleness() {
        timer?.arm(at: max(lastUse, loop.now) + RelayClientLimits.idleTime)
    }
}

extension RelayLink: RelayClientHandler {
    func relay(_ client: RelayClient, reached stage: RelayStage) {
        guard stage == .confirmed else { return }
        state = .up(client)
        failures = 0
        watchIdleness()
        handler?.linkCameUp(self)
    }

    func relay(_ client: RelayClient, received datagrams: RelayDatagramView) {
        lastUse = loop.now
        handler?.link(self, received: datagrams)
    }

    /// Only now is the relay proven: one that confirms and hangs up must not be tried four times a second.
    func relay(_ client: RelayClient, roundTrip: Duration) { backoff.succeeded() }

    func relay(_ client: RelayClient, status: RelayStatus) { handler?.link(self, status: status) }

    func relayHasRoom(_ client: RelayClient) { handler?.linkHasRoom(self) }

    func relay(_ client: RelayClient, ended error: TransportError, restart: RelayRestart?) {
        if let restart { backoff.announced(restart, at: loop.now) }
        state = .pausing
        failures += 1
        timer?.arm(at: loop.now + backoff.next(random: SystemRandom.word(), at: loop.now))
        handler?.link(self, failed: error)
    }
}
