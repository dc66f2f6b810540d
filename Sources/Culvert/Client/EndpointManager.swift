import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTransport
import CulvertTunnel

/// What an endpoint needs.
public struct EndpointConfiguration: Sendable {
    /// Where the identity and the paired servers are kept.
    public var stateDirectory: StateDirectory
    /// Its relays, and which kinds of path it may use.
    public var relay = RelayOptions()

    /// An endpoint with its state in `stateDirectory`.
    public init(stateDirectory: StateDirectory) {
        self.stateDirectory = stateDirectory
    }
}

/// The client's endpoint: one identity, one UDP socket and one event loop for all paired servers.
///
/// Close it with ``close()``, which tells the servers; letting it go ends everything without a word.
public actor EndpointManager {
    /// Names one of the manager's connections.
    struct ConnectionKey: Hashable, Sendable {
        fileprivate let number: Int
    }

    private struct Connection {
        let link: ServerLink
        let proxy: LoopbackProxy
        let events: AsyncStream<ServerEvent>.Continuation
    }

    private let loop: EventLoop
    private let relayOptions: RelayOptions
    private let store: ServerStore
    private let pool = ChunkPool()
    private var driver: EndpointDriver?
    private var relays: EndpointRelays?
    private var connections: [ConnectionKey: Connection] = [:]
    private var pairings: [Int: PairingAttempt] = [:]
    private var lastKey = 0

    deinit {
        loop.stop()
    }

    /// The manager runs on its event loop, where the sockets are.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Loads or creates the identity and opens the UDP socket. Throws `state` or `localListener`.
    public init(_ configuration: EndpointConfiguration) async throws(TransportError) {
        let key = try configuration.stateDirectory.identity()
        store = ServerStore(configuration.stateDirectory)
        relayOptions = configuration.relay
        loop = try EventLoop(name: "culvert-endpoint")
        do {
            try start(key)
        } catch {
            loop.stop()
            throw error
        }
    }

    private func start(_ key: SecretKey) throws(TransportError) {
        let endpoint = try QUICEndpoint(key: key, alpns: [], entropy: .system, pool: pool)
        let driver = try EndpointDriver(
            endpoint: endpoint, loop: loop, binding: SocketAddress(.anyV6, port: 0), policy: relayOptions.path)
        relays = EndpointRelays(relayOptions, side: .client, key: key, driver: driver, pool: pool)
        self.driver = driver
    }

    /// Pairs with the server that `link` invites to, once, and remembers it under `name` or its own name.
    ///
    /// Throws `metadata` for an invite that is not valid, `authentication` for one that was used, `peerIdentity` when
    /// another node answers, and availability kinds when nobody does. A failure after the request was sent is never
    /// retried: the invite may be used up. Cancelling the task gives up, with `cancelled` before that point.
    public func pair(with link: String, name: String? = nil, deviceName: String? = nil) async throws(TransportError)
        -> PairedServer
    {
        guard let driver, let relays else { throw Self.closed }
        let invite = try Invite.parse(
            link, now: SystemClock.wall(), allowInsecureRelay: relayOptions.allowsInsecure)
        let request = PairingRequest(
            pairingToken: invite.payload.pairingToken.text, deviceName: deviceName ?? HostConfiguration.machineName)
        // What could go wrong afterwards is tried before, so that a full disk or a taken name does not cost the invite.
        if let name { try store.checkName(name, for: invite.endpoint.nodeID) }
        try store.prepare()
        lastKey += 1
        let key = lastKey
        pairings[key] = PairingAttempt(request, with: invite, driver: driver, relays: relays)
        defer { pairings[key] = nil }
        let result = await withTaskCancellationHandler {
            await answer(to: key)
        } onCancel: {
            Task { await self.cancelPairing(key) }
        }
        return try store.add(invite, grant: try result.get(), name: name, now: SystemClock.wall())
    }

    // The operation of a cancellation handler does not run on the actor's executor, but the methods it calls do.
    private func answer(to key: Int) async -> Result<PairingGrant, TransportError> {
        guard let attempt = pairings[key] else { return .failure(Self.givenUp) }
        return await withCheckedContinuation { answered in attempt.start { answered.resume(returning: $0) } }
    }

    private func cancelPairing(_ key: Int) {
        pairings.removeValue(forKey: key)?.cancel()
    }

    /// Connects to a paired server and opens its loopback proxy. Throws when the server cannot be reached now, when it
    /// is not the paired one, when it has revoked this device, or when the port is taken. Cancelling the task gives up.
    public func connect(to server: PairedServer, _ options: ConnectionOptions = ConnectionOptions())
        async throws(TransportError) -> ServerConnection
    {
        guard let driver, let relays else { throw Self.closed }
        let endpoint = try server.endpoint(allowInsecureRelay: relayOptions.allowsInsecure)
        let (events, continuation) = AsyncStream.makeStream(
            of: ServerEvent.self, bufferingPolicy: .bufferingNewest(Self.bufferedEvents))
        let gate: LocalGate.Mode =
            switch options.localAuth {
            case .token: .token(server.deviceToken.text)
            case .sameUser: .sameUser
            case .open: .open
            }
        let proxy = try LoopbackProxy(
            ProxyConfiguration(
                port: options.port, gate: gate, maximumConnections: options.maxConnections,
                deviceToken: server.deviceToken.text),
            loop: loop, pool: pool)
        let link: ServerLink
        do throws(TransportError) {
            link = try ServerLink(
                server: server, relayURLs: endpoint.relayURLs, driver: driver, relays: relays
            ) { event in
                continuation.yield(event)
                if case .failed = event { continuation.finish() }
            }
        } catch {
            proxy.close()
            throw error
        }
        link.proxy = proxy
        proxy.source = link
        lastKey += 1
        let key = ConnectionKey(number: lastKey)
        connections[key] = Connection(link: link, proxy: proxy, events: continuation)
        let failure = await withTaskCancellationHandler {
            await firstAttempt(of: key)
        } onCancel: {
            Task { await self.close(key, grace: .zero) }
        }
        if let failure {
            await close(key, grace: .zero)
            throw failure
        }
        return ServerConnection(baseURL: "http://127.0.0.1:\(proxy.port)", events: events, manager: self, id: key)
    }

    private func firstAttempt(of key: ConnectionKey) async -> TransportError? {
        guard let link = connections[key]?.link else { return Self.givenUp }
        return await withCheckedContinuation { started in link.start { started.resume(returning: $0) } }
    }

    /// Closes a connection; see ``ServerConnection/close(grace:)``.
    func close(_ key: ConnectionKey, grace: Duration) async {
        guard let connection = connections[key] else { return }
        await GracePeriod.wait(grace, loop: loop) { connection.proxy.stopAccepting(whenDrained: $0) }
        connection.proxy.close()
        connection.link.close()
        connection.events.finish()
        connections[key] = nil
        driver?.flush()
    }

    /// Closes all connections at once, the socket and the event loop. The manager is of no use afterwards.
    public func close() async {
        guard let driver else { return }
        // From here on nothing new begins.
        self.driver = nil
        for key in pairings.keys { cancelPairing(key) }
        for key in connections.keys { await close(key, grace: .zero) }
        driver.close()
        relays?.close()
        relays = nil
        loop.stop()
    }

    private static let givenUp = TransportError(.cancelled, "given up before the server answered")
    private static let closed = TransportError(.cancelled, "the endpoint is closed")
    /// Events kept for a reader that is slow; older ones are dropped.
    private static let bufferedEvents = 64
}
