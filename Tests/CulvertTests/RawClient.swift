import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTransport
import CulvertTunnel

@testable import Culvert

/// An actor on an event loop of its own, for what is confined to one.
actor LoopBench {
    let loop: EventLoop
    let pool = ChunkPool()

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init() throws { loop = try EventLoop(name: "bench") }

    deinit { loop.stop() }

    /// Runs `body` on the loop.
    func run<T: Sendable>(_ body: @Sendable (isolated LoopBench) async throws -> T) async rethrows -> T {
        try await body(self)
    }

    /// Waits, one iteration of the loop after the other, until `condition` holds; false after `limit`.
    @discardableResult
    func wait(atMost limit: Duration = .seconds(10), until condition: () -> Bool) async -> Bool {
        let end = SystemClock.monotonic() + limit
        while !condition() {
            if SystemClock.monotonic() > end { return false }
            await withCheckedContinuation { continuation in
                let timer = LoopTimer(loop: loop) { continuation.resume() }
                timer.arm(at: loop.now + .milliseconds(2))
            }
        }
        return true
    }
}

/// A stream as a misbehaving peer uses it: everything by hand.
final class RawStream: StreamHandler {
    private(set) var stream: QUICStream?
    var received: [UInt8] = []
    var isEnded = false
    var resetCode: StreamErrorCode?
    var isStopped = false
    var isClosed = false
    /// Whether received bytes are acknowledged, which opens the window.
    var consumes = true
    /// Bytes received and not yet acknowledged.
    private var withheld = 0
    private var unsent: ArraySlice<UInt8> = []
    private var finishes = false

    init(_ stream: QUICStream) {
        self.stream = stream
        stream.handler = self
    }

    func send(_ bytes: [UInt8], finish: Bool = false) {
        unsent += bytes
        finishes = finishes || finish
        goOn()
    }

    func consumeAll() {
        consumes = true
        stream?.consume(withheld)
        withheld = 0
    }

    private func goOn() {
        guard let stream else { return }
        while !unsent.isEmpty, case let room = stream.sendCapacity, room > 0 {
            let part = unsent.prefix(room)
            part.withUnsafeBytes { stream.sendQueue.append($0) }
            unsent = unsent.dropFirst(part.count)
        }
        stream.flush()
        if unsent.isEmpty, finishes { stream.finish() }
    }

    func stream(_ stream: QUICStream, received bytes: UnsafeRawBufferPointer, isEnd: Bool) {
        received += bytes
        if consumes { stream.consume(bytes.count) } else { withheld += bytes.count }
        if isEnd { isEnded = true }
    }

    func streamMaySend(_ stream: QUICStream) { goOn() }
    func stream(_ stream: QUICStream, resetBy code: StreamErrorCode) { resetCode = code }
    func stream(_ stream: QUICStream, stoppedBy code: StreamErrorCode) { isStopped = true }

    func streamClosed(_ stream: QUICStream) {
        isClosed = true
        self.stream = nil
    }

    /// What came, as text.
    var text: String { String(decoding: received, as: UTF8.self) }
}

/// A connection as a misbehaving client uses it.
final class RawConnection: ConnectionHandler {
    let connection: QUICConnection
    var end: ConnectionEnd?

    init(_ connection: QUICConnection) {
        self.connection = connection
        connection.handler = self
    }

    func open() -> RawStream? { connection.openStream().map(RawStream.init) }

    func connectionEstablished(_ connection: QUICConnection) {}
    func connection(_ connection: QUICConnection, accepted stream: QUICStream) {}
    func connectionMayOpenStreams(_ connection: QUICConnection) {}
    func connectionPathChanged(_ connection: QUICConnection) {}
    func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd) { end = reason }
}

extension LoopBench {
    /// A QUIC endpoint with `key` on this loop.
    func driver(_ key: SecretKey, alpns: [String] = [], acceptor: (any ConnectionAcceptor)? = nil) throws
        -> EndpointDriver
    {
        let endpoint = try QUICEndpoint(key: key, alpns: alpns, entropy: .system, pool: pool)
        endpoint.acceptor = acceptor
        return try EndpointDriver(endpoint: endpoint, loop: loop, binding: SocketAddress(.loopbackV4, port: 0))
    }

    /// Dials `node` and waits for the connection.
    func dial(_ driver: EndpointDriver, _ node: NodeID, _ addresses: [SocketAddress], alpn: String) async throws
        -> RawConnection
    {
        var result: Result<RawConnection, TransportError>?
        let dialer = Dialer(driver: driver, node: node, addresses: addresses, alpn: alpn) {
            result = $0.map(RawConnection.init)
        }
        dialer.start()
        await wait { result != nil }
        guard let result else { throw Failure("no result") }
        return try result.get()
    }

    /// Dials the host of `tunnel` with the key of its paired client.
    func dial(_ tunnel: Tunnel, key: SecretKey? = nil, alpn: String = ALPN.http[0]) async throws -> (
        EndpointDriver, RawConnection
    ) {
        let driver = try driver(try key ?? tunnel.directory.state("client").identity())
        let connection = try await dial(driver, tunnel.host.nodeID, tunnel.server.addresses, alpn: alpn)
        return (driver, connection)
    }
}

extension Tunnel {
    /// The preface that the host accepts.
    var preface: [UInt8] {
        get throws { try TunnelPreface(deviceToken: server.deviceToken.text).encoded() }
    }
}
