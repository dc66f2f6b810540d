import CLinux
import CulvertCore
import CulvertTestSupport
import Glibc
import Testing

@testable import CulvertIO

/// What a test received.
struct Received: Hashable, Sendable {
    var bytes: [UInt8]
    var local: SocketAddress
    var remote: SocketAddress
    var ecn: UInt8
}

/// Yields all datagrams; a tag of the socket can be told apart by `local`.
final class Collector: UDPSocketHandler {
    let socket: UDPSocket
    let events: Events<Received>
    var onWritable: () -> Void = {}
    var onReceive: (Received) -> Void = { _ in }

    init(_ socket: UDPSocket, _ events: Events<Received>) {
        self.socket = socket
        self.events = events
    }

    func socketReadable() {
        socket.receive(budget: 1000) { bytes, local, remote, ecn in
            let datagram = Received(bytes: Array(bytes), local: local, remote: remote, ecn: ecn)
            onReceive(datagram)
            events.yield(datagram)
        }
    }

    func socketWritable() { onWritable() }
}

extension DatagramBatch {
    func add(_ bytes: [UInt8], local: SocketAddress? = nil, to remote: SocketAddress, ecn: UInt8 = 0) {
        guard let space = reserve(bytes.count) else {
            Issue.record("the batch is full")
            return
        }
        space.copyBytes(from: bytes)
        commit(count: bytes.count, local: local, remote: remote, ecn: ecn)
    }

    var groupCount: Int { pending.count }
}

func datagram(_ count: Int, _ seed: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) }
}

@Suite(.timeLimit(.minutes(1)))
struct UDPTests {
    /// Binds, attaches and collects; the collector lives as long as the test's loop.
    func open(_ actor: OnLoop, _ address: String, _ events: Events<Received>) async throws -> Confined<Collector> {
        try await actor.run {
            let collector = Collector(try UDPSocket.bind(SocketAddress(address)!), events)
            try collector.socket.attach(to: actor.loop, handler: collector)
            return Confined(collector)
        }
    }

