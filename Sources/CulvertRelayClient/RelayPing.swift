import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

/// Asks a relay for `/ping` once or several times on one connection: the time from a request to its answer is the
/// round trip. Confined to the loop; calls its completion once, unless it is cancelled.
package final class RelayPing {
    /// Gets the round trips, in order, or why there are none.
    package typealias Completion = (Result<[Duration], TransportError>) -> Void

    private let relay: RelayURL
    private let loop: EventLoop
    private let count: Int
    private let input: ByteQueue
    private let output: ByteQueue
    private var connector: RelayConnector?
    private var stream: (any ByteStream)?
    private var exchange = PingExchange()
    private var sentAt = Instant.never
    private var times: [Duration] = []
    private var timer: LoopTimer?
    private var completion: Completion?

    /// Prepares to ask `relay` `count` times.
    package init(
        _ relay: RelayURL, count: Int = 1, _ credentials: RelayCredentials, loop: EventLoop, pool: ChunkPool,
        completion: @escaping Completion
    ) {
        self.relay = relay
        self.loop = loop
        self.count = count
        self.completion = completion
        input = ByteQueue(pool: pool)
        output = ByteQueue(pool: pool)
        connector = RelayConnector(to: relay, credentials, loop: loop, pool: pool) { [weak self] result in
            switch result {
            case .success(let stream): self?.connected(stream)
            case .failure(let error): self?.finish(.failure(error))
            }
        }
    }

    /// Begins.
    package func start() {
        timer = LoopTimer(loop: loop) { [weak self] in self?.finish(.failure(Self.tooSlow)) }
        connector?.start()
    }

    /// Gives up without calling the completion.
    package func cancel() {
        completion = nil
        connector?.cancel()
        finish(.failure(Self.tooSlow))
    }

    private func connected(_ stream: any ByteStream) {
        self.stream = stream
        stream.handler = self
        ask()
        if stream.isReadable { socketReadable() }
    }

    private func ask() {
        let request = PingExchange.request(to: relay, isLast: times.count + 1 == count)
        request.withUnsafeBytes { output.append($0) }
        // The clock, not the loop's time: what happens before in this iteration is not the relay's doing.
        sentAt = SystemClock.monotonic()
        timer?.arm(at: loop.now + RelayClientLimits.pingTime)
        socketWritable()
    }

    private func answered() {
        times.append(SystemClock.monotonic() - sentAt)
        if times.count == count { finish(.success(times)) } else { ask() }
    }

    private func finish(_ result: Result<[Duration], TransportError>) {
        timer?.disarm()
        timer = nil
        connector = nil
        stream?.handler = nil
        stream?.close()
        stream = nil
        let completion = completion
        self.completion = nil
        completion?(result)
    }

    private static let tooSlow = TransportError(.timedOut, "the relay did not answer in time")
    private static let broken = TransportError(.unavailable, "the connection to the relay broke")
}

extension RelayPing: StreamSocketHandler {
    /// The connector has handled that.
    package func socketConnected() {}

    /// Called by the stream.
    package func socketReadable() {
        guard let stream else { return }
        switch stream.read(into: input, limit: RelayLimits.head) {
        case .wouldBlock: return
        case .end, .failed: return finish(times.isEmpty ? .failure(Self.broken) : .success(times))
        case .bytes: break
        }
        let bytes = input.bytes(from: 0, count: input.count)
        input.removeAll()
        do throws(TransportError) {
            if try takesAnswer(bytes) { answered() }
        } catch {
            finish(.failure(error))
        }
        self.stream?.readAgainLater()
    }

    private func takesAnswer(_ bytes: [UInt8]) throws(TransportError) -> Bool {
        let result = bytes.withUnsafeBytes { bytes -> Result<Bool, TransportError> in
            var rest = bytes
            do throws(TransportError) {
                var isAnswered = false
                while !rest.isEmpty { isAnswered = try exchange.next(&rest) || isAnswered }
                return .success(isAnswered)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Called by the stream.
    package func socketWritable() {
        guard let stream, !output.isEmpty else { return }
        if case .failed = stream.write(from: output) { finish(.failure(Self.broken)) }
    }

    /// Called by the stream.
    package func socketFailed() { finish(.failure(Self.broken)) }
}
