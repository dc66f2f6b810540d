import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTestSupport
import CulvertTransport

/// Remembers everything that a stream tells.
final class RecordingStream: StreamHandler {
    var bytes: [UInt8] = []
    var isEnded = false
    var resetCode: StreamErrorCode?
    var stopCode: StreamErrorCode?
    var isClosed = false
    /// Whether received bytes are acknowledged at once.
    var consumes = true
    /// Whether received bytes are sent back.
    var echoes = false
    private var toSend: ArraySlice<UInt8> = []
    private var finishesAfterSending = false

    func stream(_ stream: QUICStream, received bytes: UnsafeRawBufferPointer, isEnd: Bool) {
        if consumes { stream.consume(bytes.count) }
        if echoes { send(Array(bytes), on: stream, finish: isEnd) } else { self.bytes += bytes }
        if isEnd { isEnded = true }
    }

    /// Queues `bytes`, as fast as the stream takes them.
    func send(_ bytes: [UInt8], on stream: QUICStream, finish: Bool) {
        toSend += bytes
        if finish { finishesAfterSending = true }
        streamMaySend(stream)
    }

    func streamMaySend(_ stream: QUICStream) {
        while !toSend.isEmpty {
            let count = min(stream.sendCapacity, toSend.count)
            guard count > 0 else { break }
            toSend.prefix(count).withUnsafeBytes { stream.sendQueue.append($0) }
            toSend = toSend.dropFirst(count)
        }
        stream.flush()
        if toSend.isEmpty, finishesAfterSending { stream.finish() }
    }

    func stream(_ stream: QUICStream, resetBy code: StreamErrorCode) { resetCode = code }
    func stream(_ stream: QUICStream, stoppedBy code: StreamErrorCode) { stopCode = code }
    func streamClosed(_ stream: QUICStream) { isClosed = true }
}

/// Remembers everything that a connection tells, and accepts streams.
final class RecordingConnection: ConnectionHandler {
    var isEstablished = false
    var isConfirmed = false
    var end: ConnectionEnd?
    var accepted: [(stream: QUICStream, handler: RecordingStream)] = []
    var mayOpenCount = 0
    var pathChanges = 0
    var echoes = false
    var consumes = true

    func connectionEstablished(_ connection: QUICConnection) { isEstablished = true }
    func connectionConfirmed(_ connection: QUICConnection) { isConfirmed = true }

    func connection(_ connection: QUICConnection, accepted stream: QUICStream) {
        let handler = RecordingStream()
        handler.echoes = echoes
        handler.consumes = consumes
        stream.handler = handler
        accepted.append((stream, handler))
    }

    func connectionMayOpenStreams(_ connection: QUICConnection) { mayOpenCount += 1 }
    func connectionPathChanged(_ connection: QUICConnection) { pathChanges += 1 }
    func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd) { end = reason }
}

/// Accepts connections and remembers them.
final class RecordingAcceptor: ConnectionAcceptor {
    var connections: [(connection: QUICConnection, handler: RecordingConnection)] = []
    var echoes = false
    var consumes = true

    func endpoint(_ endpoint: QUICEndpoint, accepted connection: QUICConnection) {
        let handler = RecordingConnection()
        handler.echoes = echoes
        handler.consumes = consumes
        connection.handler = handler
        connections.append((connection, handler))
    }
}

/// A client, a server and the network between them.
struct TestPair {
    static let alpn = "test/1"
    let network: SimulatedNetwork
    let client: SimulatedNetwork.Node
    let server: SimulatedNetwork.Node
    let acceptor: RecordingAcceptor
    let serverKey: SecretKey
    let clientKey: SecretKey

    init(seed: UInt64, _ conditions: LinkConditions = LinkConditions(), echoes: Bool = false, consumes: Bool = true)
        throws
    {
        network = SimulatedNetwork(seed: seed, conditions)
        acceptor = RecordingAcceptor()
        acceptor.echoes = echoes
        acceptor.consumes = consumes
        serverKey = .generate()
        clientKey = .generate()
        client = try network.add(1, key: clientKey)
        server = try network.add(2, key: serverKey, alpns: [Self.alpn], acceptor: acceptor)
    }

    /// Begins to dial the server.
    func dial(expecting node: NodeID? = nil, alpn: String = TestPair.alpn) throws -> (
        QUICConnection, RecordingConnection
    ) {
        let connection = try client.endpoint.connect(
            to: node ?? serverKey.nodeID, on: NetworkPath(local: client.address, remote: server.address), alpn: alpn,
            now: network.now)
        let handler = RecordingConnection()
        connection.handler = handler
        return (connection, handler)
    }

    /// Dials and completes the handshake.
    func connect() throws -> (QUICConnection, RecordingConnection) {
        let (connection, handler) = try dial()
        network.run(until: { handler.isEstablished || handler.end != nil })
        return (connection, handler)
    }
}

/// Bytes that depend on the seed.
func randomBytes(_ count: Int, seed: UInt64) -> [UInt8] {
    var generator = SplitMix64(seed: seed)
    return (0..<(count + 7) / 8).flatMap { _ in withUnsafeBytes(of: generator.next(), Array.init) }.prefix(count).map {
        $0
    }
}
