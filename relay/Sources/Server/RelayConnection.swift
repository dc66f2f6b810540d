import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

/// One connection to the relay's HTTP server, which may become a client of the relay. Confined to its loop.
///
/// The protocol's values decide; this class moves bytes between them and the stream, and keeps the time.
final class RelayConnection: LoopFlusher {
    enum Phase {
        /// An HTTP request is awaited.
        case head
        /// A WebSocket, on which the client has to prove its key.
        case handshake
        /// A client.
        case established
        /// The last bytes are written; what comes is dropped.
        case closing
        case closed
    }

    let server: RelayServer
    let stream: any ByteStream
    var phase = Phase.head
    // In `head`.
    var reader: HeadReader? = HeadReader()
    var requests = 0
    // In `handshake` and later.
    var decoder = WebSocketDecoder(sender: .client, messageLimit: RelayLimits.frame)
    var version = RelayVersion.v2
    var token: TokenHash?
    var handshake: RelayServerHandshake?
    var session: RelayServerSession?
    var nodeID: NodeID?
    var key: PeerKey?
    var lastRoute = LastRoute()
    // Output.
    private let output: ByteQueue
    private var backlog = RelayBacklog()
    var isFlushScheduled = false
    /// Since when bytes wait of which none was taken.
    private var blockedSince: Instant?
    // Time.
    private var bucket: TokenBucket?
    private var pausedUntil: Instant?
    /// When the phase must be over; a session keeps its own time.
    var phaseDeadline: Instant
    private var timer: LoopTimer?

    init(_ stream: any ByteStream, server: RelayServer) {
        self.stream = stream
        self.server = server
        output = ByteQueue(pool: server.pool)
        phaseDeadline = server.loop.now + server.quota.handshakeTime
        bucket = TokenBucket(bytesPerSecond: server.quota.bytesPerSecond, at: server.loop.now)
    }

    func start() {
        stream.handler = self
        timer = LoopTimer(loop: server.loop) { [weak self] in self?.timeCame() }
        rearm()
        if stream.isReadable { socketReadable() }
    }

    // MARK: Input

