import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTransport
import CulvertTunnel

/// Keeps one connection to a paired host alive: dials, notices the end, dials again. Confined to the loop.
final class ServerLink {
    private enum State {
        case idle
        case dialing(Dialer)
        case connected(QUICConnection)
        /// Waits for the timer before it dials again.
        case pausing
        /// Over for good: closed, or failed in a way that no retry may hide.
        case stopped
    }

    private let server: PairedServer
    private let driver: EndpointDriver
    private let relays: EndpointRelays
    private let notify: (ServerEvent) -> Void
    private var state = State.idle
    private var schedule = ReconnectSchedule()
    private var timer: LoopTimer?
    private var lastDial = Instant(nanoseconds: 0)
    private var establishedAt = Instant(nanoseconds: 0)
    private var onFirstAttempt: ((TransportError?) -> Void)?
    private var wasConnected = false
    /// The proxy that waits for streams.
    weak var proxy: LoopbackProxy?

    /// How often a waiting local connection may bring a dial forward.
    private static let eagerPause = Duration.seconds(1)
    /// How long a connection must have lived for its loss to be dialled at once: a host that drops every connection is
    /// not dialled in a loop.
    private static let provenAfter = Duration.seconds(10)

    /// A link to `server`, whose relays are `relayURLs`. Throws `metadata` for too many of them.
    init(
        server: PairedServer, relayURLs: [RelayURL], driver: EndpointDriver, relays: EndpointRelays,
        notify: @escaping (ServerEvent) -> Void
    ) throws(TransportError) {
        self.server = server
        self.driver = driver
        self.relays = relays
        self.notify = notify
        try relays.acquire(relayURLs, for: server.nodeID)
        timer = LoopTimer(loop: driver.loop) { [weak self] in self?.dial() }
    }

    /// Dials for the first time; the completion gets nil, or why there is no connection. Only after a success does the
    /// link go on by itself.
    func start(_ completion: @escaping (TransportError?) -> Void) {
        onFirstAttempt = completion
        dial()
    }

    /// Closes the connection and stops dialling; whoever still waits for the first attempt hears of it.
    func close() {
        let previous = state
        stopDialing()
        switch previous {
        case .dialing(let dialer): dialer.cancel()
        case .connected(let connection): connection.close(.done)
        case .idle, .pausing, .stopped: break
        }
        finishFirstAttempt(TransportError(.cancelled, "the connection was given up"))
    }

    private func dial() {
        switch state {
        case .idle, .pausing: break
        case .dialing, .connected, .stopped: return
        }
        lastDial = driver.loop.now
        let addresses: [SocketAddress]
        do throws(TransportError) {
            addresses = try relays.addresses(of: server.nodeID, direct: server.addresses)
        } catch {
            return failed(error)
        }
        let dialer = Dialer(
            driver: driver, node: server.nodeID, addresses: addresses, alpn: server.tunnelALPN
        ) { [weak self] result in
            switch result {
            case .success(let connection): self?.established(connection)
            case .failure(let error): self?.failed(error)
            }
        }
        state = .dialing(dialer)
        dialer.start()
    }

    private func established(_ connection: QUICConnection) {
        state = .connected(connection)
        establishedAt = driver.loop.now
        connection.handler = self
        proxy?.tunnelAvailable()
    }

    /// The host takes this device: only now is the connection proven.
    private func confirmed(_ connection: QUICConnection) {
        if wasConnected { notify(.reconnected) }
        wasConnected = true
        finishFirstAttempt(nil)
        notifyPath(connection)
    }

    private func failed(_ error: TransportError) {
        guard onFirstAttempt == nil, error.kind.mayFallBack || error.kind == .limit else { return stop(error) }
        state = .pausing
        timer?.arm(at: driver.loop.now + schedule.next())
    }

    private func stop(_ error: TransportError) {
        stopDialing()
        if onFirstAttempt != nil { finishFirstAttempt(error) } else { notify(.failed(error)) }
    }

    private func stopDialing() {
        // The relays are let go of once.
        if timer != nil { relays.release(server.nodeID) }
        state = .stopped
        timer?.disarm()
        timer = nil
    }

    private func finishFirstAttempt(_ error: TransportError?) {
        let completion = onFirstAttempt
        onFirstAttempt = nil
        completion?(error)
    }

    private func notifyPath(_ connection: QUICConnection) {
        notify(.path(PathEvidence(connection.pathState)))
    }
}

extension ServerLink: TunnelSource {
    var tunnelConnection: QUICConnection? {
        if case .connected(let connection) = state { connection } else { nil }
    }

    func tunnelWanted() {
        guard case .pausing = state, let timer else { return }
        timer.arm(at: min(timer.deadline, lastDial + Self.eagerPause))
    }
}

extension ServerLink: ConnectionHandler {
    func connectionEstablished(_ connection: QUICConnection) {}

    func connectionConfirmed(_ connection: QUICConnection) {
        confirmed(connection)
    }

    /// Hosts open no streams.
    func connection(_ connection: QUICConnection, accepted stream: QUICStream) {
        stream.reset(.notNeeded)
    }

    func connectionMayOpenStreams(_ connection: QUICConnection) {
        proxy?.tunnelAvailable()
    }

    func connectionPathChanged(_ connection: QUICConnection) {
        notifyPath(connection)
    }

    func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd) {
        guard case .connected = state else { return }
        if driver.loop.now - establishedAt >= Self.provenAfter { schedule.reset() }
        let error = reason.error
        if wasConnected, error.kind.mayFallBack || error.kind == .limit { notify(.disconnected(error)) }
        failed(error)
    }
}
