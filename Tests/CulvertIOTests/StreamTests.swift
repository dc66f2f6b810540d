import CulvertCore
import Glibc
import Testing

@testable import CulvertIO

/// What a test's socket told.
enum Told: Hashable, Sendable {
    case connected
    case writable
    case end
    case failed(StreamFailure?)
    case bytes([UInt8])
}

/// Reads everything, unless suspended, and tells.
final class Peer: StreamSocketHandler {
    let socket: StreamSocket
    let events: Events<Told>
    let queue = ByteQueue(pool: ChunkPool())
    var isSuspended = false
    var readLimit = 65_536
    var onWritable: () -> Void = {}

    init(_ socket: StreamSocket, _ events: Events<Told>) {
        self.socket = socket
        self.events = events
        socket.handler = self
    }

    func socketConnected() { events.yield(.connected) }

    func socketReadable() {
        while !isSuspended {
            switch socket.read(into: queue, limit: readLimit) {
            case .bytes:
                events.yield(.bytes(take()))
            case .wouldBlock: return
            case .end:
                events.yield(.end)
                return
            case .failed:
                events.yield(.failed(socket.failure))
                return
            }
        }
    }

    func socketWritable() {
        events.yield(.writable)
        onWritable()
    }

    func socketFailed() { events.yield(.failed(socket.failure)) }

    func take() -> [UInt8] {
        var bytes: [UInt8] = []
        while !queue.isEmpty {
            let part = queue.withVectors(from: 0, maxBytes: .max) { vectors in
                vectors.flatMap { Array(UnsafeRawBufferPointer(start: $0.iov_base, count: $0.iov_len)) }
            }
            bytes += part
            queue.consume(part.count)
        }
        return bytes
    }

    @discardableResult
    func send(_ bytes: [UInt8]) -> StreamWrite { bytes.withUnsafeBytes { socket.write($0) } }
}

/// Accepts one connection after the other.
final class Acceptor: StreamListenerHandler {
    var listener: StreamListener?
    let events: Events<Told>
    let accepted = Events<Confined<Peer>>()
    let paused = Events<Int>()
    var peers: [Peer] = []

    init(_ events: Events<Told>) { self.events = events }

    func accepted(_ socket: StreamSocket) {
        let peer = Peer(socket, events)
        peers.append(peer)
        accepted.yield(Confined(peer))
    }

    func acceptingPaused() { paused.yield(1) }
}

/// A connection in this process: both ends on one loop.
struct Connection {
    let actor: OnLoop
    let acceptor: Confined<Acceptor>
    let client: Confined<Peer>
    let server: Confined<Peer>
    let atClient = Events<Told>()
    let atServer = Events<Told>()

    init(_ actor: OnLoop, _ address: StreamAddress = .tcp(SocketAddress(.loopbackV4, port: 0))) async throws {
        self.actor = actor
        let (atClient, atServer) = (atClient, atServer)
        (acceptor, client) = try await actor.run {
            let acceptor = Acceptor(atServer)
            let listener = try StreamListener(at: address, loop: actor.loop, handler: acceptor)
            acceptor.listener = listener
            let target = listener.localAddress.map { StreamAddress.tcp($0) } ?? address
            return (Confined(acceptor), Confined(Peer(try .connect(to: target, loop: actor.loop), atClient)))
        }
        #expect(await atClient.next() == .connected)
        let accepted = try #require(await acceptor.value.accepted.next())
        server = accepted
    }

    /// Reads what comes at `events` until `count` bytes are there.
    func bytes(_ events: Events<Told>, _ count: Int) async -> [UInt8] {
        var all: [UInt8] = []
        while all.count < count {
            switch await events.next() {
            case .bytes(let part)?: all += part
            case .writable?: continue
            case let other:
                Issue.record("\(String(describing: other)) after \(all.count) bytes")
                return all
            }
        }
        return all
    }
}

