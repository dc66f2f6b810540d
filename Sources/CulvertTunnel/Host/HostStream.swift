import CulvertCore
import CulvertIO
import CulvertTransport

/// One tunnel stream on the host, from its first byte to its end: the preface is read and judged, the target is
/// connected, then a ``TunnelPump`` takes over. A refusal affects this stream only. Confined to the loop.
final class HostStream {
    private enum State {
        case preface(TunnelPrefaceDecoder)
        case connecting(StreamDialer)
        case pumping(TunnelPump)
        case over
    }

    private let stream: QUICStream
    private unowned let connection: HostConnection
    private let loop: EventLoop
    private var state = State.preface(TunnelPrefaceDecoder())
    /// The request's bytes so far. They stay unacknowledged until the target takes them, so the stream's window
    /// bounds them.
    private let request: ByteQueue
    private var requestEnded = false
    private var timer: LoopTimer?

    init(_ stream: QUICStream, connection: HostConnection, loop: EventLoop, pool: ChunkPool) {
        self.stream = stream
        self.connection = connection
        self.loop = loop
        request = ByteQueue(pool: pool)
        let timer = LoopTimer(loop: loop) { [weak self] in self?.refuse(.prefaceTimeout) }
        self.timer = timer
        timer.arm(at: loop.now + TunnelLimits.prefaceTime)
    }

    private func readPreface(_ decoder: TunnelPrefaceDecoder, _ bytes: UnsafeRawBufferPointer) {
        var decoder = decoder
        switch decoder.feed(bytes) {
        case .needMore:
            state = .preface(decoder)
            stream.consume(bytes.count)
        case .refused(let refusal):
            stream.consume(bytes.count)
            refuse(refusal)
        case .complete(let preface, let consumed):
            stream.consume(consumed)
            if consumed < bytes.count { request.append(UnsafeRawBufferPointer(rebasing: bytes[consumed...])) }
            stopTimer()
            if let refusal = connection.authorize(preface) { refuse(refusal) } else { connectTarget() }
        }
    }

    private func connectTarget() {
        let dialer = StreamDialer(
            addresses: connection.targetAddresses, within: TunnelLimits.targetTime, loop: loop
        ) { [weak self] socket in self?.targetAnswered(socket) }
        state = .connecting(dialer)
        dialer.start()
    }

    private func targetAnswered(_ socket: StreamSocket?) {
        guard case .connecting = state else {
            socket?.close()
            return
        }
        guard let socket else {
            connection.targetFailed()
            return refuse(.targetUnreachable)
        }
        let pump = TunnelPump(
            .host, socket: socket, stream: stream, unwritten: request, peerEnded: requestEnded, loop: loop
        ) { [weak self] in self?.finish() }
        state = .pumping(pump)
        pump.start()
    }

    private func refuse(_ refusal: Refusal) {
        stream.refuse(refusal)
        stream.handler = nil
        finish()
    }

    private func stopTimer() {
        timer?.disarm()
        timer = nil
    }

    private func finish() {
        if case .over = state { return }
        if case .connecting(let dialer) = state {
            state = .over
            dialer.cancel()
        }
        state = .over
        stopTimer()
        request.removeAll()
        connection.ended(self)
    }

    /// The client gave up, or the connection is gone.
    private func giveUp() {
        stream.reset(.connectionReset)
        stream.handler = nil
        finish()
    }
}

extension HostStream: StreamHandler {
    func stream(_ stream: QUICStream, received bytes: UnsafeRawBufferPointer, isEnd: Bool) {
        if isEnd { requestEnded = true }
        switch state {
        case .preface(let decoder):
            readPreface(decoder, bytes)
            if isEnd, case .preface = state { refuse(.badPreface) }
        case .connecting: request.append(bytes)
        case .pumping, .over: break
        }
    }

    func streamMaySend(_ stream: QUICStream) {}

    func stream(_ stream: QUICStream, resetBy code: StreamErrorCode) {
        giveUp()
    }

    func stream(_ stream: QUICStream, stoppedBy code: StreamErrorCode) {
        giveUp()
    }

    func streamClosed(_ stream: QUICStream) {
        finish()
    }
}
