import CulvertCore
import CulvertIO
import CulvertTransport

/// One local connection from its accept to its end: the gate looks at the first request's head, then the connection
/// waits for a stream, then a ``TunnelPump`` takes over. Confined to the loop.
final class ProxyConnection {
    private enum State {
        /// The head of the first request is being read.
        case reading
        /// Admitted; there is no stream yet.
        case waiting
        /// A refusal is on its way to the client.
        case refusing
        case pumping(TunnelPump)
        case over
    }

    private let socket: StreamSocket
    private unowned let proxy: LoopbackProxy
    private var state = State.reading
    private var gate: LocalGate
    /// What the client sent so far; the gate has seen all of it.
    private var received: ByteQueue
    private var timer: LoopTimer?
    /// The rest of a refusal that the socket would not take.
    private var refusal: ArraySlice<UInt8> = []

    init(socket: StreamSocket, proxy: LoopbackProxy) {
        self.socket = socket
        self.proxy = proxy
        received = ByteQueue(pool: proxy.pool)
        let configuration = proxy.configuration
        let peerUser: UInt32? =
            if case .sameUser = configuration.gate { socket.peerUserID } else { nil }
        gate = LocalGate(mode: configuration.gate, peerUser: peerUser, ownUser: proxy.ownUser, now: proxy.loop.now)
    }

    func start(isOverLimit: Bool) {
        socket.handler = self
        let timer = LoopTimer(loop: proxy.loop) { [weak self] in self?.timeIsUp() }
        self.timer = timer
        if isOverLimit {
            refuse(.limit)
        } else {
            timer.arm(at: gate.deadline)
            read()
        }
    }

    /// Opens a stream on `connection` and lets it run; false while the host allows no more streams.
    func open(on connection: QUICConnection) -> Bool {
        guard case .waiting = state else { return true }
        guard let stream = connection.openStream() else { return false }
        timer?.disarm()
        timer = nil
        proxy.preface.withUnsafeBytes { stream.sendQueue.append($0) }
        received.bytes(from: 0, count: received.count).withUnsafeBytes { stream.sendQueue.append($0) }
        received.removeAll()
        stream.flush()
        let pump = TunnelPump(
            .proxy, socket: socket, stream: stream, unwritten: received, peerEnded: false, loop: proxy.loop
        ) { [weak self] in self?.finish() }
        state = .pumping(pump)
        pump.start()
        return true
    }

    /// Resets the local connection.
    func abort() {
        if case .pumping(let pump) = state { return pump.abort() }
        socket.reset()
        finish()
    }

    private func read() {
        guard case .reading = state else { return }
        while socket.isReadable, case .reading = state {
            let known = received.count
            switch socket.read(into: received, limit: TunnelLimits.headRead) {
            case .bytes(let count):
                act(gate.receive(received.bytes(from: known, count: count), at: proxy.loop.now))
            case .wouldBlock: return
            case .end: act(gate.ended())
            case .failed: abort()
            }
        }
    }

    private func act(_ action: LocalGate.Action) {
        switch action {
        case .wait: timer?.arm(at: gate.deadline)
        case .admit:
            state = .waiting
            timer?.arm(at: proxy.loop.now + TunnelLimits.tunnelWait)
            proxy.admitted(self)
        case .refuse(let refusal): refuse(refusal)
        case .close:
            socket.close()
            finish()
        }
    }

    private func timeIsUp() {
        switch state {
        case .reading: act(gate.expired(at: proxy.loop.now))
        case .waiting:
            proxy.stoppedWaiting(self)
            refuse(proxy.source?.tunnelConnection == nil ? .hostUnreachable : .limit)
        case .refusing:
            socket.close()
            finish()
        case .pumping, .over: break
        }
    }

    // MARK: Refusal

    private func refuse(_ reason: Refusal) {
        state = .refusing
        refusal = reason.response[...]
        timer?.arm(at: proxy.loop.now + TunnelLimits.lingerTime)
        writeRefusal()
    }

    /// Writes what is left of the refusal, then stays until the client has closed, for a moment at the most: closing
    /// with unread bytes would reset the connection and could destroy the answer on its way.
    private func writeRefusal() {
        while !refusal.isEmpty, socket.isWritable {
            switch refusal.withUnsafeBytes({ socket.write($0) }) {
            case .wrote(let count): refusal.removeFirst(count)
            case .wouldBlock: return
            case .failed: return abort()
            }
            if refusal.isEmpty { socket.shutdownWrite() }
        }
        drainRefused()
    }

    private func drainRefused() {
        while socket.isReadable {
            switch socket.discard() {
            case .bytes: continue
            case .wouldBlock: return
            case .end:
                guard refusal.isEmpty else { return }
                socket.close()
                return finish()
            case .failed: return abort()
            }
        }
    }

    private func finish() {
        if case .over = state { return }
        if case .waiting = state { proxy.stoppedWaiting(self) }
        state = .over
        socket.handler = nil
        timer?.disarm()
        timer = nil
        proxy.ended(self)
    }
}

extension ProxyConnection: StreamSocketHandler {
    func socketConnected() {}

    func socketReadable() {
        switch state {
        case .reading: read()
        case .refusing: drainRefused()
        // A client that waits sends nothing new that matters; what it sends is read once it has a stream.
        case .waiting, .pumping, .over: break
        }
    }

    func socketWritable() {
        if case .refusing = state { writeRefusal() }
    }

    func socketFailed() {
        abort()
    }
}
