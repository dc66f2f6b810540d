import CNgtcp2
import CulvertCore
import CulvertIO
import CulvertIdentity

/// Who decides about connections that peers open.
package protocol ConnectionAcceptor: AnyObject {
    /// A client is on its way in; set the connection's handler before returning.
    func endpoint(_ endpoint: QUICEndpoint, accepted connection: QUICConnection)
}

/// A QUIC endpoint without a socket: a routing table from connection IDs to connections, a policy for packets that
/// belong to nobody, and the connections' deadlines. One endpoint is client and server at once.
///
/// Confined to one thread; datagrams and the time go in, datagrams and the next deadline come out.
package final class QUICEndpoint {
    /// Who takes incoming connections; without one, clients get no answer.
    package weak var acceptor: (any ConnectionAcceptor)?
    /// Called when there is something to flush or the next deadline moved.
    package var wantsAttention: () -> Void = {}
    /// Whether a path takes datagrams now. A connection whose path does not is held back until ``resumeHeld()``.
    package var mayWrite: (NetworkPath) -> Bool = { _ in true }

    let surroundings: QUICConnection.Surroundings
    let alpns: [String]
    /// Keys Retry tokens; it changes with the process.
    let retryKey: [UInt8]
    let pathBuffer = PathBuffer()
    var routes: [ConnectionID: QUICConnection] = [:]
    var resetTokens: [ResetToken: QUICConnection] = [:]
    var ended = EndedConnections()
    /// Packets that answer those that belong to nobody.
    var answers = StatelessAnswers()
    /// How many clients are in the middle of their handshakes.
    var handshakes = 0
    /// How many incoming connections there are.
    var accepted = 0
    private var deadlines = DeadlineHeap<QUICConnection>()
    private var flushOrder: [QUICConnection] = []
    private var spareOrder: [QUICConnection] = []
    /// Connections with something to send whose paths take nothing.
    private var held: [QUICConnection] = []
    private var live: [ObjectIdentifier: QUICConnection] = [:]
    private var isClosed = false

    /// An endpoint that proves `key` and accepts connections for one of `alpns`, each with so many streams at a time.
    package init(
        key: SecretKey, alpns: [String], entropy: Entropy, pool: ChunkPool,
        maximumStreams: Int = TransportLimits.streamsPerConnection
    ) throws(TransportError) {
        // From the node's key, so that a process that starts again can end the connections of the one before.
        let resetKey = SHA256.digest(Array("culvert stateless reset".utf8) + key.seed)
        surroundings = QUICConnection.Surroundings(
            credentials: try NodeCredentials(key: key), entropy: entropy, pool: pool, resetKey: resetKey,
            maximumStreams: maximumStreams)
        retryKey = entropy.bytes(32)
        self.alpns = alpns
    }

    /// Begins to dial `node` on `path` for the application protocol `alpn`. Set the connection's handler at once;
    /// the first packet leaves with the next flush.
    package func connect(to node: NodeID, on path: NetworkPath, alpn: String, now: Instant) throws(TransportError)
        -> QUICConnection
    {
        guard !isClosed else { throw TransportError(.cancelled, "the endpoint is closed") }
        let connection = try QUICConnection(
            .client(expecting: node), path: path, alpns: [alpn], in: surroundings, now: now)
        add(connection)
        connectionWantsFlush(connection)
        return connection
    }

    /// All connections that are not over.
    package var connections: [QUICConnection] { Array(live.values) }

    /// When ``expire(now:)`` is due.
    package var nextDeadline: Instant { deadlines.nextDeadline }

    /// Does what is due at `now`.
    package func expire(now: Instant) {
        while let connection = deadlines.popDue(at: now) { connection.expire(now: now) }
    }

    /// Writes datagrams into `batch`. Returns true when there is more than fitted.
    package func flush(into batch: DatagramBatch, now: Instant) -> Bool {
        answers.write(into: batch)
        // Connections that ask for attention meanwhile go on the other list, so that each gets one turn.
        swap(&flushOrder, &spareOrder)
        for connection in spareOrder {
            // What closes is written all the same: nobody waits for it to arrive.
            guard connection.isClosing || mayWrite(connection.path) else {
                held.append(connection)
                continue
            }
            connection.isAwaitingFlush = false
            if connection.write(into: batch, now: now) { connectionWantsFlush(connection) }
        }
        spareOrder.removeAll(keepingCapacity: true)
        return !flushOrder.isEmpty || !answers.isEmpty
    }

    /// A path takes datagrams again: the connections that were held back have their turn.
    package func resumeHeld() {
        guard !held.isEmpty else { return }
        flushOrder += held
        held.removeAll(keepingCapacity: true)
        wantsAttention()
    }

    /// Ends the handshakes on paths from `local`, which will not get through, for the reason of `error`.
    package func failHandshakes(from local: SocketAddress, _ error: TransportError) {
        for connection in connections where connection.path.local == local && connection.isHandshaking {
            connection.finish(.failed(error), closePacket: nil)
        }
    }

    /// Ends all connections that are still there, without a word to their peers, and opens no more. Their handlers are
    /// told, so that nothing is left that holds on to them.
    func close() {
        isClosed = true
        acceptor = nil
        for connection in connections { connection.finish(.closedLocally, closePacket: nil) }
    }

    // MARK: Table

    func add(_ connection: QUICConnection) {
        connection.owner = self
        live[ObjectIdentifier(connection)] = connection
        for id in connection.localIDs { route(id, to: connection) }
        if connection.isServer {
            accepted += 1
            handshakes += 1
        }
    }

    func route(_ id: ConnectionID, to connection: QUICConnection) {
        routes[id] = connection
        connection.routedIDs.append(id)
    }
}

extension QUICEndpoint: ConnectionOwner {
    func connection(_ connection: QUICConnection, issued id: ConnectionID) {
        route(id, to: connection)
    }

    func connection(_ connection: QUICConnection, retired id: ConnectionID) {
        routes[id] = nil
        connection.routedIDs.removeAll { $0 == id }
    }

    func connection(_ connection: QUICConnection, expects token: ResetToken) {
        resetTokens[token] = connection
        connection.expectedTokens.append(token)
    }

    func connection(_ connection: QUICConnection, forgets token: ResetToken) {
        resetTokens[token] = nil
        connection.expectedTokens.removeAll { $0 == token }
    }

    func connectionWantsFlush(_ connection: QUICConnection) {
        guard !connection.isAwaitingFlush else { return }
        connection.isAwaitingFlush = true
        flushOrder.append(connection)
        wantsAttention()
    }

    func connection(_ connection: QUICConnection, wantsWakeAt deadline: Instant) {
        deadlines.set(deadline, for: connection)
    }

    func connectionLeftHandshake(_ connection: QUICConnection) {
        if connection.isServer { handshakes -= 1 }
    }

    func connection(_ connection: QUICConnection, endedWith closePacket: [UInt8]?) {
        guard live.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        deadlines.remove(connection)
        for id in connection.routedIDs { routes[id] = nil }
        for token in connection.expectedTokens { resetTokens[token] = nil }
        ended.remember(
            connection.routedIDs, closePacket: closePacket, until: connection.now + connection.lingerTime)
        if connection.isServer {
            accepted -= 1
            if connection.alpn == nil { handshakes -= 1 }
        }
    }
}
