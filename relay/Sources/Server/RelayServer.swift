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
    private(set) var quota: RelayServerQuota
    private(set) var access: RelayAccess
    var metrics = RelayServerMetrics()
    private var registry = RelayRegistry<RelayConnection>()
    private var census = ConnectionCensus()
    private var connections: [ObjectIdentifier: RelayConnection] = [:]
    private var listeners: [StreamListener] = []
    private var isStopping = false

    init(loop: EventLoop, quota: RelayServerQuota, access: RelayAccess) {
        self.loop = loop
        self.quota = quota
        self.access = access
        input = ByteQueue(pool: pool)
    }

    /// How many nodes are connected.
    var nodeCount: Int { registry.count }
    /// How many connections there are.
    var connectionCount: Int { census.total }

    /// Listens at `address`; the address with the real port.
    func listen(at address: SocketAddress) throws(TransportError) -> SocketAddress {
        let listener = try StreamListener(at: .tcp(address), loop: loop, handler: self)
        listeners.append(listener)
        return listener.localAddress ?? address
    }

    /// Takes new rules; those who are not admitted any more are disconnected.
    func replace(quota: RelayServerQuota, access: RelayAccess) {
        self.quota = quota
        self.access = access
        for connection in Array(connections.values) { connection.reconsider() }
    }

    /// Stops accepting and tells every client that the relay restarts.
    func stop() {
        isStopping = true
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

    /// Passes datagrams on, or drops them.
    @inline(__always)
    func forward(_ view: RelayDatagramView, from source: PeerKey, last: inout LastRoute) {
        let count = view.datagramCount
        guard count > 0 else { return }
        if last.generation != registry.generation || last.peer != view.peer {
            last.target = registry.route(from: source, to: view.peer)
            last.generation = registry.generation
            last.peer = view.peer
        }
        guard let target = last.target else {
            metrics.datagramsUnknown += count
            return
        }
        guard target.deliver(view, from: source, count: count) else {
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
    fileprivate(set) var target: RelayConnection?
    fileprivate var peer: PeerKey?
    fileprivate var generation: UInt64 = 0
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
        let connection = RelayConnection(socket, server: self)
        connections[ObjectIdentifier(connection)] = connection
        connection.start()
    }

    private func refuse(_ socket: StreamSocket, _ reason: RelayServerMetrics.Refusal) {
        metrics.refused(reason)
        // With a reset no state of it remains here, not even in the kernel.
        socket.reset()
    }

    func acceptingPaused() { metrics.acceptPauses += 1 }
}
