import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTransport
import Glibc

/// One endpoint on one loop.
actor Probe {
    private let loop: EventLoop
    private let pool = ChunkPool()
    private var driver: EndpointDriver?
    private var acceptor: EchoAcceptor?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init() throws(TransportError) {
        loop = try EventLoop(name: "probe")
    }

    /// Sends `count` bytes on one stream and checks that they come back.
    func echo(_ ticket: EndpointTicket, node: NodeID, alpn: String, count: Int) async throws(TransportError) {
        let endpoint = try QUICEndpoint(key: .generate(), alpns: [], entropy: .system, pool: pool)
        let isLoopback = ticket.directAddresses.allSatisfy { $0.ip.isLoopback && !$0.ip.isIPv6 }
        let driver = try EndpointDriver(
            endpoint: endpoint, loop: loop, binding: SocketAddress(isLoopback ? .loopbackV4 : .anyV6, port: 0))
        self.driver = driver
        let bytes = SystemRandomBytes.make(count)
        let result: Result<Int, TransportError> = await withCheckedContinuation { continuation in
            var once: CheckedContinuation<Result<Int, TransportError>, Never>? = continuation
            let finish = { (result: Result<Int, TransportError>) in
                once?.resume(returning: result)
                once = nil
            }
            let dialer = Dialer(driver: driver, node: node, addresses: ticket.directAddresses, alpn: alpn) { result in
                switch result {
                case .failure(let error): finish(.failure(error))
                case .success(let connection):
                    tell(#"{"event":"connected","nodeId":"\#(node)","alpn":"\#(connection.alpn ?? "")"}"#)
                    EchoClient(bytes, finish).start(on: connection)
                }
            }
            dialer.start()
        }
        tell(#"{"event":"echoed","bytes":\#(try result.get())}"#)
        driver.flush()
    }

    /// Sends back what comes on any stream, as long as the process lives.
    func serveEcho(alpn: String, at address: SocketAddress) throws(TransportError) {
        let key = SecretKey.generate()
        let endpoint = try QUICEndpoint(key: key, alpns: [alpn], entropy: .system, pool: pool)
        let acceptor = EchoAcceptor()
        self.acceptor = acceptor
        endpoint.acceptor = acceptor
        let driver = try EndpointDriver(endpoint: endpoint, loop: loop, binding: address)
        self.driver = driver
        let ticket = try EndpointTicket(
            nodeID: key.nodeID, addresses: driver.dialableAddresses.map { TicketAddress.direct($0) })
        tell(#"{"event":"ready","nodeId":"\#(key.nodeID)","ticket":"\#(ticket)"}"#)
    }
}

enum SystemRandomBytes {
    static func make(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        bytes.withUnsafeMutableBytes { SystemRandom.fill($0) }
        return bytes
    }
}

/// Queues bytes as fast as a stream takes them.
final class Sender {
    private var rest: ArraySlice<UInt8> = []
    private var finishes = false

    func send(_ bytes: some Sequence<UInt8>, on stream: QUICStream, finish: Bool) {
        rest += bytes
        if finish { finishes = true }
        goOn(stream)
    }

    func goOn(_ stream: QUICStream) {
        while !rest.isEmpty {
            let count = min(stream.sendCapacity, rest.count)
            guard count > 0 else { break }
            rest.prefix(count).withUnsafeBytes { stream.sendQueue.append($0) }
            rest = rest.dropFirst(count)
        }
        stream.flush()
        if rest.isEmpty, finishes { stream.finish() }
    }
}

final class EchoClient: StreamHandler, ConnectionHandler {
    private let bytes: [UInt8]
    private let finish: (Result<Int, TransportError>) -> Void
    private let sender = Sender()
    private var received: [UInt8] = []
    private var connection: QUICConnection?

    init(_ bytes: [UInt8], _ finish: @escaping (Result<Int, TransportError>) -> Void) {
        self.bytes = bytes
        self.finish = finish
    }

    func start(on connection: QUICConnection) {
        self.connection = connection
        connection.handler = self
        guard let stream = connection.openStream() else {
            return finish(.failure(TransportError(.limit, "the peer allows no stream")))
        }
        stream.handler = self
        sender.send(bytes, on: stream, finish: true)
    }

    func stream(_ stream: QUICStream, received bytes: UnsafeRawBufferPointer, isEnd: Bool) {
        received += bytes
        stream.consume(bytes.count)
        guard isEnd else { return }
        let isEqual = received == self.bytes
        finish(
            isEqual ? .success(received.count) : .failure(TransportError(.protocolViolation, "other bytes came back")))
        connection?.close(.done)
    }

    func streamMaySend(_ stream: QUICStream) { sender.goOn(stream) }

    func stream(_ stream: QUICStream, resetBy code: StreamErrorCode) {
        finish(.failure(TransportError(.unavailable, "the peer reset the stream")))
    }

    func stream(_ stream: QUICStream, stoppedBy code: StreamErrorCode) {}
    func streamClosed(_ stream: QUICStream) {}
    func connectionEstablished(_ connection: QUICConnection) {}
    func connection(_ connection: QUICConnection, accepted stream: QUICStream) {}
    func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd) { finish(.failure(reason.error)) }
}

final class EchoAcceptor: ConnectionAcceptor {
    func endpoint(_ endpoint: QUICEndpoint, accepted connection: QUICConnection) {
        connection.handler = EchoConnection()
    }
}

final class EchoConnection: ConnectionHandler {
    func connectionEstablished(_ connection: QUICConnection) {
        tell(
            #"{"event":"connected","nodeId":"\#(connection.peer.map { "\($0)" } ?? "")","alpn":"\#(connection.alpn ?? "")"}"#
        )
    }

    func connection(_ connection: QUICConnection, accepted stream: QUICStream) { stream.handler = EchoStream() }

    func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd) {
        let error = reason.error
        tell(#"{"event":"error","kind":"\#(error.kind.name)","message":"\#(error.reason)"}"#)
    }
}

final class EchoStream: StreamHandler {
    private let sender = Sender()

    func stream(_ stream: QUICStream, received bytes: UnsafeRawBufferPointer, isEnd: Bool) {
        stream.consume(bytes.count)
        sender.send(bytes, on: stream, finish: isEnd)
    }

    func streamMaySend(_ stream: QUICStream) { sender.goOn(stream) }
    func stream(_ stream: QUICStream, resetBy code: StreamErrorCode) {}
    func stream(_ stream: QUICStream, stoppedBy code: StreamErrorCode) {}
    func streamClosed(_ stream: QUICStream) {}
}
