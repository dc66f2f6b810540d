import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay
import CulvertTestSupport
import Testing

@testable import CulvertRelayServer

/// A stream without a socket: gives what the test puts in, and takes or refuses what is written.
private final class FakeStream: ByteStream {
    weak var handler: (any StreamSocketHandler)?
    let peerAddress: SocketAddress? = SocketAddress(.loopbackV4, port: 9)
    var input: [UInt8] = []
    var output: [UInt8] = []
    /// What writing gives; nil to take everything.
    var refusal: StreamWrite?
    var isClosed = false

    var isReadable: Bool { !input.isEmpty }

    func read(into queue: ByteQueue, limit: Int) -> StreamRead {
        guard !input.isEmpty else { return .wouldBlock }
        let count = min(limit, input.count)
        input[..<count].withUnsafeBytes { queue.append($0) }
        input.removeFirst(count)
        return .bytes(count)
    }

    func write(from queue: ByteQueue) -> StreamWrite {
        if let refusal { return refusal }
        let count = queue.count
        output += queue.bytes(from: 0, count: count)
        queue.consume(count)
        return .wrote(count)
    }

    func readAgainLater() {}
    func shutdownWrite() {}
    func close() { isClosed = true }
    func reset() { isClosed = true }
}

/// Runs code on a loop's thread.
private actor OnLoop {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    init() throws { loop = try EventLoop(name: "test") }
    func run(_ body: @Sendable (EventLoop) throws -> Void) rethrows { try body(loop) }
}

/// An admitted client on a fake stream, and its key.
private func admittedClient(of server: RelayServer) throws -> (RelayConnection, FakeStream, SecretKey) {
    let stream = FakeStream()
    let connection = RelayConnection(stream, server: server)
    connection.start()
    let url = try RelayURL("http://127.0.0.1:1/", allowInsecure: true)
    let upgrade = try #require(ClientUpgrade(relay: url, nonce: [UInt8](repeating: 1, count: 16)))
    receive(upgrade.request, connection, stream)
    connection.flush()
    let key = SecretKey.generate()
    var handshake = RelayClientHandshake(key: key, version: .v2, sentProof: false, at: server.loop.now)
    let challenge = Array(stream.output.suffix(1 + RelayLimits.challenge))
    let step = try challenge.withUnsafeBytes { try handshake.receive($0) }
    guard case .send(let answer) = step else { throw TransportError(.state, "no answer to the challenge") }
    receive(message(answer), connection, stream)
    connection.flush()
    #expect(stream.output.last == RelayFrameType.serverConfirmsAuth.rawValue)
    stream.output = []
    return (connection, stream, key)
}

private func receive(_ bytes: [UInt8], _ connection: RelayConnection, _ stream: FakeStream) {
    stream.input += bytes
    while stream.isReadable, !stream.isClosed { connection.socketReadable() }
}

private func message(_ frame: [UInt8]) -> [UInt8] {
    WebSocketEncoder.message(frame, mask: WebSocketMask(random: 0x0403_0201))
}

private func datagram(to node: NodeID, _ contents: [UInt8]) -> [UInt8] {
    message([RelayFrameType.clientToRelayDatagram.rawValue] + node.bytes + [0] + contents)
}

struct ConnectionTests {
    private func withServer(_ body: @Sendable (RelayServer) throws -> Void) async throws {
        let place = try OnLoop()
        defer { place.loop.stop() }
        try await place.run { loop in
            var configuration = RelayConfiguration()
            configuration.quota.bytesPerSecond = 0
            try body(RelayServer(loop: loop, configuration: configuration))
        }
    }

    @Test func aClientThatBreaksWhileItSendsToItselfIsJustClosed() async throws {
        try await withServer { server in
            let (connection, stream, key) = try admittedClient(of: server)
            stream.refusal = .failed
            var flood: [UInt8] = []
            for _ in 0...RelayServerLimits.queuedDatagrams { flood += datagram(to: key.nodeID, [1]) }
            receive(flood, connection, stream)
            #expect(stream.isClosed)
            #expect(server.state.nodes == 0)
        }
    }

    @Test func aFullQueueDropsTheNewestAndCountsThem() async throws {
        try await withServer { server in
            let (sender, senderStream, _) = try admittedClient(of: server)
            let (receiver, receiverStream, key) = try admittedClient(of: server)
            receiverStream.refusal = .wouldBlock
            for number in 0..<RelayServerLimits.queuedDatagrams + 7 {
                receive(datagram(to: key.nodeID, [UInt8(truncatingIfNeeded: number)]), sender, senderStream)
            }
            #expect(server.metrics.datagramsOverflowed == 7)
            receiverStream.refusal = nil
            receiver.socketWritable()
            #expect(receiverStream.output.count == RelayServerLimits.queuedDatagrams * (2 + 34 + 1))
            #expect(receiverStream.output.last == UInt8(truncatingIfNeeded: RelayServerLimits.queuedDatagrams - 1))
            receive(datagram(to: key.nodeID, [9]), sender, senderStream)
            receiver.flush()
            #expect(receiverStream.output.last == 9)
        }
    }

