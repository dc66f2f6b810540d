import CulvertCore
import CulvertIO
import CulvertIdentity

/// Dials a node at several addresses and keeps the connection that is established first: attempts start 250 ms
/// apart, or as soon as one fails (RFC 8305 section 5).
///
/// Confined to the loop. Calls its completion once, unless it is cancelled.
package final class Dialer {
    /// What came of it.
    package typealias Completion = (Result<QUICConnection, TransportError>) -> Void

    private let driver: EndpointDriver
    private let node: NodeID
    private let alpn: String
    private var remaining: ArraySlice<SocketAddress>
    private var attempts: [QUICConnection] = []
    private var completion: Completion?
    private var stagger: LoopTimer?
    private var failure = TransportError(.unavailable, "the host has no address that can be reached from here")

    /// Addresses tried at the most; a ticket with more is not honest.
    private static let maximumAddresses = 16

    /// Prepares to dial `node` at `addresses`, in this order, for the application protocol `alpn`.
    package init(
        driver: EndpointDriver, node: NodeID, addresses: [SocketAddress], alpn: String, completion: @escaping Completion
    ) {
        self.driver = driver
        self.node = node
        self.alpn = alpn
        self.completion = completion
        remaining = addresses.prefix(Self.maximumAddresses)
    }

    /// Begins.
    package func start() {
        stagger = LoopTimer(loop: driver.loop) { [weak self] in self?.attemptNext() }
        attemptNext()
    }

    /// Gives up without calling the completion.
    package func cancel() {
        completion = nil
        stop(keeping: nil)
    }

    private func attemptNext() {
        while let address = remaining.popFirst() {
            guard let path = driver.path(to: address) else { continue }
            do {
                let connection = try driver.endpoint.connect(to: node, on: path, alpn: alpn, now: driver.loop.now)
                connection.handler = self
                attempts.append(connection)
                if !remaining.isEmpty { stagger?.arm(at: driver.loop.now + IOLimits.connectStagger) }
                return
            } catch {
                failure = error
            }
        }
        if attempts.isEmpty { complete(.failure(failure)) }
    }

    private func complete(_ result: Result<QUICConnection, TransportError>) {
        guard let completion else { return }
        self.completion = nil
        stop(keeping: try? result.get())
        completion(result)
    }

    private func stop(keeping winner: QUICConnection?) {
        stagger?.disarm()
        stagger = nil
        for connection in attempts where connection !== winner {
            connection.handler = nil
            connection.close(.done)
        }
        attempts.removeAll()
    }
}

extension Dialer: ConnectionHandler {
    /// The first attempt to get here wins.
    package func connectionEstablished(_ connection: QUICConnection) {
        connection.handler = nil
        complete(.success(connection))
    }

    /// A wrong node at one of several addresses is not the end: another may be right. But it is what is reported
    /// when none is, before mere silence.
    package func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd) {
        attempts.removeAll { $0 === connection }
        if failure.kind.mayFallBack || !reason.error.kind.mayFallBack { failure = reason.error }
        stagger?.disarm()
        attemptNext()
    }

    /// Streams cannot come before the winner has another handler.
    package func connection(_ connection: QUICConnection, accepted stream: QUICStream) {}
}
