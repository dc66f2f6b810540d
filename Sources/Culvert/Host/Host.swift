import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTransport
import CulvertTunnel

/// Shares an HTTP server with paired devices until it is shut down.
///
/// One event loop and one UDP socket; the owner's control socket is served on the same loop.
public actor Host {
    /// The host's identity.
    public nonisolated let nodeID: NodeID
    /// What clients call it.
    public nonisolated let name: String
    /// What happens. One reader.
    public nonisolated let events: AsyncStream<HostEvent>

    private nonisolated let loop: EventLoop
    private let continuation: AsyncStream<HostEvent>.Continuation
    private let configuration: HostConfiguration
    private let key: SecretKey
    /// Held as long as the host runs, so that no second one serves from the same directory.
    private var lock: LockFile?
    private var driver: EndpointDriver?
    private var relays: HostRelays?
    private var adapter: HostAdapter?
    private var store: HostStore?
    private var control: ControlServer?
    /// Whether the target's name is being looked up.
    private var isLookingUp = false

    deinit {
        loop.stop()
    }

    /// The host runs on its event loop, where the sockets are.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Loads or creates the identity, opens the sockets and begins to serve. Throws `state` when the state directory
    /// cannot be used or another host uses it, `localListener` when the UDP address is taken.
    public init(_ configuration: HostConfiguration) async throws(TransportError) {
        guard DisplayName.isAcceptable(configuration.name) else {
            throw TransportError(.framing, "the host's name must be visible text of at most 128 bytes")
        }
        self.configuration = configuration
        name = configuration.name
        key = try configuration.stateDirectory.identity()
        lock = try configuration.stateDirectory.lockHost()
        nodeID = key.nodeID
        (events, continuation) = AsyncStream.makeStream(
            of: HostEvent.self, bufferingPolicy: .bufferingNewest(Self.bufferedEvents))
        loop = try EventLoop(name: "culvert-host")
        do {
            try start()
        } catch {
            loop.stop()
            throw error
        }
        // So that the first invite names the fastest relay.
        if let relays { await GracePeriod.wait(Self.relayPatience, loop: loop) { relays.whenDecided($0) } }
    }

    private func start() throws(TransportError) {
        let pool = ChunkPool()
        let store = try HostStore(path: configuration.stateDirectory.hostDatabase)
        try store.purgeInvites(now: SystemClock.wall())
        let adapter = HostAdapter(
            store: store, targetAddresses: configuration.target.literalAddresses, loop: loop, pool: pool)
        adapter.notify = { [weak self] notice in self?.assumeIsolated { $0.tell(notice) } }
        adapter.lookUpTarget = { [weak self] in self?.assumeIsolated { $0.lookUpTarget() } }
        let endpoint = try QUICEndpoint(
            key: key, alpns: ALPN.http + ALPN.pairing, entropy: .system, pool: pool,
            maximumStreams: configuration.maxStreams)
        endpoint.acceptor = adapter
        let driver = try openSocket(for: endpoint, store)
        self.driver = driver
        self.store = store
        self.adapter = adapter
        control = try ControlServer(path: configuration.stateDirectory.hostSocket, loop: loop) { [weak self] request in
            self?.assumeIsolated { $0.answer(request) } ?? .notFound
        }
        try startRelays(driver: driver, store, pool: pool)
        lookUpTarget()
    }

    private func startRelays(driver: EndpointDriver, _ store: HostStore, pool: ChunkPool) throws(TransportError) {
        guard configuration.relay.path.allowsRelay else { return }
        let relays = HostRelays(
            EndpointRelays(configuration.relay, side: .host, key: key, driver: driver, pool: pool), of: nodeID,
            choosingFrom: configuration.relay.relays, loop: loop, pool: pool)
        relays.onHome = { [weak self] isConnected in
            self?.assumeIsolated { _ = $0.continuation.yield(.relay(isConnected: isConnected)) }
        }
        relays.onFailure = { [weak self] error in self?.assumeIsolated { _ = $0.continuation.yield(.error(error)) } }
        relays.promise(try promisedRelays(store))
        self.relays = relays
        relays.start()
    }

    /// The relays at which someone may look for this host. Those that may not be used
    /// any more, as the developer switch is gone, are left out.
    private func promisedRelays(_ store: HostStore) throws(TransportError) -> Set<RelayURL> {
        let texts = try store.promisedRelays(now: SystemClock.wall())
        return Set(
            texts.compactMap { try? RelayURL($0, allowInsecure: configuration.relay.allowsInsecure) })
    }

    /// Binds the configured address; otherwise the port of the last time, where paired devices look for the host, or
    /// one of the kernel's choice when no device would miss the old one.
    private func openSocket(for endpoint: QUICEndpoint, _ store: HostStore) throws(TransportError) -> EndpointDriver {
        if let address = configuration.listen {
            return try bind(address, endpoint)
        }
        if let lastPort = try configuration.stateDirectory.lastPort() {
            do {
                return try bind(SocketAddress(.anyV6, port: lastPort), endpoint)
            } catch {
                guard try store.devices().allSatisfy({ $0.revokedAt != nil }) else { throw Self.portTaken }
            }
        }
        let driver = try bind(SocketAddress(.anyV6, port: 0), endpoint)
        try configuration.stateDirectory.rememberPort(driver.localAddress.port)
        return driver
    }

    private func bind(_ address: SocketAddress, _ endpoint: QUICEndpoint) throws(TransportError) -> EndpointDriver {
        try EndpointDriver(
            endpoint: endpoint, loop: loop, binding: address, policy: configuration.relay.path)
    }

    // MARK: Invites and devices

    /// How clients find the host now, as an iroh ticket.
    public var ticket: String {
        get throws(TransportError) { "\(try currentTicket())" }
    }

    private func currentTicket() throws(TransportError) -> EndpointTicket {
        let relay = relays?.published.map { TicketAddress.relay($0.text) }
        let direct = (driver?.dialableAddresses ?? []).map(TicketAddress.direct)
        return try EndpointTicket(nodeID: nodeID, addresses: direct + (relay.map { [$0] } ?? []))
    }

    /// Makes an invite that pairs one device within `lifetime`, or the configured time.
    public func makeInvite(validFor lifetime: Duration? = nil) throws(TransportError) -> IssuedInvite {
        guard let store else { throw Self.closed }
        let lifetime = lifetime ?? configuration.inviteLifetime
        guard lifetime >= .seconds(1), lifetime <= Invite.maximumLifetime else {
            throw TransportError(.limit, "an invite's life must be between 1 second and 30 days")
        }
        let now = SystemClock.wall()
        let expiresAt = now + lifetime
        let token = PairingToken.generate()
        let relay = relays?.published
        let payload = InvitePayload(
            name: name, pairingToken: token, preference: .tunnelOnly, expiresAt: expiresAt,
            tunnel: ServerMetadata(ticket: try currentTicket(), relayURLs: relay.map { [$0] } ?? []))
        let invite = try Invite.make(payload, key: key, allowInsecureRelay: configuration.relay.allowsInsecure)
        try store.createInvite(
            tokenHash: token.hash.bytes, transports: .tunnel, relay: relay?.text, expiresAt: expiresAt, now: now)
        relays?.promise(try promisedRelays(store))
        return IssuedInvite(link: invite.link, expiresAt: expiresAt)
    }

    /// All devices that were ever paired, in order.
    public func devices() throws(TransportError) -> [Device] {
        guard let store, let adapter else { throw Self.closed }
        let connected = adapter.connectedDevices
        return try store.devices().map { record in
            Device(
                id: record.id, name: record.name, createdAt: record.createdAt, lastSeenAt: record.lastSeenAt,
                isConnected: connected.contains(record.id), isRevoked: record.revokedAt != nil)
        }
    }

    /// Cuts a device off, at once and for good. Throws `authentication` when there is no such device.
    public func revoke(_ deviceID: String) throws(TransportError) {
        guard let store, let adapter else { throw Self.closed }
        if try store.revoke(deviceID, now: SystemClock.wall()) {
            adapter.disconnect(deviceID: deviceID)
        } else if try !store.devices().contains(where: { $0.id == deviceID }) {
            throw Self.unknownDevice
        }
    }

    /// Gives a device another name. Throws `authentication` when there is no such device, `framing` when the name is
    /// empty.
    public func rename(_ deviceID: String, to name: String) throws(TransportError) {
        guard let store else { throw Self.closed }
        guard DeviceName.sanitized(name) != nil else {
            throw TransportError(.framing, "the name must have at least one visible character")
        }
        guard try store.rename(deviceID, to: name) else { throw Self.unknownDevice }
    }

    // MARK: End

    /// Takes no new requests, gives those in flight `grace` to finish, and closes everything.
    public func shutdown(grace: Duration) async {
        guard let adapter, let driver else { return }
        await GracePeriod.wait(grace, loop: loop) { adapter.stopAccepting(whenDrained: $0) }
        control?.close()
        control = nil
        adapter.close()
        driver.close()
        relays?.close()
        relays = nil
        self.adapter = nil
        self.driver = nil
        store = nil
        lock = nil
        continuation.finish()
        loop.stop()
    }

    // MARK: Inside

    private func tell(_ notice: HostNotice) {
        switch notice {
        case .paired(let name): continuation.yield(.paired(name))
        case .connected(let id, let path):
            continuation.yield(.deviceConnected(deviceName(id)))
            continuation.yield(.path(device: deviceName(id), PathEvidence(path)))
        case .disconnected(let id): continuation.yield(.deviceDisconnected(deviceName(id)))
        case .pathChanged(let id, let path):
            continuation.yield(.path(device: deviceName(id), PathEvidence(path)))
        case .failed(let error): continuation.yield(.error(error))
        case .refusedPairing: continuation.yield(.error(Self.pairingRefused))
        case .targetUnreachable: continuation.yield(.error(Self.targetUnreachable))
        }
    }

    private func deviceName(_ id: String) -> String {
        (try? store?.devices().first { $0.id == id }?.name) ?? DeviceName.placeholder
    }

    /// Looks the target's name up away from the loop, and uses what comes back for new streams.
    private func lookUpTarget() {
        guard case .tcp(let host, let port) = configuration.target, configuration.target.literalAddresses.isEmpty,
            !isLookingUp
        else { return }
        isLookingUp = true
        Task {
            let addresses = await NameResolver.addresses(of: host)
            isLookingUp = false
            if !addresses.isEmpty { adapter?.targetAddresses = addresses.map { .tcp(SocketAddress($0, port: port)) } }
        }
    }

    private static let closed = TransportError(.cancelled, "the host is shut down")
    private static let portTaken = TransportError(
        .localListener,
        """
        another program has the UDP port under which paired devices know this host (it is in host.port); end that \
        program, or choose another port with --listen and pair the devices again
        """)
    private static let pairingRefused = TransportError(
        .authentication, "a pairing was refused: its invite is unknown, used or expired, or came too often")
    private static let targetUnreachable = TransportError(
        .unavailable, "the HTTP server does not answer, so clients get status 503; start it, or check --target")
    private static let unknownDevice = TransportError(
        .authentication, "no device has this ID; culvert devices lists them")
    /// How long a start waits for relays to be measured.
    private static let relayPatience = Duration.seconds(3)
    /// Events kept for a reader that is slow; older ones are dropped.
    private static let bufferedEvents = 256
}

extension HTTPTarget {
    /// The addresses that need no look-up.
    var literalAddresses: [StreamAddress] {
        switch self {
        case .unix(let path): [.unix(path)]
        // RFC 6761 section 6.3: localhost is loopback without asking anybody.
        case .tcp("localhost", let port):
            [IPAddress.loopbackV4, .loopbackV6].map { .tcp(SocketAddress($0, port: port)) }
        case .tcp(let host, let port): IPAddress(host).map { [.tcp(SocketAddress($0, port: port))] } ?? []
        }
    }
}
