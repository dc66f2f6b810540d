import CulvertCore
import CulvertIO
import CulvertTunnel

/// Serves the owner's requests as HTTP/1.1 with JSON on a Unix socket of mode 0600. One request a connection.
/// Confined to the loop.
final class ControlServer {
    /// Answers a request.
    typealias Answer = (ControlRequest) -> ControlResponse

    fileprivate let answer: Answer
    fileprivate let loop: EventLoop
    fileprivate let pool = ChunkPool()
    private var listener: StreamListener?
    private var connections: [ObjectIdentifier: ControlConnection] = [:]

    /// Requests served at a time; the owner's tools make one each.
    private static let maximumConnections = 32

    /// Opens the socket at `path`. Throws `localListener` when it is in use.
    init(path: String, loop: EventLoop, answer: @escaping Answer) throws(TransportError) {
        self.answer = answer
        self.loop = loop
        listener = try StreamListener(at: .unix(path), loop: loop, handler: self)
    }

    /// Stops serving and removes the socket.
    func close() {
        listener?.close()
        for connection in Array(connections.values) { connection.close() }
    }

    fileprivate func ended(_ connection: ControlConnection) {
        connections[ObjectIdentifier(connection)] = nil
    }
}

extension ControlServer: StreamListenerHandler {
    func accepted(_ socket: StreamSocket) {
        guard connections.count < Self.maximumConnections else { return socket.close() }
        let connection = ControlConnection(socket: socket, server: self)
        connections[ObjectIdentifier(connection)] = connection
        connection.start()
    }

    func acceptingPaused() {}
}

/// One request to the control socket and its answer.
private final class ControlConnection {
    private let socket: StreamSocket
    private unowned let server: ControlServer
    private let input: ByteQueue
    private let output: ByteQueue
    private var parser = HTTPHeadParser()
    private var head: (head: HTTPHead, length: Int)?
    private var isAnswered = false
    private var timer: LoopTimer?

    /// The largest body of a request; names and numbers are all there is.
    private static let maximumBody = 16 * 1024
    /// How long a request and its answer may take.
    private static let timeLimit = Duration.seconds(5)

    init(socket: StreamSocket, server: ControlServer) {
        self.socket = socket
        self.server = server
        input = ByteQueue(pool: server.pool)
        output = ByteQueue(pool: server.pool)
    }

    func start() {
        socket.handler = self
        let timer = LoopTimer(loop: server.loop) { [weak self] in self?.close() }
        self.timer = timer
        timer.arm(at: server.loop.now + Self.timeLimit)
        read()
    }

    func close() {
        timer?.disarm()
        timer = nil
        socket.handler = nil
        socket.close()
        server.ended(self)
    }

    private func read() {
        while !isAnswered, socket.isReadable {
            let known = input.count
            switch socket.read(into: input, limit: Self.maximumBody + TunnelLimits.head - known) {
            case .bytes(let count): take(input.bytes(from: known, count: count))
            case .wouldBlock: return
            case .end, .failed: return close()
            }
        }
    }

    private func take(_ bytes: [UInt8]) {
        if head == nil {
            switch parser.feed(bytes) {
            case .needMore: return
            case .invalid: return respond(.notFound)
            case .complete(let parsed, let length): head = (parsed, length)
            }
        }
        guard let (head, length) = head else { return }
        let lengths = head.values(of: "content-length").map { Int(String(decoding: $0, as: UTF8.self)) }
        guard lengths.count <= 1, let bodyLength = lengths.first ?? 0, (0...Self.maximumBody).contains(bodyLength)
        else {
            return respond(.notFound)
        }
        guard input.count >= length + bodyLength else { return }
        let body = input.bytes(from: length, count: bodyLength)
        guard case .origin(let path) = head.target,
            let request = ControlRequest(method: head.method, path: path, body: body)
        else { return respond(.notFound) }
        respond(server.answer(request))
    }

    private func respond(_ response: ControlResponse) {
        isAnswered = true
        let head = """
            HTTP/1.1 \(response.status) \(response.status < 300 ? "OK" : "Error")\r
            Content-Type: application/json\r
            Content-Length: \(response.body.count)\r
            Connection: close\r
            \r

            """
        (Array(head.utf8) + response.body).withUnsafeBytes { output.append($0) }
        write()
    }

    private func write() {
        while !output.isEmpty, socket.isWritable {
            switch socket.write(from: output) {
            case .wrote: continue
            case .wouldBlock: return
            case .failed: return close()
            }
        }
        if output.isEmpty { close() }
    }
}

extension ControlConnection: StreamSocketHandler {
    func socketConnected() {}
    func socketReadable() { read() }
    func socketWritable() { if isAnswered { write() } }
    func socketFailed() { close() }
}
