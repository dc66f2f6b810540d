import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

/// One relay: takes connections, knows who is there, and passes datagrams on. Confined to its loop.
final class RelayServer {
    let loop: EventLoop
    /// Where all connections read to; empty between reads, so idle clients hold no input buffer.
    let input: ByteQueue
    /// The memory of all queues.
    let pool = ChunkPool()
    /// How many chunks of the pool may be in use before datagrams are dropped.
    var chunkLimit = RelayServerLimits.queuedBytesAltogether / IOLimits.chunkBytes
    private(set) var quota: RelayServerQuota
    private(set) var access: RelayAccess
    /// What new connections are shown; nil for a relay without TLS.
    private var identity: TLSIdentity?
    var metrics = RelayServerMetrics()
    private var registry = RelayRegistry<RelayConnection>()
    private var census = ConnectionCensus()
    private var connections: [ObjectIdentifier: RelayConnection] = [:]
    private var listeners: [StreamListener] = []
    private let startTime = SystemClock.wall()

    init(loop: EventLoop, configuration: RelayConfiguration) {
        self.loop = loop
        quota = configuration.quota
        access = configuration.access
        identity = configuration.identity
        input = ByteQueue(pool: pool)
    }

    /// How it is now.
    var state: RelayServerState {
        var state = RelayServerState()
        state.nodes = registry.count
        state.connections = census.total
        state.connectionsLimit = quota.connections
        state.certificateEnd = identity.map { Int($0.expiry.seconds) }
        state.startTime = Int(startTime.seconds)
        return state
    }

    /// Listens at `address`; the address with the real port.
    func listen(at address: SocketAddress) throws(TransportError) -> SocketAddress {
        let listener = try StreamListener(at: .tcp(address), loop: loop, handler: self)
        listeners.append(listener)
        return listener.localAddress ?? address
    }

    /// Takes new rules and a new certificate. Those who are not admitted any more are disconnected; all others stay, with
    /// the certificate that they have seen.
    func reload(_ configuration: RelayConfiguration) {
        quota = configuration.quota
        access = configuration.access
        identity = configuration.identity
        for connection in Array(connections.values) { connection.reconsider() }
    }

    /// Stops accepting and tells every client that the relay restarts.
    func stop() {
        for listener in listeners { listener.close() }
        listeners.removeAll()
        for connection in Array(connections.values) { connection.goAway() }
    }

    // MARK: For connections

    /// A client has proved to be `node`.
    func admit(_ connection: RelayConnection, as node: PeerKey) {
        metrics.clientsAdmitted += 1
        let arrival = registry.join(node, by: connection)
        arrival.displaced?.tell(.sameIDConnected)
        if let evicted = arrival.evicted {
            metrics.refused(.nodeFull)
            evicted.end(.policyViolation)
        }
    }

    /// A client has left, and will not be written to any more.
    func remove(_ connection: RelayConnection, from node: PeerKey) {
        let departure = registry.leave(node, by: connection)
        departure.restored?.tell(.healthy)
        guard !departure.told.isEmpty else { return }
        let frame = WebSocketEncoder.message(RelayFrame.endpointGone(node).encoded, mask: nil)
        for other in departure.told { other.reply(frame) }
    }

    /// A connection is closed.
    func forget(_ connection: RelayConnection, at address: SocketAddress?) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        census.leave(address?.ip ?? .anyV6)
    }

    /// Passes datagrams of `source`, which is `node`, on, or drops them.
    @inline(__always)
    func forward(_ view: RelayDatagramView, from source: RelayConnection, as node: PeerKey) {
        let count = view.datagramCount
        guard count > 0 else { return }
        if source.lastRoute.generation != registry.generation || source.lastRoute.peer != view.peer {
            source.lastRoute = LastRoute(
                target: registry.route(from: node, to: view.peer), peer: view.peer, generation: registry.generation)
        }
        guard let target = source.lastRoute.target else {
            metrics.datagramsUnknown += count
            return
        }
        // May end any connection that turns out to be broken, `source` included.
        guard target.deliver(view, from: node, count: count) else {
            metrics.datagramsOverflowed += count
            return
        }
        metrics.framesForwarded += 1
        metrics.datagramsForwarded += count
        metrics.bytesForwarded += view.contents.count
    }
}

/// Where a client sent to last: most of its datagrams go there again.
struct LastRoute {
    var target: RelayConnection?
    var peer: PeerKey?
    /// The registry's, when this was the route.
    var generation: UInt64 = 0
}

extension RelayServer: StreamListenerHandler {
    func accepted(_ socket: StreamSocket) {
        let address = socket.peerAddress
        switch census.enter(address?.ip ?? .anyV6, quota) {
        case .taken: break
        case .full: return refuse(socket, .full)
        case .addressFull: return refuse(socket, .addressFull)
        }
        metrics.connections += 1
        var tls: TLSStream?
        if let identity {
            // Fails for want of memory only.
            tls = try? TLSStream(over: socket, as: .server(identity), pool: pool)
            guard tls != nil else {
                census.leave(address?.ip ?? .anyV6)
                return refuse(socket, .tls)
            }
        }
        let connection = RelayConnection(tls ?? socket, server: self)
        connections[ObjectIdentifier(connection)] = connection
        connection.start()
        tls?.begin()
    }

    private func refuse(_ socket: StreamSocket, _ reason: RelayServerMetrics.Refusal) {
        metrics.refused(reason)
        // With a reset no state of it remains here, not even in the kernel.
        socket.reset()
    }

    func acceptingPaused() { metrics.acceptPauses += 1 }
}
