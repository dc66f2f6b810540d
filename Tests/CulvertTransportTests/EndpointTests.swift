import CulvertCore
import CulvertIdentity
import CulvertTestSupport
import CulvertTransport
import Testing

@Suite("Endpoint")
struct EndpointTests {
    @Test("a peer that restarted ends the connection with a stateless reset")
    func statelessReset() throws {
        let pair = try TestPair(seed: 30)
        let (connection, handler) = try pair.connect()
        pair.network.run(for: .seconds(2))
        let restarted = try pair.network.add(2, key: pair.serverKey, alpns: [TestPair.alpn], acceptor: pair.acceptor)
        pair.network.replace(pair.server, with: restarted)
        let stream = try #require(connection.openStream())
        let recorder = RecordingStream()
        stream.handler = recorder
        recorder.send([1, 2, 3], on: stream, finish: true)
        pair.network.run(for: .seconds(5), until: { handler.end != nil })
        #expect(handler.end?.error.kind == .unavailable)
    }

    @Test("a reset with a wrong token changes nothing")
    func forgedReset() throws {
        let pair = try TestPair(seed: 31)
        let (_, handler) = try pair.connect()
        pair.network.run(for: .seconds(2))
        for seed in 0..<200 as Range<UInt64> {
            var bytes = randomBytes(60, seed: seed)
            bytes[0] = bytes[0] & 0x3f | 0x40
            pair.network.inject(bytes, from: pair.server.address, to: pair.client.address)
        }
        pair.network.run(for: .seconds(5))
        #expect(handler.end == nil)
    }

    @Test("an unknown version is answered with the versions we speak")
    func versionNegotiation() throws {
        let pair = try TestPair(seed: 32)
        var answers: [[UInt8]] = []
        let stranger = SocketAddress(.v4(0x0a00_0009), port: 9)
        pair.network.tap = { bytes, _, to in
            if to == stranger { answers.append(bytes) }
            return bytes
        }
        var packet: [UInt8] = [0xc0, 0xde, 0xad, 0xbe, 0xef, 8] + randomBytes(8, seed: 1) + [4, 1, 2, 3, 4]
        packet += [UInt8](repeating: 0, count: 1200 - packet.count)
        pair.network.inject(packet, from: stranger, to: pair.server.address)
        pair.network.run(for: .seconds(1))
        let answer = try #require(answers.first)
        #expect(Array(answer[1..<5]) == [0, 0, 0, 0])
        #expect(answer.suffix(8).starts(with: [0, 0, 0, 1]) || answer.suffix(4) == [0, 0, 0, 1])
        #expect(pair.acceptor.connections.isEmpty)
    }

    @Test("many half-open clients make new ones prove their address; it still works for honest ones")
    func retry() throws {
        let pair = try TestPair(seed: 33)
        // Handshakes that never go on: clients whose server's answers are lost.
        var firstPackets: [[UInt8]] = []
        pair.network.tap = { bytes, from, _ in
            guard from == pair.client.address else { return nil }
            firstPackets.append(bytes)
            return nil
        }
        for _ in 0..<80 { _ = try pair.dial() }
        pair.network.run(for: .milliseconds(50))
        var retries = 0
        pair.network.tap = { bytes, from, _ in
            // Long header, type 3: Retry.
            if from == pair.server.address, bytes[0] & 0xf0 == 0xf0 { retries += 1 }
            return from == pair.server.address ? nil : bytes
        }
        for (index, packet) in firstPackets.enumerated() {
            pair.network.inject(
                packet, from: SocketAddress(.v4(0x0b00_0000 | UInt32(index)), port: 7), to: pair.server.address)
        }
        pair.network.run(for: .milliseconds(100))
        #expect(pair.acceptor.connections.count == 64)
        #expect(retries > 0)

        pair.network.tap = nil
        let other = try pair.network.add(3)
        let connection = try other.endpoint.connect(
            to: pair.serverKey.nodeID, on: .init(local: other.address, remote: pair.server.address),
            alpn: TestPair.alpn, now: pair.network.now)
        let handler = RecordingConnection()
        connection.handler = handler
        pair.network.run(for: .seconds(3), until: { handler.isEstablished })
        #expect(handler.isEstablished)
    }

    @Test("late packets of an ended connection are not taken for a new one")
    func lateInitial() throws {
        let pair = try TestPair(seed: 34)
        var initials: [[UInt8]] = []
        pair.network.tap = { bytes, from, _ in
            if from == pair.client.address, bytes[0] & 0xb0 == 0x80 { initials.append(bytes) }
            return bytes
        }
        let (connection, _) = try pair.connect()
        connection.close(.done)
        pair.network.run(for: .milliseconds(100))
        #expect(pair.acceptor.connections.count == 1)
        let before = pair.network.sentCount
        for initial in initials { pair.network.inject(initial, from: pair.client.address, to: pair.server.address) }
        pair.network.run(for: .milliseconds(200))
        #expect(pair.acceptor.connections.count == 1)
        #expect(pair.network.sentCount - before <= initials.count * 2)
    }

    @Test("an endpoint without an acceptor does not answer clients")
    func clientOnly() throws {
        let network = SimulatedNetwork(seed: 35)
        let quiet = try network.add(1, alpns: [TestPair.alpn])
        let other = try network.add(2)
        let connection = try other.endpoint.connect(
            to: SecretKey.generate().nodeID, on: .init(local: other.address, remote: quiet.address),
            alpn: TestPair.alpn,
            now: network.now)
        let handler = RecordingConnection()
        connection.handler = handler
        var answers = 0
        network.tap = { bytes, from, _ in
            if from == quiet.address { answers += 1 }
            return bytes
        }
        network.run(for: .seconds(3))
        #expect(answers == 0)
    }

    @Test("noise and damaged packets neither crash nor end connections", arguments: 0..<20 as Range<UInt64>)
    func noise(seed: UInt64) throws {
        let pair = try TestPair(seed: seed, echoes: true)
        var damage = SplitMix64(seed: seed)
        pair.network.tap = { bytes, from, to in
            if damage.chance(0.2) {
                var copy = bytes
                switch Int.random(in: 0..<3, using: &damage) {
                case 0:
                    copy[Int.random(in: 0..<copy.count, using: &damage)] ^= 1 << UInt8.random(in: 0..<8, using: &damage)
                case 1: copy = Array(copy.prefix(Int.random(in: 0..<copy.count, using: &damage)))
                default: copy = randomBytes(Int.random(in: 0..<1400, using: &damage), seed: damage.next())
                }
                pair.network.inject(copy, from: from, to: to)
            }
            return bytes
        }
        let (connection, handler) = try pair.connect()
        #expect(handler.isEstablished)
        let stream = try #require(connection.openStream())
        let recorder = RecordingStream()
        stream.handler = recorder
        let bytes = randomBytes(100_000, seed: seed)
        recorder.send(bytes, on: stream, finish: true)
        pair.network.run(for: .seconds(60), until: { recorder.isClosed })
        #expect(recorder.bytes == bytes)
    }
}
