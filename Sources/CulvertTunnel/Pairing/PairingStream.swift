import CulvertCore
import CulvertIO
import CulvertTransport

/// One pairing stream on the host: reads the request, gives the answer. Confined to the loop.
final class PairingStream {
    private let stream: QUICStream
    private let decide: (PairingRequest) -> PairingDecision
    private let record: (PairingDecision) -> Void
    private var server = PairingServer()
    private var timer: LoopTimer?

    /// `decide` is asked about a well-formed request, `record` is told what came of any.
    init(
        _ stream: QUICStream, loop: EventLoop, decide: @escaping (PairingRequest) -> PairingDecision,
        record: @escaping (PairingDecision) -> Void
    ) {
        self.stream = stream
        self.decide = decide
        self.record = record
        let timer = LoopTimer(loop: loop) { [weak self] in self?.timeIsUp() }
        self.timer = timer
        timer.arm(at: loop.now + TunnelLimits.pairingTime)
    }

    private func timeIsUp() {
        act(server.expired())
    }

    private func act(_ action: PairingServer.Action) {
        guard case .answer(let bytes, let decision) = action else { return }
        record(decision)
        timer?.disarm()
        timer = nil
        stream.reply(bytes)
    }
}

extension PairingStream: StreamHandler {
    func stream(_ stream: QUICStream, received bytes: UnsafeRawBufferPointer, isEnd: Bool) {
        stream.consume(bytes.count)
        act(server.receive(bytes, decide: decide))
        if isEnd { act(server.ended()) }
    }

    func streamMaySend(_ stream: QUICStream) {}
    func stream(_ stream: QUICStream, resetBy code: StreamErrorCode) {}
    func stream(_ stream: QUICStream, stoppedBy code: StreamErrorCode) {}

    func streamClosed(_ stream: QUICStream) {
        timer?.disarm()
        timer = nil
    }
}
