import CulvertCore
import CulvertTestSupport
import CulvertTransport
import Testing

@Suite("Transfer over a bad network")
struct TransferTests {
    /// Echoes bytes over a network drawn from `seed` and tells how it went.
    static func echo(seed: UInt64, bytes count: Int, streams: Int) throws -> (
        RecordingConnection, [RecordingStream], [[UInt8]]
    ) {
        var draw = SplitMix64(seed: seed)
        var conditions = LinkConditions()
        conditions.delay = .milliseconds(Int64.random(in: 1...80, using: &draw))
        conditions.jitter = .milliseconds(Int64.random(in: 0...20, using: &draw))
        conditions.loss = Double.random(in: 0...0.05, using: &draw)
        conditions.duplication = Double.random(in: 0...0.05, using: &draw)
        conditions.maximumDatagram = draw.chance(0.3) ? 1252 : 1472
        let pair = try TestPair(seed: seed, conditions, echoes: true)
        let (connection, handler) = try pair.connect()
        var recorders: [RecordingStream] = []
        var sent: [[UInt8]] = []
        for index in 0..<streams {
            let stream = try #require(connection.openStream())
            let recorder = RecordingStream()
            stream.handler = recorder
            let bytes = randomBytes(count, seed: seed &* 31 &+ UInt64(index))
            recorder.send(bytes, on: stream, finish: true)
            recorders.append(recorder)
            sent.append(bytes)
        }
        pair.network.run(for: .seconds(120), until: { recorders.allSatisfy(\.isClosed) })
        return (handler, recorders, sent)
    }

    @Test("every byte arrives in order, whatever the network does", arguments: 0..<60 as Range<UInt64>)
    func everyByte(seed: UInt64) throws {
        let (connection, streams, sent) = try Self.echo(seed: seed, bytes: 60_000, streams: 3)
        #expect(connection.end == nil)
        for (stream, bytes) in zip(streams, sent) {
            #expect(stream.isEnded && stream.isClosed)
            #expect(stream.bytes == bytes)
        }
    }

    @Test("a large transfer fills windows and wraps queues")
    func large() throws {
        let pair = try TestPair(seed: 7, echoes: true)
        let (connection, _) = try pair.connect()
        let stream = try #require(connection.openStream())
        let recorder = RecordingStream()
        stream.handler = recorder
        let bytes = randomBytes(6_000_000, seed: 7)
        recorder.send(bytes, on: stream, finish: true)
        pair.network.run(for: .seconds(120), until: { recorder.isClosed })
        #expect(recorder.bytes == bytes)
    }

    @Test("a reader that does not read holds up its own stream only, and bounds what it is sent")
    func slowReader() throws {
        let pair = try TestPair(seed: 8, consumes: false)
        let (connection, _) = try pair.connect()
        let stalled = try #require(connection.openStream())
        let stalledRecorder = RecordingStream()
        stalled.handler = stalledRecorder
        stalledRecorder.send(randomBytes(4_000_000, seed: 1), on: stalled, finish: true)
        pair.network.run(for: .seconds(20))
        let server = try #require(pair.acceptor.connections.first)
        let received = try #require(server.handler.accepted.first)
        #expect(received.handler.bytes.count == 512 * 1024)

        server.handler.consumes = true
        let lively = try #require(connection.openStream())
        let livelyRecorder = RecordingStream()
        lively.handler = livelyRecorder
        livelyRecorder.send(randomBytes(1_500_000, seed: 2), on: lively, finish: true)
        pair.network.run(for: .seconds(20), until: { server.handler.accepted.last?.handler.isEnded == true })
        #expect(server.handler.accepted.last?.handler.bytes.count == 1_500_000)
        #expect(received.handler.bytes.count == 512 * 1024)

        received.handler.consumes = true
        received.stream.consume(512 * 1024)
        pair.network.run(for: .seconds(30), until: { received.handler.isEnded })
        #expect(received.handler.bytes.count == 4_000_000)
    }

    @Test(
        "datagrams grow to what the path carries, and no further",
        arguments: [(1472, 1444), (1420, 1406)])
    func pathMTU(carries: Int, finds: Int) throws {
        var conditions = LinkConditions()
        conditions.maximumDatagram = carries
        let pair = try TestPair(seed: 11, conditions, echoes: true)
        var largest = 0
        pair.network.tap = { bytes, _, _ in
            if bytes.count <= carries { largest = max(largest, bytes.count) }
            return bytes
        }
        let (connection, _) = try pair.connect()
        let stream = try #require(connection.openStream())
        let recorder = RecordingStream()
        stream.handler = recorder
        let bytes = randomBytes(1_000_000, seed: 11)
        recorder.send(bytes, on: stream, finish: true)
        pair.network.run(for: .seconds(60), until: { recorder.isClosed })
        #expect(recorder.bytes == bytes)
        #expect(largest == finds)
    }

    @Test("a NAT that gives the client another address in mid-transfer loses nothing")
    func rebinding() throws {
        let pair = try TestPair(seed: 9, echoes: true)
        let (connection, handler) = try pair.connect()
        let stream = try #require(connection.openStream())
        let recorder = RecordingStream()
        stream.handler = recorder
        let bytes = randomBytes(2_000_000, seed: 9)
        recorder.send(bytes, on: stream, finish: true)
        pair.network.run(until: { recorder.bytes.count > 300_000 })
        pair.client.seenAs = SocketAddress(.v4(0x0a00_0063), port: 9999)
        pair.network.run(for: .seconds(60), until: { recorder.isClosed })
        #expect(recorder.bytes == bytes)
        #expect(handler.end == nil)
        let server = try #require(pair.acceptor.connections.first)
        #expect(server.connection.path.remote == pair.client.seenAs)
        #expect(server.handler.pathChanges > 0)
    }

    @Test("an idle connection is kept alive, and given up when the peer is gone")
    func idle() throws {
        let pair = try TestPair(seed: 10)
        let (_, handler) = try pair.connect()
        pair.network.run(for: .seconds(600))
        #expect(handler.end == nil)
        pair.server.isSuspended = true
        pair.network.run(for: .seconds(60), until: { handler.end != nil })
        #expect(handler.end?.error.kind == .timedOut)
    }
}
