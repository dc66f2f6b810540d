import CulvertCore
import CulvertIO
import CulvertRelay

/// Serves the page with the metrics, on a listener of its own so that it need not be open to the world. Confined to its
/// loop.
final class MetricsServer: StreamListenerHandler {
    private let server: RelayServer
    private var listener: StreamListener?
    private var connections: [ObjectIdentifier: MetricsConnection] = [:]

    init(at address: SocketAddress, server: RelayServer) throws(TransportError) {
        self.server = server
        listener = try StreamListener(at: .tcp(address), loop: server.loop, handler: self)
    }

    var localAddress: SocketAddress? { listener?.localAddress }

    func close() { listener?.close() }

    func accepted(_ socket: StreamSocket) {
        guard connections.count < RelayServerLimits.metricsConnections else { return socket.reset() }
        let connection = MetricsConnection(socket, server: server) { [weak self] in
            self?.connections[ObjectIdentifier($0)] = nil
        }
        connections[ObjectIdentifier(connection)] = connection
        connection.start()
    }

    func acceptingPaused() { server.metrics.acceptPauses += 1 }
}

/// One request for the metrics.
private final class MetricsConnection: StreamSocketHandler {
    private let socket: StreamSocket
    private let server: RelayServer
    private let ended: (MetricsConnection) -> Void
    private let output: ByteQueue
    private var reader = HeadReader()
    private var isAnswered = false
    private var timer: LoopTimer?

    init(_ socket: StreamSocket, server: RelayServer, ended: @escaping (MetricsConnection) -> Void) {
        self.socket = socket
        self.server = server
        self.ended = ended
        output = ByteQueue(pool: server.pool)
    }

    func start() {
        socket.handler = self
        let timer = LoopTimer(loop: server.loop) { [weak self] in self?.finish() }
        timer.arm(at: server.loop.now + RelayLimits.handshakeTime)
        self.timer = timer
        if socket.isReadable { socketReadable() }
    }

    func socketConnected() {}
    func socketFailed() { finish() }
    func socketWritable() { flush() }

    func socketReadable() {
        let input = server.input
        switch socket.read(into: input, limit: RelayServerLimits.readBytes) {
        case .bytes(let count):
            input.withVectors(from: 0, maxBytes: count) { vectors in
                for vector in vectors {
                    take(UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
                }
            }
            input.removeAll()
            socket.readAgainLater()
        case .wouldBlock: break
        case .end, .failed: if isAnswered || output.isEmpty { finish() }
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) {
        guard !isAnswered else { return }
        var rest = bytes
        do throws(HeadFault) {
            guard let head = try reader.next(&rest) else { return }
            answer(RelayAnswer.metrics(to: try RelayRequest(head)) { server.metrics.openMetrics(server.state) })
        } catch {
            answer(RelayAnswer.bytes(to: error))
        }
    }

    private func answer(_ bytes: [UInt8]) {
        isAnswered = true
        bytes.withUnsafeBytes { output.append($0) }
        flush()
    }

    private func flush() {
        if case .failed = socket.write(from: output) { return finish() }
        if isAnswered, output.isEmpty { socket.shutdownWrite() }
    }

    private func finish() {
        timer?.disarm()
        timer = nil
        socket.close()
        ended(self)
    }
}
