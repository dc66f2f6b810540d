import CulvertCore
import CulvertTransport
import Testing

@Suite("Streams")
struct StreamTests {
    /// A connected pair with one open stream that has carried a byte each way.
    static func open(seed: UInt64) throws -> (
        TestPair, QUICConnection, QUICStream, RecordingStream, RecordingStream, QUICStream
    ) {
        let pair = try TestPair(seed: seed)
        let (connection, _) = try pair.connect()
        let stream = try #require(connection.openStream())
        let recorder = RecordingStream()
        stream.handler = recorder
        recorder.send([1], on: stream, finish: false)
        pair.network.run(until: { pair.acceptor.connections.first?.handler.accepted.isEmpty == false })
        let accepted = try #require(pair.acceptor.connections.first?.handler.accepted.first)
        return (pair, connection, stream, recorder, accepted.handler, accepted.stream)
    }

    @Test("one end travels alone; the other direction goes on")
    func halfClose() throws {
        let (pair, _, stream, recorder, peer, peerStream) = try Self.open(seed: 20)
        stream.finish()
        pair.network.run(until: { peer.isEnded })
        #expect(peer.isEnded && !peer.isClosed)
        pair.network.run(for: .seconds(20))
        peer.send(randomBytes(100_000, seed: 20), on: peerStream, finish: true)
        pair.network.run(until: { recorder.isClosed })
        #expect(recorder.bytes.count == 100_000 && recorder.isEnded)
    }

    @Test("a reset arrives with its code, in either direction")
    func reset() throws {
        let (pair, _, stream, _, peer, _) = try Self.open(seed: 21)
        stream.reset(.connectionReset)
        pair.network.run(for: .seconds(5), until: { peer.resetCode != nil })
        #expect(peer.resetCode == .connectionReset)
        #expect(!peer.isEnded)

        let (second, _, _, recorder, _, peerStream) = try Self.open(seed: 22)
        peerStream.reset(StreamErrorCode(rawValue: 77))
        second.network.run(for: .seconds(5), until: { recorder.resetCode != nil })
        #expect(recorder.resetCode == StreamErrorCode(rawValue: 77))
    }

    @Test("a stop reaches a sender that goes on sending")
    func stop() throws {
        let (pair, _, stream, recorder, _, peerStream) = try Self.open(seed: 23)
        peerStream.stopReceiving(.notNeeded)
        recorder.send(randomBytes(3_000_000, seed: 23), on: stream, finish: true)
        pair.network.run(for: .seconds(10), until: { recorder.stopCode != nil })
        #expect(recorder.stopCode != nil)
    }

    @Test("the peer's limit on streams holds, and is raised as streams end")
    func limit() throws {
        let pair = try TestPair(seed: 24, echoes: true)
        let (connection, handler) = try pair.connect()
        var recorders: [RecordingStream] = []
        var streams: [QUICStream] = []
        while let stream = connection.openStream() {
            let recorder = RecordingStream()
            stream.handler = recorder
            recorder.send([7], on: stream, finish: false)
            recorders.append(recorder)
            streams.append(stream)
        }
        #expect(streams.count == 1024)
        #expect(connection.openableStreams == 0)
        pair.network.run(for: .seconds(2))
        let before = handler.mayOpenCount
        let server = try #require(pair.acceptor.connections.first?.handler)
        #expect(server.accepted.count == 1024)
        for accepted in server.accepted.prefix(10) { accepted.stream.finish() }
        for stream in streams.prefix(10) { stream.finish() }
        pair.network.run(for: .seconds(5), until: { handler.mayOpenCount > before })
        #expect(connection.openStream() != nil)
    }

    @Test("streams end with their connection, and are told before it")
    func connectionEnds() throws {
        let (pair, connection, _, recorder, peer, _) = try Self.open(seed: 25)
        connection.close(.done)
        pair.network.run(for: .seconds(5), until: { peer.isClosed })
        #expect(recorder.isClosed && peer.isClosed)
        #expect(!recorder.isEnded && !peer.isEnded)
        #expect(pair.acceptor.connections.first?.handler.end == .closedByPeer(.done))
    }

    @Test("streams share a connection fairly")
    func fairness() throws {
        let pair = try TestPair(seed: 26)
        let (connection, _) = try pair.connect()
        for index in 0..<8 {
            let stream = try #require(connection.openStream())
            let recorder = RecordingStream()
            stream.handler = recorder
            recorder.send(randomBytes(400_000, seed: UInt64(index)), on: stream, finish: true)
        }
        let server = { pair.acceptor.connections.first?.handler.accepted.map(\.handler) ?? [] }
        pair.network.run(until: { server().map(\.bytes.count).max() ?? 0 > 200_000 })
        let counts = server().map(\.bytes.count)
        #expect(counts.count == 8)
        #expect((counts.min() ?? 0) > 150_000)
    }
}