    /// Takes what was read, wherever the phases change in it.
    private func consume(_ bytes: UnsafeMutableRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            switch phase {
            case .head: takeRequest(&rest)
            case .handshake, .established: takeMessages(&rest)
            case .closing, .closed: return
            }
        }
    }

    private func read() {
        let input = server.input
        switch stream.read(into: input, limit: RelayServerLimits.readBytes) {
        case .bytes(let count):
            input.withVectors(from: 0, maxBytes: count) { vectors in
                for vector in vectors {
                    consume(UnsafeMutableRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
                }
            }
            input.removeAll()
            spend(count)
        case .wouldBlock: break
        case .end, .failed: finish()
        }
    }

    private func spend(_ count: Int) {
        guard phase != .closed else { return }
        if let until = bucket?.spend(count, at: server.loop.now) {
            server.metrics.throttled += 1
            pausedUntil = until
            rearm()
        } else {
            stream.readAgainLater()
        }
    }

    // MARK: Output

    /// Queues a frame or an answer that carries no datagrams.
    func reply(_ bytes: [UInt8]) {
        guard phase != .closing, phase != .closed, backlog.admitReply(bytes: bytes.count) else { return }
        bytes.withUnsafeBytes { output.append($0) }
        server.loop.flushLater(self)
    }

    /// Tells the client how its connection is.
    func tell(_ status: RelayStatus) {
        guard let session else { return }
        reply(WebSocketEncoder.message(session.report(status), mask: nil))
    }

    /// Queues datagrams of another node; false when the queue is full.
    @inline(__always)
    func deliver(_ view: RelayDatagramView, from source: PeerKey, count: Int) -> Bool {
        guard phase == .established, server.pool.chunksInUse < server.chunkLimit else { return false }
        let header = view.forwarded(from: source)
        let contents = view.contents
        return withUnsafeTemporaryAllocation(byteCount: WebSocketEncoder.serverHeadCount, alignment: 16) { room in
            let head = WebSocketEncoder.writeHead(header, contentsCount: contents.count, into: room)
            if !backlog.admit(bytes: head + contents.count, datagrams: count) {
                // Many senders in one iteration: the socket may still have room.
                flush()
                guard phase == .established, backlog.admit(bytes: head + contents.count, datagrams: count) else {
                    return false
                }
            }
            output.append(UnsafeRawBufferPointer(rebasing: room[..<head]))
            output.append(contents)
            server.loop.flushLater(self)
            return true
        }
    }

    func flush() {
        guard phase != .closed, !output.isEmpty else { return }
        switch stream.write(from: output) {
        case .wrote(let count):
            backlog.sent(count)
            if count > 0 { blockedSince = nil }
        case .wouldBlock: break
        case .failed: return finish()
        }
        if !output.isEmpty {
            if blockedSince == nil {
                blockedSince = server.loop.now
                rearm()
            }
        } else if phase == .closing {
            stream.shutdownWrite()
        }
    }

    // MARK: Time

    /// The timer is set for the first thing that is due; what has moved on is found out when it fires.
    func rearm() {
        var deadline = session?.deadline ?? phaseDeadline
        if phase == .closing { deadline = phaseDeadline }
        if let pausedUntil { deadline = min(deadline, pausedUntil) }
        if let blockedSince { deadline = min(deadline, blockedSince + RelayServerLimits.stallTime) }
        timer?.arm(at: deadline)
    }

    private func timeCame() {
        let now = server.loop.now
        if let until = pausedUntil, now >= until {
            pausedUntil = nil
            if stream.isReadable { socketReadable() }
            if phase == .closed { return }
        }
        if let since = blockedSince, now >= since + RelayServerLimits.stallTime { return abandon(.stalled) }
        switch phase {
        case .closed: return
        case .closing: if now >= phaseDeadline { return finish() }
        case .head, .handshake: if now >= phaseDeadline { return abandon(.handshakeTime) }
        case .established:
            switch session?.expire(random: Self.random(), at: now) {
            case .send(let frame): reply(WebSocketEncoder.message(frame, mask: nil))
            case .dead: return abandon(.silent)
            case .notYet, nil: break
            }
            // Quiet for a while: what was kept for speed goes back.
            decoder.trim()
            backlog.trim()
        }
        if phase != .closed { rearm() }
    }

    static func random() -> UInt64 {
        var number: UInt64 = 0
        withUnsafeMutableBytes(of: &number) { SystemRandom.fill($0) }
        return number
    }

    // MARK: Ends

    /// Ends the connection after what is queued, with a Close frame on a WebSocket.
    func end(_ code: WebSocketCloseCode?) {
        guard phase != .closing, phase != .closed else { return }
        if phase != .head { reply(WebSocketEncoder.close(code, mask: nil)) }
        leave()
        phase = .closing
        phaseDeadline = server.loop.now + RelayServerLimits.closeTime
        pausedUntil = nil
        server.loop.flushLater(self)
        rearm()
        if output.isEmpty { stream.shutdownWrite() }
    }

    /// Ends the connection at once: the other side would not read anything.
    private func abandon(_ reason: RelayServerMetrics.Refusal) {
        server.metrics.refused(reason)
        leave()
        finish()
    }

    /// Closes.
    func finish() {
        guard phase != .closed else { return }
        leave()
        phase = .closed
        timer?.disarm()
        timer = nil
        output.removeAll()
        stream.close()
        server.forget(self, at: stream.peerAddress)
    }

    /// Takes the client out of the registry.
    private func leave() {
        lastRoute = LastRoute()
        session = nil
        guard let key else { return }
        self.key = nil
        server.remove(self, from: key)
    }
}

extension RelayConnection: StreamSocketHandler {
    func socketConnected() {}

    func socketReadable() {
        guard pausedUntil == nil else { return }
        switch phase {
        case .closed: return
        case .closing: drain()
        case .head, .handshake, .established: read()
        }
    }

    func socketWritable() { flush() }

    func socketFailed() {
        if phase == .head, let tls = stream as? TLSStream, tls.failure != nil { server.metrics.refused(.tls) }
        finish()
    }

    /// Drops what still comes, so that closing does not become a reset that overtakes our last bytes.
    private func drain() {
        switch stream.read(into: server.input, limit: RelayServerLimits.readBytes) {
        case .bytes:
            server.input.removeAll()
            stream.readAgainLater()
        case .wouldBlock: break
        case .end, .failed: finish()
        }
    }
}
