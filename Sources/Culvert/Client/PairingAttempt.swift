import CulvertCore
import CulvertIdentity
import CulvertTransport
import CulvertTunnel

/// One pairing from dialling to the answer. Calls its completion once. Confined to the loop.
final class PairingAttempt {
    private let driver: EndpointDriver
    private let relays: EndpointRelays
    private var holdsRelays = false
    private let invite: Invite
    private let request: PairingRequest
    private var dialer: Dialer?
    private var exchange: PairingExchange?
    private var completion: PairingExchange.Completion?

    init(_ request: PairingRequest, with invite: Invite, driver: EndpointDriver, relays: EndpointRelays) {
        self.relays = relays
        self.request = request
        self.invite = invite
        self.driver = driver
    }

    func start(_ completion: @escaping PairingExchange.Completion) {
        self.completion = completion
        let alpn = ALPN.pairing.first { invite.payload.tunnel?.alpns.contains($0) == true } ?? ALPN.pairing[0]
        let node = invite.endpoint.nodeID
        let addresses: [SocketAddress]
        do throws(TransportError) {
            try relays.acquire(invite.endpoint.relayURLs, for: node)
            holdsRelays = true
            addresses = try relays.addresses(of: node, direct: invite.endpoint.ticket?.directAddresses ?? [])
        } catch {
            return complete(.failure(error))
        }
        let dialer = Dialer(driver: driver, node: node, addresses: addresses, alpn: alpn) { [weak self] result in
            switch result {
            case .failure(let error): self?.complete(.failure(error))
            case .success(let connection): self?.exchange(on: connection)
            }
        }
        self.dialer = dialer
        dialer.start()
    }

    /// Gives up. What was sent already may still have used the invite, and the completion says so.
    func cancel() {
        dialer?.cancel()
        if let exchange {
            exchange.giveUp()
        } else {
            complete(.failure(TransportError(.cancelled, "the pairing was given up")))
        }
    }

    private func exchange(on connection: QUICConnection) {
        dialer = nil
        let exchange = PairingExchange(request, on: connection, loop: driver.loop) { [weak self] in self?.complete($0) }
        self.exchange = exchange
        exchange.start()
    }

    private func complete(_ result: Result<PairingGrant, TransportError>) {
        if holdsRelays { relays.release(invite.endpoint.nodeID) }
        holdsRelays = false
        let completion = completion
        self.completion = nil
        completion?(result)
    }
}
