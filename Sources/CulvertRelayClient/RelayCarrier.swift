import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay
import CulvertTransport

/// All relays of one endpoint: carries the datagrams of relayed paths over the links to them, and gives each peer
/// behind a relay an address. Confined to the loop.
package final class RelayCarrier {
    /// Told when a relay has confirmed this node.
    package var onUp: (RelayURL) -> Void = { _ in }
    /// Told when the connection to a relay breaks or cannot be made; it is tried again.
    package var onFailure: (RelayURL, TransportError) -> Void = { _, _ in }
    /// Told when another connection with this node's identity has taken its place at a relay.
    package var onDisplaced: () -> Void = {}

    private unowned let driver: EndpointDriver
    private let credentials: RelayCredentials
    private let pool: ChunkPool
    private var links: [UInt32: RelayLink] = [:]
    private var byRelay: [RelayURL: RelayLink] = [:]
    private var lastNumber: UInt32 = 0

    /// A carrier without relays for the endpoint that `driver` runs; ``EndpointDriver/carrier`` holds it weakly.
    package init(for driver: EndpointDriver, _ credentials: RelayCredentials, pool: ChunkPool) {
        self.driver = driver
        self.credentials = credentials
        self.pool = pool
        driver.carrier = self
    }

    // MARK: Relays

    /// Makes `relay` usable; the connection to it is made when it is needed. Does nothing for one that is.
    package func install(_ relay: RelayURL) {
        guard byRelay[relay] == nil else { return }
        lastNumber += 1
        let link = RelayLink(relay, number: lastNumber, credentials, loop: driver.loop, pool: pool)
        link.handler = self
        links[lastNumber] = link
        byRelay[relay] = link
    }

    /// Stops using `relay`. Connections over it find out by silence.
    package func remove(_ relay: RelayURL) {
        guard let link = byRelay.removeValue(forKey: relay) else { return }
        links[link.number] = nil
        link.close()
        driver.endpoint.resumeHeld()
    }

    /// Keeps the connections to these installed relays, and no others, even while nothing goes over them.
    package func keep(_ relays: Set<RelayURL>) {
        for (relay, link) in byRelay where link.isKept != relays.contains(relay) { link.isKept.toggle() }
    }

    /// Whether there is a confirmed connection to `relay`.
    package func isUp(_ relay: RelayURL) -> Bool { byRelay[relay]?.isUp ?? false }

    /// Closes all connections.
    package func close() {
        for link in links.values { link.close() }
        links = [:]
        byRelay = [:]
    }

    /// The address of `node` behind an installed `relay`, to which a connection is made already; nil when the relay is
    /// not installed.
    package func address(of node: NodeID, via relay: RelayURL) -> SocketAddress? {
        guard let link = byRelay[relay] else { return nil }
        link.open()
        return address(of: PeerKey(node), behind: link)
    }

    private func address(of peer: PeerKey, behind link: RelayLink) -> SocketAddress? {
        let number = link.peers.number(of: peer) {
            Set(
                driver.endpoint.connections.compactMap { connection in
                    let numbers = RelayedAddress.numbers(connection.path.remote)
                    return numbers?.relay == link.number ? numbers?.peer : nil
                })
        }
        return number.map { RelayedAddress.remote(relay: link.number, peer: $0) }
    }
}

extension RelayCarrier: DatagramCarrier {
    /// Whether the link takes datagrams. Those for a relay that is gone are dropped, so that they need not wait.
    package func hasRoom(toward remote: SocketAddress) -> Bool {
        guard let (relay, _) = RelayedAddress.numbers(remote), let link = links[relay] else { return true }
        return link.hasRoom
    }

    /// Sends the datagrams over the link to the relay.
    package func carry(_ datagrams: UnsafeRawBufferPointer, segment: Int, to remote: SocketAddress, ecn: UInt8) {
        guard let (relay, number) = RelayedAddress.numbers(remote), let link = links[relay],
            let peer = link.peers.peer(number)
        else { return }
        link.send(datagrams, segment: segment, to: peer, ecn: ecn)
    }
}

extension RelayCarrier: RelayLinkHandler {
    func link(_ link: RelayLink, received datagrams: RelayDatagramView) {
        guard let remote = address(of: datagrams.peer, behind: link) else { return }
        let local = RelayedAddress.local(relay: link.number)
        for datagram in datagrams.datagrams {
            driver.receive(datagram, from: remote, to: local, ecn: datagrams.ecn)
        }
    }

    func linkCameUp(_ link: RelayLink) {
        onUp(link.relay)
        driver.endpoint.resumeHeld()
    }

    func linkHasRoom(_ link: RelayLink) { driver.endpoint.resumeHeld() }

    /// One failure may be a moment's; after the second, or one that will not pass by itself, whoever dials through the
    /// relay need not wait. To them it is a relay less, whatever is wrong with it: it has no part in who the peer is.
    func link(_ link: RelayLink, failed error: TransportError) {
        onFailure(link.relay, error)
        guard link.failures > 1 || !error.kind.mayFallBack else { return }
        driver.endpoint.failHandshakes(
            from: RelayedAddress.local(relay: link.number), error.kind.mayFallBack ? error : error.asUnavailable)
    }

    func link(_ link: RelayLink, status: RelayStatus) {
        if status == .sameIDConnected { onDisplaced() }
    }
}