    @Test func allQueuesTogetherAreBounded() async throws {
        try await withServer { server in
            let (sender, senderStream, _) = try admittedClient(of: server)
            let (_, firstStream, first) = try admittedClient(of: server)
            let (other, otherStream, second) = try admittedClient(of: server)
            server.chunkLimit = server.pool.chunksInUse + 3
            firstStream.refusal = .wouldBlock
            let contents = [UInt8](repeating: 1, count: 1200)
            for _ in 0..<100 { receive(datagram(to: first.nodeID, contents), sender, senderStream) }
            #expect((80..<90).contains(server.metrics.datagramsOverflowed), "one chunk for input, one and a bit")
            receive(datagram(to: second.nodeID, contents), sender, senderStream)
            other.flush()
            #expect(otherStream.output.isEmpty, "there is no room for anyone")
        }
    }

    @Test func aFullQueueIsTriedOnceMoreBeforeADrop() async throws {
        try await withServer { server in
            let (sender, senderStream, _) = try admittedClient(of: server)
            let (receiver, receiverStream, key) = try admittedClient(of: server)
            var burst: [UInt8] = []
            for _ in 0..<3 * RelayServerLimits.queuedDatagrams { burst += datagram(to: key.nodeID, [7]) }
            receive(burst, sender, senderStream)
            receiver.flush()
            #expect(server.metrics.datagramsOverflowed == 0)
            #expect(receiverStream.output.count == 3 * RelayServerLimits.queuedDatagrams * (2 + 34 + 1))
        }
    }

    @Test func whoAsksForAnswersWithoutReadingGetsFew() async throws {
        try await withServer { server in
            let (connection, stream, _) = try admittedClient(of: server)
            stream.refusal = .wouldBlock
            for _ in 0..<1000 { receive(message(RelayFrame.ping(1).encoded), connection, stream) }
            stream.refusal = nil
            connection.flush()
            #expect(stream.output.count == RelayServerLimits.queuedReplies * (2 + 9))
        }
    }

    /// Whatever comes in whatever pieces, the relay stays, and counts right.
    @Test(arguments: 0..<100) func survivesDamagedInput(seed: UInt64) async throws {
        try await withServer { server in
            var generator = SplitMix64(seed: seed)
            let (witness, witnessStream, witnessKey) = try admittedClient(of: server)
            for _ in 0..<20 {
                let (connection, stream, key) = try admittedClient(of: server)
                var bytes: [UInt8] = []
                for _ in 0..<Int.random(in: 1...8, using: &generator) {
                    let node = generator.chance(0.5) ? witnessKey.nodeID : key.nodeID
                    let frame =
                        switch Int.random(in: 0..<5, using: &generator) {
                        case 0: message(RelayFrame.ping(generator.next()).encoded)
                        case 1: datagram(to: node, generator.bytes(Int.random(in: 0...3000, using: &generator)))
                        case 2: message(RelayFrame.pong(generator.next()).encoded)
                        case 3: message(generator.bytes(Int.random(in: 0...70, using: &generator)))
                        default: datagram(to: node, generator.bytes(40))
                        }
                    bytes += generator.chance(0.2) ? generator.damaged(frame) : frame
                }
                for piece in generator.chunks(bytes) where !stream.isClosed {
                    receive(Array(piece), connection, stream)
                    if generator.chance(0.1) { stream.refusal = generator.chance(0.5) ? .failed : .wouldBlock }
                    if generator.chance(0.3) { connection.flush() }
                }
                stream.refusal = nil
                connection.socketFailed()
                #expect(stream.isClosed && server.state.nodes == 1)
            }
            witness.flush()
            witnessStream.output = []
            receive(message(RelayFrame.ping(5).encoded), witness, witnessStream)
            witness.flush()
            #expect(witnessStream.output == WebSocketEncoder.message(RelayFrame.pong(5).encoded, mask: nil))
        }
    }

    @Test(arguments: 0..<200) func survivesDamagedHandshakes(seed: UInt64) async throws {
        try await withServer { server in
            var generator = SplitMix64(seed: seed)
            let url = try RelayURL("http://127.0.0.1:1/", allowInsecure: true)
            let upgrade = try #require(ClientUpgrade(relay: url, nonce: generator.bytes(16)))
            let answer = message([1] + SecretKey.generate().nodeID.bytes + [64] + generator.bytes(64))
            var bytes = upgrade.request + answer
            for _ in 0..<Int.random(in: 0..<3, using: &generator) { bytes = generator.damaged(bytes) }
            let stream = FakeStream()
            let connection = RelayConnection(stream, server: server)
            connection.start()
            for piece in generator.chunks(bytes) where !stream.isClosed { receive(Array(piece), connection, stream) }
            connection.flush()
            #expect(server.state.nodes == 0, "nobody has proved anything")
            connection.finish()
            #expect(stream.isClosed)
        }
    }
}