@Suite(.timeLimit(.minutes(1)))
struct StreamTests {
    @Test func halfCloseLeavesTheOtherDirectionOpen() async throws {
        try await withLoop { actor in
            let pair = try await Connection(actor)
            await actor.run {
                pair.client.value.send([1, 2, 3])
                pair.client.value.socket.shutdownWrite()
            }
            #expect(await pair.atServer.next(2) == [.bytes([1, 2, 3]), .end])
            await actor.run {
                #expect(pair.server.value.socket.isPeerFinished)
                #expect(pair.server.value.socket.read(into: pair.server.value.queue, limit: 10) == .end)
                #expect(pair.server.value.send([4, 5]) == .wrote(2))
            }
            #expect(await pair.atClient.next() == .bytes([4, 5]))
            await actor.run { pair.server.value.socket.close() }
            #expect(await pair.atClient.next() == .end)
            await actor.run { #expect(pair.client.value.socket.failure == nil) }
        }
    }

    @Test func aResetIsAFailureAndNotAnEnd() async throws {
        try await withLoop { actor in
            let pair = try await Connection(actor)
            await actor.run {
                pair.server.value.send([1])
                pair.server.value.socket.reset()
                pair.server.value.socket.reset()
                #expect(pair.server.value.send([1]) == .failed)
            }
            var told = await pair.atClient.next()
            // The byte may have been dropped by the reset.
            if told == .bytes([1]) { told = await pair.atClient.next() }
            #expect(told == .failed(.reset))
            await actor.run { #expect(pair.client.value.send([1]) == .failed) }
        }
    }

    @Test func aResetIsToldToOneWhoDoesNotRead() async throws {
        try await withLoop { actor in
            let pair = try await Connection(actor)
            await actor.run {
                pair.client.value.isSuspended = true
                pair.server.value.send([1, 2, 3])
                pair.server.value.socket.reset()
            }
            #expect(await pair.atClient.next() == .failed(.reset))
        }
    }

    @Test func suspendedReadingResumesWithoutANewEvent() async throws {
        try await withLoop { actor in
            let pair = try await Connection(actor)
            await actor.run {
                pair.client.value.isSuspended = true
                pair.server.value.send(datagram(1000, 1))
                pair.server.value.socket.shutdownWrite()
            }
            // Comes back only after the client has been told that it is readable.
            while !(await actor.run { pair.client.value.socket.isPeerFinished }) {}
            await actor.run {
                let peer = pair.client.value
                #expect(peer.socket.isReadable)
                peer.isSuspended = false
                peer.readLimit = 300
                #expect(peer.socket.read(into: peer.queue, limit: 0) == .bytes(0))
                peer.socket.readAgainLater()
                peer.socket.readAgainLater()
            }
            #expect(await pair.bytes(pair.atClient, 1000) == datagram(1000, 1))
            #expect(await pair.atClient.next() == .end)
        }
    }

    @Test(arguments: [false, true]) func aFullSocketTakesPartAndTellsWhenItTakesMore(_ isUnix: Bool) async throws {
        let directory = try TemporaryDirectory()
        let address: StreamAddress =
            isUnix ? .unix(directory.path + "/s") : .tcp(SocketAddress(.loopbackV6, port: 0))
        try await withLoop { actor in
            let pair = try await Connection(actor, address)
            let total = 24 << 20
            await actor.run {
                let (client, server) = (pair.client.value, pair.server.value)
                server.isSuspended = true
                let queue = ByteQueue(pool: ChunkPool())
                datagram(1 << 20, 5).withUnsafeBytes { part in for _ in 0..<24 { queue.append(part) } }
                client.onWritable = { _ = client.socket.write(from: queue) }
                guard case .wrote(let count) = client.socket.write(from: queue) else {
                    Issue.record("nothing written")
                    return
                }
                #expect(count > 0 && count < total)
                #expect(queue.count == total - count)
                #expect(!client.socket.isWritable)
                #expect(client.socket.write(from: queue) == .wouldBlock)
                server.isSuspended = false
                if server.socket.isReadable { server.socketReadable() }
            }
            let part = datagram(1 << 20, 5)
            var expected: [UInt8] = []
            for _ in 0..<24 { expected += part }
            #expect(await pair.bytes(pair.atServer, total) == expected)
        }
        unlink(directory.path + "/s")
    }

    @Test func refusedConnectionsFailWithTheirReason() async throws {
        try await withLoop { actor in
            let events = Events<Told>()
            let (taken, target) = try portWithoutListener()
            defer { close(taken) }
            let peer = try await actor.run {
                Confined(Peer(try .connect(to: .tcp(target), loop: actor.loop), events))
            }
            let told = await events.next()
            #expect(told == .failed(.refused))
            let error = await #expect(throws: TransportError.self) {
                try await actor.run { _ = try StreamSocket.connect(to: .unix("/nonexistent/s"), loop: actor.loop) }
            }
            #expect(error?.kind == .unavailable)
            await actor.run { peer.value.socket.close() }
        }
    }

    /// A bound socket that does not listen: nobody else can get its port, as could happen to one that was closed.
    private func portWithoutListener() throws -> (Int32, SocketAddress) {
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(fd, $0, length) == 0 ? getsockname(fd, $0, &length) : -1
            }
        }
        try #require(result == 0)
        return (fd, SocketAddress(.loopbackV4, port: UInt16(bigEndian: address.sin_port)))
    }

    @Test func unixPeersEndOrFailAsTheyClose() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/s"
        try await withLoop { actor in
            let pair = try await Connection(actor, .unix(path))
            await actor.run {
                #expect(pair.server.value.socket.peerUserID == geteuid())
                #expect(pair.server.value.socket.peerAddress == nil)
                #expect(mode(path) == 0o600)
                pair.client.value.send([9])
                pair.client.value.socket.close()
            }
            #expect(await pair.atServer.next(2) == [.bytes([9]), .end])
            await actor.run { #expect(pair.server.value.send([1]) == .failed) }
            await actor.run { pair.acceptor.value.listener?.close() }
            #expect(directoryNames(String(path.dropLast(2))) == [])
        }
    }
}