    @Test(arguments: [
        ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "[::1]:0", "::1"),
        ("[::]:0", "127.0.0.1:0", "127.0.0.1"), ("[::]:0", "[::1]:0", "::1"),
        ("0.0.0.0:0", "127.0.0.1:0", "127.0.0.2"), ("[::]:0", "[::]:0", "127.0.0.3"),
    ])
    func echoesWithSourceAddressAndECN(_ addresses: (server: String, client: String, target: String)) async throws {
        try await withLoop { actor in
            let atServer = Events<Received>()
            let atClient = Events<Received>()
            let server = try await open(actor, addresses.server, atServer)
            let client = try await open(actor, addresses.client, atClient)
            let target = SocketAddress(IPAddress(addresses.target)!, port: server.value.socket.localAddress.port)
            await actor.run {
                server.value.onReceive = { datagram in
                    let batch = DatagramBatch()
                    batch.add(datagram.bytes, local: datagram.local, to: datagram.remote, ecn: datagram.ecn)
                    #expect(server.value.socket.send(batch) == .done)
                }
                let batch = DatagramBatch()
                for ecn: UInt8 in 0...3 { batch.add([ecn, 1, 2, 3], to: target, ecn: ecn) }
                #expect(batch.groupCount == 4)
                #expect(client.value.socket.send(batch) == .done)
                #expect(batch.isEmpty)
            }
            for datagram in await atServer.next(4) {
                #expect(datagram.local == target)
                #expect(datagram.ecn == datagram.bytes[0])
            }
            for datagram in await atClient.next(4) {
                #expect(datagram.remote == target)
                #expect(datagram.local.port == client.value.socket.localAddress.port)
                #expect(datagram.ecn == datagram.bytes[0])
            }
        }
    }

    /// Sizes, addresses and marks that change in a batch, with and without segmentation, arrive the same and in order.
    @Test(arguments: [true, false], [1, 2, 3])
    func mixedBatchesArriveInOrder(_ isSegmenting: Bool, seed: UInt64) async throws {
        try await withLoop { actor in
            let events = [Events<Received>(), Events<Received>()]
            let receivers = [
                try await open(actor, "[::]:0", events[0]), try await open(actor, "127.0.0.1:0", events[1]),
            ]
            let sender = try await open(actor, "[::]:0", Events())
            var random = SplitMix64(seed: seed)
            var expected: [[[UInt8]]] = [[], []]
            var plan: [(receiver: Int, target: SocketAddress, bytes: [UInt8], ecn: UInt8)] = []
            for run in 0..<12 {
                let receiver = Int.random(in: 0...1, using: &random)
                let port = receivers[receiver].value.socket.localAddress.port
                let ip = receiver == 0 && Bool.random(using: &random) ? IPAddress.loopbackV6 : .loopbackV4
                let size = Int.random(in: 1...1452, using: &random)
                let ecn = UInt8.random(in: 0...3, using: &random)
                for index in 0..<Int.random(in: 1...20, using: &random) {
                    let last = index == 7 ? Int.random(in: 1...size, using: &random) : size
                    plan.append((receiver, SocketAddress(ip, port: port), datagram(last, run * 100 + index), ecn))
                    expected[receiver].append(plan[plan.count - 1].bytes)
                }
            }
            let sent = plan
            await actor.run {
                let socket = sender.value.socket
                socket.isSegmenting = socket.isSegmenting && isSegmenting
                let batch = DatagramBatch()
                for item in sent { batch.add(item.bytes, to: item.target, ecn: item.ecn) }
                #expect(batch.groupCount < sent.count)
                #expect(socket.send(batch) == .done)
            }
            for receiver in 0...1 {
                let received = await events[receiver].next(expected[receiver].count)
                #expect(received.map(\.bytes) == expected[receiver])
                #expect(received.map(\.ecn) == plan.filter { $0.receiver == receiver }.map(\.ecn))
            }
        }
    }

    @Test func oneReceiveCallSplitsCoalescedDatagrams() async throws {
        try await withLoop { actor in
            try await actor.run {
                let receiver = try UDPSocket.bind(SocketAddress("127.0.0.1:0")!)
                let sender = try UDPSocket.bind(SocketAddress("127.0.0.1:0")!)
                let batch = DatagramBatch()
                for index in 0..<40 { batch.add(datagram(index == 39 ? 10 : 1200, index), to: receiver.localAddress) }
                #expect(batch.groupCount == 1)
                #expect(sender.send(batch) == .done)
                var sizes: [Int] = []
                // A budget of one: all 40 are one message, so they come together.
                let count = receiver.receive(budget: 1) { bytes, _, _, _ in sizes.append(bytes.count) }
                #expect(count == 40)
                #expect(sizes == [Int](repeating: 1200, count: 39) + [10])
                #expect(receiver.receive(budget: 1) { _, _, _, _ in } == 0)
            }
        }
    }

    @Test func groupsEndAtTheKernelsLimits() {
        let to = SocketAddress("127.0.0.1:9")!
        let batch = DatagramBatch()
        for _ in 0..<65 { batch.add([1, 2], to: to) }
        #expect(batch.groupCount == 2 && batch.group(0).count == 128)
        batch.removeAll()
        for _ in 0..<16 { batch.add(datagram(4096, 0), to: to) }
        #expect(batch.groupCount == 2 && batch.group(0).count == 15 * 4096)
        batch.removeAll()
        for size in [10, 10, 9, 10, 11] { batch.add(datagram(size, 0), to: to) }
        #expect(batch.pending.map { batch.group($0).count } == [29, 10, 11])
        batch.removeAll()
        for port in 1...UInt16(IOLimits.messagesPerSend) { batch.add([1], to: SocketAddress(.loopbackV4, port: port)) }
        #expect(batch.reserve(1) == nil)
        batch.removeAll()
        #expect(batch.reserve(IOLimits.batchBytes + 1) == nil)
        #expect(batch.reserve(IOLimits.batchBytes)?.count == IOLimits.batchBytes)
        #expect(batch.isEmpty)
    }

    /// A socket without checksums is one for which the kernel refuses segmentation (EINVAL) and nothing else.
    @Test func segmentationIsTurnedOffWhenRefusedAndNothingIsLost() async throws {
        try await withLoop { actor in
            let events = Events<Received>()
            let receiver = try await open(actor, "127.0.0.1:0", events)
            try await actor.run {
                let sender = try UDPSocket.bind(SocketAddress("127.0.0.1:0")!)
                #expect(sender.isSegmenting)
                var one: Int32 = 1
                #expect(setsockopt(sender.descriptorNumber, SOL_SOCKET, SO_NO_CHECK, &one, 4) == 0)
                let batch = DatagramBatch()
                for index in 0..<30 { batch.add(datagram(1000, index), to: receiver.value.socket.localAddress) }
                #expect(sender.send(batch) == .done)
                #expect(!sender.isSegmenting)
            }
            #expect(await events.next(30).map(\.bytes) == (0..<30).map { datagram(1000, $0) })
        }
    }

    @Test func whatCannotBeSentIsDroppedAndTheRestGoesOn() async throws {
        try await withLoop { actor in
            let events = Events<Received>()
            let receiver = try await open(actor, "127.0.0.1:0", events)
            try await actor.run {
                let sender = try UDPSocket.bind(SocketAddress("127.0.0.1:0")!)
                let to = receiver.value.socket.localAddress
                let batch = DatagramBatch()
                batch.add([1], to: to)
                batch.add(datagram(65_508, 0), to: to)
                batch.add([2], to: to)
                // Not an address of this machine.
                batch.add([3], local: SocketAddress("203.0.113.1:1")!, to: to)
                // Two of them, so that a group fails: its addresses are bad, segmentation is not.
                for _ in 0...1 { batch.add([3], local: SocketAddress("203.0.113.1:1")!, to: to, ecn: 1) }
                batch.add([4], to: to)
                #expect(sender.send(batch) == .done)
                #expect(sender.isSegmenting)
            }
            #expect(await events.next(3).map(\.bytes) == [[1], [2], [4]])
        }
    }

    /// Nobody at the port: the ICMP error must neither lose the next datagram nor keep the socket busy.
    @Test func refusedDatagramsDoNotDisturbOthers() async throws {
        try await withLoop { actor in
            let events = Events<Received>()
            let receiver = try await open(actor, "127.0.0.1:0", events)
            let sender = try await open(actor, "127.0.0.1:0", Events())
            try await actor.run {
                var one: Int32 = 1
                // Without this Linux hides such errors from unconnected sockets.
                #expect(setsockopt(sender.value.socket.descriptorNumber, 0, IP_RECVERR, &one, 4) == 0)
                let gone = try UDPSocket.bind(SocketAddress("127.0.0.1:0")!)
                gone.close()
                for index in 0..<5 {
                    let batch = DatagramBatch()
                    batch.add([0], to: gone.localAddress)
                    // The error is pending before the next call, which must not take it for its own.
                    #expect(sender.value.socket.send(batch) == .done)
                    batch.add([UInt8(index)], to: receiver.value.socket.localAddress)
                    #expect(sender.value.socket.send(batch) == .done)
                }
            }
            #expect(await events.next(5).map(\.bytes) == (0..<5).map { [$0] })
        }
    }

    /// Loopback takes everything at once, so a shaper makes the socket fill up.
    @Test func aFullSocketKeepsTheRestInOrderAndTellsWhenItIsWritable() async throws {
        let script = """
            unshare -rn sh -c 'ip link set lo up && tc qdisc add dev lo root tbf rate 50mbit burst 10kb limit 10mb &&
            exec "$@"' sh "$@" >&2
            """
        #expect(try await Isolated.run("slowLink", script) == 0)
    }

    @Test(.enabled(if: Isolated.isInside("slowLink")), arguments: [true, false])
    func slowLink(_ isSegmenting: Bool) async throws {
        try await withLoop { actor in
            let events = Events<Received>()
            let writable = Events<Int>()
            let receiver = try await open(actor, "127.0.0.1:0", events)
            let sender = try await open(actor, "127.0.0.1:0", Events())
            let total = 120
            await actor.run {
                let socket = sender.value.socket
                socket.isSegmenting = isSegmenting
                var small: Int32 = 4096
                #expect(setsockopt(socket.descriptorNumber, SOL_SOCKET, SO_SNDBUF, &small, 4) == 0)
                let batch = DatagramBatch()
                for index in 0..<total {
                    let bytes = [UInt8(index)] + datagram(index % 3 == 0 ? 900 : 800, index)
                    batch.add(bytes, to: receiver.value.socket.localAddress)
                }
                var rounds = 0
                sender.value.onWritable = {
                    rounds += 1
                    if socket.send(batch) == .done { writable.yield(rounds) }
                }
                #expect(socket.send(batch) == .blocked)
                #expect(!batch.isEmpty && batch.byteCount < total * 901)
            }
            #expect(await events.next(total).map { Int($0.bytes[0]) } == Array(0..<total))
            #expect(await writable.next() ?? 0 > 1)
        }
    }

    /// A group that is too large for its route says nothing about segmentation.
    @Test func datagramsAboveTheMTUAreDroppedWithoutTurningSegmentationOff() async throws {
        let script = #"unshare -rn sh -c 'ip link set lo mtu 1400 up && exec "$@"' sh "$@" >&2"#
        #expect(try await Isolated.run("smallMTU", script) == 0)
    }

    @Test(.enabled(if: Isolated.isInside("smallMTU")), arguments: ["127.0.0.1:0", "[::1]:0"])
    func smallMTU(_ address: String) async throws {
        try await withLoop { actor in
            let events = Events<Received>()
            let receiver = try await open(actor, address, events)
            try await actor.run {
                let sender = try UDPSocket.bind(SocketAddress(address)!)
                let batch = DatagramBatch()
                for size in [1452, 1452, 1452, 1200, 1200, 1200, 1452, 500] {
                    batch.add(datagram(size, size), to: receiver.value.socket.localAddress)
                }
                #expect(sender.send(batch) == .done)
                #expect(sender.isSegmenting)
            }
            #expect(await events.next(4).map(\.bytes.count) == [1200, 1200, 1200, 500])
        }
    }

    @Test func aPortInUseIsToldAsSuch() throws {
        let first = try UDPSocket.bind(SocketAddress("127.0.0.1:0")!)
        let error = #expect(throws: TransportError.self) { _ = try UDPSocket.bind(first.localAddress) }
        #expect(error?.kind == .localListener)
        #expect(error?.reason.contains("in use") == true)
        #expect(throws: TransportError.self) { _ = try UDPSocket.bind(SocketAddress("203.0.113.1:0")!) }
    }
}
