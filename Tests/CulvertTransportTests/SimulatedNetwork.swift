import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTestSupport
import CulvertTransport

/// What a simulated link does to datagrams.
struct LinkConditions {
    var delay = Duration.milliseconds(10)
    var jitter = Duration.zero
    var loss = 0.0
    var duplication = 0.0
    var maximumDatagram = 65_535
}

/// Endpoints joined by a network that exists in memory, on a clock that moves only when everybody waits.
final class SimulatedNetwork {
    /// An endpoint and the address under which it sends.
    final class Node {
        let endpoint: QUICEndpoint
        /// What the endpoint believes its address to be.
        let address: SocketAddress
        /// What others see; differs after a NAT has rebound.
        var seenAs: SocketAddress
        var isSuspended = false

        init(endpoint: QUICEndpoint, address: SocketAddress) {
            self.endpoint = endpoint
            self.address = address
            seenAs = address
        }
    }

    private struct Datagram {
        var arrival: Instant
        var order: Int
        var bytes: [UInt8]
        var from: SocketAddress
        var to: SocketAddress
        var ecn: UInt8
    }

    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    var conditions: LinkConditions
    private(set) var random: SplitMix64
    private(set) var nodes: [Node] = []
    private(set) var sentCount = 0
    /// Sees every datagram before it is sent; returns what is sent instead, nil for nothing.
    var tap: ((_ bytes: [UInt8], _ from: SocketAddress, _ to: SocketAddress) -> [UInt8]?)?
    private var inFlight: [Datagram] = []
    private let batch = DatagramBatch()
    private let pool = ChunkPool()

    init(seed: UInt64, _ conditions: LinkConditions = LinkConditions()) {
        random = SplitMix64(seed: seed)
        self.conditions = conditions
    }

    /// Adds an endpoint at 10.0.0.`number`.
    func add(
        _ number: UInt8, key: SecretKey = .generate(), alpns: [String] = [], acceptor: (any ConnectionAcceptor)? = nil
    )
        throws -> Node
    {
        var generator = SplitMix64(seed: random.next())
        let entropy = Entropy { bytes in
            for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255, using: &generator) }
        }
        let endpoint = try QUICEndpoint(key: key, alpns: alpns, entropy: entropy, pool: pool)
        endpoint.acceptor = acceptor
        let node = Node(
            endpoint: endpoint, address: SocketAddress(.v4(0x0a00_0000 | UInt32(number)), port: 4000 + UInt16(number)))
        nodes.append(node)
        return node
    }

    /// A process that starts anew: datagrams to `node` reach `replacement` from now on.
    func replace(_ node: Node, with replacement: Node) {
        nodes.removeAll { $0 === node }
        replacement.seenAs = node.seenAs
    }

    /// Sends bytes as if they came from `from`, past the tap.
    func inject(_ bytes: [UInt8], from: SocketAddress, to: SocketAddress) {
        launch(bytes, from: from, to: to, ecn: 0)
    }

    /// Runs until `condition` holds or `limit` has passed on the virtual clock; tells whether it holds.
    @discardableResult
    func run(for limit: Duration = .seconds(60), until condition: () -> Bool = { false }) -> Bool {
        let end = now + limit
        flush()
        while !condition() {
            let arrival = inFlight.map(\.arrival).min() ?? .never
            let deadline = nodes.filter { !$0.isSuspended }.map(\.endpoint.nextDeadline).min() ?? .never
            let next = min(arrival, deadline)
            guard next <= end else {
                now = end
                return condition()
            }
            now = max(now, next)
            deliver()
            for node in nodes where !node.isSuspended { node.endpoint.expire(now: now) }
            flush()
        }
        return true
    }

    private func deliver() {
        let due = inFlight.filter { $0.arrival <= now }.sorted { ($0.arrival, $0.order) < ($1.arrival, $1.order) }
        inFlight.removeAll { $0.arrival <= now }
        for datagram in due {
            guard let node = nodes.first(where: { $0.seenAs == datagram.to }), !node.isSuspended else { continue }
            datagram.bytes.withUnsafeBytes { bytes in
                node.endpoint.receive(
                    bytes, on: NetworkPath(local: node.address, remote: datagram.from), ecn: datagram.ecn, now: now)
            }
        }
    }

    private func flush() {
        for node in nodes where !node.isSuspended {
            var hasMore = true
            while hasMore {
                hasMore = node.endpoint.flush(into: batch, now: now)
                batch.forEach { bytes, _, remote, ecn in
                    schedule(Array(bytes), from: node.seenAs, to: remote, ecn: ecn)
                }
                batch.removeAll()
            }
        }
    }

    private func schedule(_ bytes: [UInt8], from: SocketAddress, to: SocketAddress, ecn: UInt8) {
        sentCount += 1
        guard let bytes = tap.map({ $0(bytes, from, to) }) ?? bytes else { return }
        launch(bytes, from: from, to: to, ecn: ecn)
    }

    private func launch(_ bytes: [UInt8], from: SocketAddress, to: SocketAddress, ecn: UInt8) {
        guard bytes.count <= conditions.maximumDatagram else { return }
        for _ in 0..<(random.chance(conditions.duplication) ? 2 : 1) {
            guard !random.chance(conditions.loss) else { continue }
            let jitter =
                conditions.jitter > .zero ? Int64.random(in: 0...conditions.jitter.nanoseconds, using: &random) : 0
            inFlight.append(
                Datagram(
                    arrival: now + conditions.delay + .nanoseconds(jitter), order: sentCount, bytes: bytes, from: from,
                    to: to, ecn: ecn))
        }
    }
}
