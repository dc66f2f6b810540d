import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay
import CulvertRelayClient

/// The relays through which a host is reached: measures those of its set, keeps the connection to the fastest one, its
/// home relay, and to those that it has promised to be found at. Confined to the loop.
final class HostRelays {
    /// Told when the connection to the home relay is made, and when it is lost.
    var onHome: (_ isConnected: Bool) -> Void = { _ in }
    /// Told when a relay cannot be used, once until it can.
    var onFailure: (TransportError) -> Void = { _ in }

    private let relays: EndpointRelays
    private let node: NodeID
    private let choice: [RelayURL]
    private let loop: EventLoop
    private let pool: ChunkPool
    private var selection = HomeRelaySelection()
    private var pings: [RelayURL: RelayPing] = [:]
    private var timer: LoopTimer?
    private var promised: Set<RelayURL> = []
    private var failing: Set<RelayURL> = []
    private var onDecided: (() -> Void)?

    /// Keeps the host that is `node` reachable, with a home relay of those in `choice`, which `relays` was given.
    init(
        _ relays: EndpointRelays, of node: NodeID, choosingFrom choice: [RelayURL], loop: EventLoop, pool: ChunkPool
    ) {
        self.relays = relays
        self.node = node
        self.choice = choice
        self.loop = loop
        self.pool = pool
        relays.carrier.onUp = { [weak self] in self?.cameUp($0) }
        relays.carrier.onFailure = { [weak self] in self?.failed($0, $1) }
        relays.carrier.onDisplaced = { [weak self] in self?.onFailure(Self.displaced) }
        timer = LoopTimer(loop: loop) { [weak self] in self?.timeCame() }
    }

    /// Begins to measure.
    func start() {
        selection.setRelays(choice, at: loop.now)
        settle()
    }

    /// The relay to name in tickets and invites: the home relay, or, while none answers, one that may later; nil for a
    /// host without relays.
    var published: RelayURL? { selection.home ?? choice.first }

    /// Calls `body` once the home relay is chosen, perhaps at once.
    func whenDecided(_ body: @escaping () -> Void) {
        if selection.home != nil || choice.isEmpty { body() } else { onDecided = body }
    }

    /// Stays reachable through `promised` too, which invites and devices know: also through those that are not chosen
    /// from any more, of which up to 8 are kept.
    func promise(_ promised: Set<RelayURL>) {
        self.promised = promised
        relays.replace(promised.subtracting(choice).sorted { $0.text < $1.text }, of: node)
        keep()
    }

    /// Stops measuring and closes the connections.
    func close() {
        timer?.disarm()
        timer = nil
        for ping in pings.values { ping.cancel() }
        pings = [:]
        relays.close()
    }

    // MARK: What happens

    private func cameUp(_ relay: RelayURL) {
        failing.remove(relay)
        selection.linkUp(relay, at: loop.now)
        if relay == selection.home { onHome(true) }
        settle()
    }

    private func failed(_ relay: RelayURL, _ error: TransportError) {
        let wasUp = failing.insert(relay).inserted
        if wasUp { onFailure(error) }
        if wasUp, relay == selection.home { onHome(false) }
        selection.linkDown(relay, at: loop.now)
        settle()
    }

    private func timeCame() {
        selection.timePassed(at: loop.now)
        settle()
    }

    /// Does what the selection wants now.
    private func settle() {
        if selection.measureAt <= loop.now {
            for relay in selection.beginRound(random: SystemRandom.word(), at: loop.now) { measure(relay) }
        }
        keep()
        timer?.arm(at: selection.deadline)
        guard selection.home != nil, let onDecided else { return }
        self.onDecided = nil
        onDecided()
    }

    private func measure(_ relay: RelayURL) {
        pings[relay]?.cancel()
        let ping = RelayPing(relay, relays.credentials, loop: loop, pool: pool) { [weak self] result in
            guard let self else { return }
            pings[relay] = nil
            selection.measured(relay, (try? result.get())?.first, at: loop.now)
            settle()
        }
        pings[relay] = ping
        ping.start()
    }

    /// The home relay may have changed. A link that is there already does not come up again.
    private func keep() {
        relays.carrier.keep(promised.union(selection.home.map { [$0] } ?? []))
        guard let home = selection.home, relays.carrier.isUp(home) else { return }
        selection.linkUp(home, at: loop.now)
    }

    private static let displaced = TransportError(
        .limit,
        """
        another program uses this host's identity at the relay and gets its traffic; end it, or give one of them \
        another state directory
        """)
}
