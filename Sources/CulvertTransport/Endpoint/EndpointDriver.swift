import CulvertCore
import CulvertIO

/// Runs a ``QUICEndpoint`` on an event loop: one UDP socket, perhaps a carrier for relayed paths, one timer, one batch
/// of outgoing datagrams.
///
/// Confined to the loop.
package final class EndpointDriver {
    /// The endpoint that is run.
    package let endpoint: QUICEndpoint
    /// The loop on which everything happens.
    package let loop: EventLoop
    /// Whether the loop has been asked to call ``flush()``.
    package var isFlushScheduled = false
    /// Carries the datagrams of relayed paths; without one they are dropped.
    package weak var carrier: (any DatagramCarrier)?

    private let policy: PathPolicy
    private let socket: UDPSocket
    private let batch = DatagramBatch()
    private var timer: LoopTimer?
    private var isFlushing = false
    /// Whether the kernel takes no more datagrams for now; what is in ``batch`` waits.
    private var isBlocked = false

    /// Binds `address` and begins to serve `endpoint` on paths that `policy` allows; throws `localListener` when the
    /// address cannot be had.
    package init(
        endpoint: QUICEndpoint, loop: EventLoop, binding address: SocketAddress, policy: PathPolicy = .auto
    ) throws(TransportError) {
        self.endpoint = endpoint
        self.loop = loop
        self.policy = policy
        socket = try UDPSocket.bind(address)
        timer = LoopTimer(loop: loop) { [weak self] in
            guard let self else { return }
            self.endpoint.expire(now: self.loop.now)
            self.loop.flushLater(self)
        }
        endpoint.wantsAttention = { [weak self] in
            // What is asked for during a flush is part of it.
            if let self, !self.isFlushing { self.loop.flushLater(self) }
        }
        endpoint.mayWrite = { [weak self] path in
            guard path.isRelayed, let carrier = self?.carrier else { return true }
            return carrier.hasRoom(toward: path.remote)
        }
        try socket.attach(to: loop, handler: self)
    }

    /// Where the socket is bound; the IP is unspecified when it listens on all addresses.
    package var localAddress: SocketAddress { socket.localAddress }

    /// Addresses under which this endpoint can be dialled: the bound one, or those of the interfaces. Loopback is
    /// among them only when there is nothing else, since on other machines it means other machines. None when only
    /// relays may be used.
    package var dialableAddresses: [SocketAddress] {
        guard policy.allowsDirect else { return [] }
        let bound = socket.localAddress
        guard bound.ip.isUnspecified else { return [bound] }
        let candidates = Interfaces.addresses().filter { interface in
            guard interface.isUp, !interface.ip.isLinkLocal else { return false }
            if case .v4 = bound.ip, case .v6 = interface.ip { return false }
            return true
        }
        let routable = candidates.filter { !$0.isLoopback }
        return (routable.isEmpty ? candidates : routable).map { SocketAddress($0.ip, port: bound.port) }
    }

    /// The path that packets to `remote` would take; nil when there is no route, the socket is of another family, or
    /// the policy forbids it.
    package func path(to remote: SocketAddress) -> NetworkPath? {
        if let (relay, _) = RelayedAddress.numbers(remote) {
            guard policy.allowsRelay, carrier != nil else { return nil }
            return NetworkPath(local: RelayedAddress.local(relay: relay), remote: remote)
        }
        guard policy.allowsDirect else { return nil }
        let bound = socket.localAddress
        if case .v4 = bound.ip, case .v6 = remote.ip { return nil }
        let local = bound.ip.isUnspecified ? Interfaces.localAddress(toward: remote) : bound.ip
        return local.map { NetworkPath(local: SocketAddress($0, port: bound.port), remote: remote) }
    }

    /// Hands a datagram to the endpoint that the carrier brought. Its addresses must be relayed ones.
    package func receive(
        _ datagram: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8
    ) {
        guard policy.allowsRelay else { return }
        endpoint.receive(datagram, on: NetworkPath(local: local, remote: remote), ecn: ecn, now: loop.now)
    }

    /// Sends what connections still have to say, as far as the kernel takes it, closes the socket and ends the
    /// connections.
    package func close() {
        for _ in 0..<Self.farewellBatches where !isBlocked { guard sendRound() else { break } }
        timer?.disarm()
        timer = nil
        endpoint.wantsAttention = {}
        endpoint.close()
        socket.close()
    }
}

extension EndpointDriver: UDPSocketHandler {
    /// Hands arrived datagrams to the endpoint.
    package func socketReadable() {
        let now = loop.now
        socket.receive(budget: Self.receiveBudget) { datagram, local, remote, ecn in
            guard policy.allowsDirect, !remote.isRelayed else { return }
            endpoint.receive(
                UnsafeRawBufferPointer(datagram), on: NetworkPath(local: local, remote: remote), ecn: ecn, now: now)
        }
    }

    /// Sends what the kernel did not take before.
    package func socketWritable() {
        isBlocked = false
        loop.flushLater(self)
    }

    /// Datagrams received before other sockets get their turn.
    private static let receiveBudget = 1024
    /// Batches sent before other sockets get their turn.
    private static let sendBudget = 8
    /// Batches sent when the endpoint closes: every connection that there may be is told.
    private static let farewellBatches = 64
}

extension EndpointDriver: LoopFlusher {
    /// Sends what connections have to say.
    package func flush() {
        guard !isBlocked, let timer else { return }
        isFlushing = true
        defer { isFlushing = false }
        var hasMore = true
        var rounds = 0
        while hasMore, !isBlocked, rounds < Self.sendBudget {
            hasMore = sendRound()
            rounds += 1
        }
        // What is left continues after the other sockets had their turn: a timer that is due at once.
        timer.arm(at: hasMore ? loop.now : endpoint.nextDeadline)
    }

    /// Fills a batch and sends it; true when there is more.
    private func sendRound() -> Bool {
        let hasMore = endpoint.flush(into: batch, now: loop.now)
        batch.drain(where: \.isRelayed) { datagrams, segment, remote, ecn in
            carrier?.carry(datagrams, segment: segment, to: remote, ecn: ecn)
        }
        if !batch.isEmpty, socket.send(batch) == .blocked { isBlocked = true }
        return hasMore
    }
}
