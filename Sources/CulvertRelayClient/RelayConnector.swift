import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

/// Makes a byte stream to a relay: looks its name up, connects (through the environment's HTTP proxy, where there is
/// one), and agrees on TLS for `https`. Confined to the loop; calls its completion once, unless it is cancelled.
package final class RelayConnector {
    /// Gets the stream, which may be readable already, or why there is none.
    package typealias Completion = (Result<any ByteStream, TransportError>) -> Void

    private enum Step {
        case idle
        case lookUp(NameLookUp)
        case connect(StreamDialer)
        case proxy(StreamSocket, ConnectRequest, HeadReader)
        case secure(TLSStream)
        case done
    }

    /// Told what has been reached: `resolved`, `connected`, `secured`.
    package var onStage: (RelayStage) -> Void = { _ in }

    private let relay: RelayURL
    private let credentials: RelayCredentials
    private let loop: EventLoop
    private let pool: ChunkPool
    private var proxy: HTTPProxy?
    private var step = Step.idle
    private var deadline: LoopTimer?
    private var completion: Completion?

    /// Prepares to connect to `relay`.
    package init(
        to relay: RelayURL, _ credentials: RelayCredentials, loop: EventLoop, pool: ChunkPool,
        completion: @escaping Completion
    ) {
        self.relay = relay
        self.credentials = credentials
        self.loop = loop
        self.pool = pool
        self.completion = completion
    }

    /// Begins.
    package func start() {
        let deadline = LoopTimer(loop: loop) { [weak self] in self?.fail(Self.tooSlow) }
        deadline.arm(at: loop.now + RelayClientLimits.connectTime)
        self.deadline = deadline
        do throws(TransportError) {
            proxy = try credentials.proxies.proxy(for: relay)
            let lookUp = NameLookUp(of: proxy?.host ?? relay.host, loop: loop) { [weak self] in self?.found($0) }
            step = .lookUp(lookUp)
            lookUp.start()
        } catch {
            fail(error)
        }
    }

    /// Gives up without calling the completion.
    package func cancel() {
        completion = nil
        abandon()
    }

    private func found(_ addresses: [IPAddress]) {
        guard !addresses.isEmpty else { return fail(proxy == nil ? Self.noAddress : Self.noProxy) }
        onStage(.resolved)
        let port = proxy?.port ?? relay.port
        let dialer = StreamDialer(
            addresses: addresses.map { .tcp(SocketAddress($0, port: port)) }, within: RelayClientLimits.connectTime,
            loop: loop
        ) { [weak self] in self?.connected($0) }
        step = .connect(dialer)
        dialer.start()
    }

    private func connected(_ socket: StreamSocket?) {
        guard let socket else { return fail(proxy == nil ? Self.noAnswer : Self.noProxy) }
        guard let proxy else { return reached(socket) }
        let request = ConnectRequest(to: relay, through: proxy)
        step = .proxy(socket, request, HeadReader())
        socket.handler = self
        // Some hundred bytes on a fresh socket: taken at once, or it is broken.
        let sent = request.request.withUnsafeBytes { socket.write($0) }
        guard sent == .wrote(request.request.count) else { return fail(Self.noProxy) }
        if socket.isReadable { socketReadable() }
    }

    /// The TCP connection ends at the relay.
    private func reached(_ socket: StreamSocket) {
        onStage(.connected)
        guard relay.isSecure else { return succeed(socket) }
        do throws(TransportError) {
            let tls = try TLSStream(
                over: socket, as: .client(try credentials.trust(), host: relay.host), pool: pool)
            step = .secure(tls)
            tls.handler = self
            tls.begin()
        } catch {
            socket.close()
            fail(error)
        }
    }

    private func readProxyAnswer(_ socket: StreamSocket, _ request: ConnectRequest, _ reader: HeadReader) {
        let input = ByteQueue(pool: pool)
        var reader = reader
        switch socket.read(into: input, limit: RelayLimits.head) {
        case .wouldBlock: return
        case .end, .failed: return fail(Self.noProxy)
        case .bytes: break
        }
        let bytes = input.bytes(from: 0, count: input.count)
        var isWhole = false
        let answer = bytes.withUnsafeBytes { bytes -> Result<MessageHead?, HeadFault> in
            var rest = bytes
            do throws(HeadFault) {
                let head = try reader.next(&rest)
                // A relay does not speak first.
                isWhole = rest.isEmpty
                return .success(head)
            } catch {
                return .failure(error)
            }
        }
        step = .proxy(socket, request, reader)
        guard case .success(let head) = answer, isWhole else { return fail(Self.noProxy) }
        guard let head else { return socket.readAgainLater() }
        do throws(TransportError) {
            try request.accept(head)
            reached(socket)
        } catch {
            fail(error)
        }
    }

    private func succeed(_ stream: any ByteStream) {
        step = .done
        stream.handler = nil
        finish(.success(stream))
    }

    private func fail(_ error: TransportError) {
        abandon()
        finish(.failure(error))
    }

    private func abandon() {
        let step = step
        self.step = .done
        switch step {
        case .idle, .done: break
        case .lookUp(let lookUp): lookUp.cancel()
        case .connect(let dialer): dialer.cancel()
        case .proxy(let socket, _, _): socket.close()
        case .secure(let tls): tls.close()
        }
        deadline?.disarm()
        deadline = nil
    }

    private func finish(_ result: Result<any ByteStream, TransportError>) {
        deadline?.disarm()
        deadline = nil
        let completion = completion
        self.completion = nil
        completion?(result)
    }

    private static let tooSlow = TransportError(.timedOut, "the relay did not answer in time")
    private static let noAddress = TransportError(
        .unavailable, "the relay's name has no address; check the relay URL and this machine's DNS")
    private static let noAnswer = TransportError(.unavailable, "the relay does not accept connections")
    private static let noProxy = TransportError(
        .unavailable, "the HTTP proxy (HTTPS_PROXY) did not lead to the relay; check it, or name the relay in NO_PROXY")
}

extension RelayConnector: StreamSocketHandler {
    /// TLS is agreed on.
    package func socketConnected() {
        guard case .secure(let tls) = step else { return }
        onStage(.secured)
        succeed(tls)
    }

    /// Called by the socket to a proxy.
    package func socketReadable() {
        guard case .proxy(let socket, let request, let reader) = step else { return }
        readProxyAnswer(socket, request, reader)
    }

    /// Nothing waits to be written.
    package func socketWritable() {}

    /// Called by the socket to a proxy, or when TLS failed.
    package func socketFailed() {
        switch step {
        case .secure(let tls): fail(tls.failure ?? Self.noAnswer)
        case .idle, .lookUp, .connect, .proxy, .done: fail(Self.noProxy)
        }
    }
}

/// How far a connection to a relay has come.
package enum RelayStage: Hashable, Sendable {
    /// An address is known.
    case resolved
    /// TCP is connected, through a proxy where there is one.
    case connected
    /// TLS is agreed on.
    case secured
    /// It is a WebSocket of this version of the relay protocol.
    case upgraded(RelayVersion)
    /// The relay has confirmed this node.
    case confirmed
}
