import CulvertCore
import CulvertIO
import CulvertTransport

/// The device's side of pairing on an established connection: one stream, one request, one answer. Calls its
/// completion once. Confined to the loop.
package final class PairingExchange {
    /// What came of it.
    package typealias Completion = (Result<PairingGrant, TransportError>) -> Void

    private let connection: QUICConnection
    private var client: PairingClient
    private var completion: Completion?
    private var timer: LoopTimer?

    /// Prepares to send `request` on `connection`, whose handler the exchange becomes.
    package init(
        _ request: PairingRequest, on connection: QUICConnection, loop: EventLoop, completion: @escaping Completion
    ) {
        self.connection = connection
        self.completion = completion
        client = PairingClient(request)
        let timer = LoopTimer(loop: loop) { [weak self] in self?.giveUp() }
        self.timer = timer
        timer.arm(at: loop.now + TunnelLimits.pairingTime)
    }

    /// Sends the request.
    package func start() {
        connection.handler = self
        guard let stream = connection.openStream() else { return giveUp() }
        stream.handler = self
        do {
            guard let request = try client.takeRequest() else { return }
            request.withUnsafeBytes { stream.sendQueue.append($0) }
            stream.finish()
        } catch {
            complete(.failure(error))
        }
    }

    /// Ends the exchange without an answer.
    package func giveUp() {
        complete(.failure(client.lost))
    }

    private func complete(_ result: Result<PairingGrant, TransportError>) {
        timer?.disarm()
        timer = nil
        guard let completion else { return }
        self.completion = nil
        connection.close(.done)
        completion(result)
    }
}

extension PairingExchange: StreamHandler {
    /// Reads the answer.
    package func stream(_ stream: QUICStream, received bytes: UnsafeRawBufferPointer, isEnd: Bool) {
        stream.consume(bytes.count)
        do {
            if case .paired(let grant) = try client.receive(bytes) { return complete(.success(grant)) }
            if isEnd { giveUp() }
        } catch {
            complete(.failure(error))
        }
    }

    /// The request is far smaller than the send limits.
    package func streamMaySend(_ stream: QUICStream) {}

    /// The answer is lost.
    package func stream(_ stream: QUICStream, resetBy code: StreamErrorCode) {
        giveUp()
    }

    /// The answer may still come.
    package func stream(_ stream: QUICStream, stoppedBy code: StreamErrorCode) {}

    /// The answer is lost, if it has not come.
    package func streamClosed(_ stream: QUICStream) {
        giveUp()
    }
}

extension PairingExchange: ConnectionHandler {
    /// The answer is lost, if it has not come.
    package func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd) {
        giveUp()
    }

    /// The connection was established before.
    package func connectionEstablished(_ connection: QUICConnection) {}
    /// Hosts open no streams.
    package func connection(_ connection: QUICConnection, accepted stream: QUICStream) { stream.reset(.notNeeded) }
}
