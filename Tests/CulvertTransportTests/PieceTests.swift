import CNgtcp2
import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTestSupport
import Testing

@testable import CulvertTransport

@Suite("Send order")
struct SendOrderTests {
    @Test("agrees with a list, whatever comes and goes", arguments: 0..<20 as Range<UInt64>)
    func model(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let pair = try TestPair(seed: seed)
        let (connection, _) = try pair.connect()
        let streams = try (0..<100).map { _ in try #require(connection.openStream()) }
        var order = SendOrder()
        var model: [Int64] = []
        for _ in 0..<3000 {
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
                order.removeFirst()
                if !model.isEmpty { model.removeFirst() }
            case 1:
                order.rotate()
                if model.count > 1 { model.append(model.removeFirst()) }
            default:
                let stream = streams[Int.random(in: 0..<streams.count, using: &random)]
                order.append(stream)
                if !model.contains(stream.id) { model.append(stream.id) }
            }
            #expect(order.count == model.count && order.first?.id == model.first)
        }
        order.removeAll()
        #expect(order.count == 0 && order.first == nil && streams.allSatisfy { !$0.isInSendOrder })
    }
}

@Suite("Ended connections")
struct EndedConnectionTests {
    private static func id(_ number: UInt64) -> ConnectionID {
        withUnsafeBytes(of: number) { ConnectionID($0) }
    }

    private static let now = Instant(nanoseconds: 1_000_000_000)

    @Test("the last word is repeated for the 1st, 2nd, 4th … packet, for any of the connection's IDs, for a while")
    func repeats() {
        var ended = EndedConnections()
        ended.remember([Self.id(1), Self.id(2)], closePacket: [7], until: Self.now + .seconds(1))
        var answered: [Int] = []
        for packet in 1...20 {
            if case .answer(let bytes) = ended.verdict(for: Self.id(UInt64(1 + packet % 2)), now: Self.now) {
                #expect(bytes == [7])
                answered.append(packet)
            }
        }
        #expect(answered == [1, 2, 4, 8, 16])
        #expect(Self.verdict(&ended, 3, Self.now) == "unknown")
        #expect(Self.verdict(&ended, 1, Self.now + .seconds(1)) == "ignore")
        for id in [1, 2] as [UInt64] {
            #expect(Self.verdict(&ended, id, Self.now + .seconds(1) + .nanoseconds(1)) == "unknown")
        }
    }

    private static func verdict(_ ended: inout EndedConnections, _ number: UInt64, _ now: Instant) -> String {
        switch ended.verdict(for: id(number), now: now) {
        case .unknown: "unknown"
        case .ignore: "ignore"
        case .answer: "answer"
        }
    }

    @Test("without a last word there is silence; forgetting forgets all IDs")
    func silence() {
        var ended = EndedConnections()
        ended.remember([Self.id(1), Self.id(2)], closePacket: nil, until: Self.now)
        #expect(Self.verdict(&ended, 1, Self.now) == "ignore")
        ended.forget(Self.id(2))
        #expect(Self.verdict(&ended, 1, Self.now) == "unknown")
    }

    @Test("the number remembered is bounded; the oldest go first")
    func bound() {
        var ended = EndedConnections()
        let count = UInt64(3 * TransportLimits.endedConnections)
        for number in 0..<count { ended.remember([Self.id(number)], closePacket: nil, until: Self.now) }
        let remembered = (0..<count).filter { Self.verdict(&ended, $0, Self.now) == "ignore" }
        #expect(remembered.count <= TransportLimits.endedConnections)
        #expect(remembered.count >= TransportLimits.endedConnections * 3 / 4)
        #expect(remembered.last == count - 1 && remembered.first == count - UInt64(remembered.count))
    }
}

@Suite("Stateless answers")
struct StatelessAnswerTests {
    private static let path = NetworkPath(
        local: SocketAddress(.loopbackV4, port: 1), remote: SocketAddress(.loopbackV4, port: 2))
    private static let now = Instant(nanoseconds: 1_000_000_000)

    private static func drain(_ answers: inout StatelessAnswers) -> [[UInt8]] {
        let batch = DatagramBatch()
        var packets: [[UInt8]] = []
        repeat {
            answers.write(into: batch)
            batch.forEach { bytes, _, _, _ in packets.append(Array(bytes)) }
            batch.removeAll()
        } while !answers.isEmpty
        return packets
    }

    @Test("so many a second, and none is lost for want of room in a batch")
    func rate() {
        var answers = StatelessAnswers()
        let entropy = Entropy.system
        for _ in 0..<1000 {
            answers.add(.packet([UInt8](repeating: 1, count: 1200)), entropy: entropy, to: Self.path, now: Self.now)
        }
        #expect(Self.drain(&answers).count == TransportLimits.statelessAnswersPerSecond)
        answers.add(.packet([1]), entropy: entropy, to: Self.path, now: Self.now + .milliseconds(999))
        #expect(Self.drain(&answers).isEmpty)
        answers.add(.packet([1]), entropy: entropy, to: Self.path, now: Self.now + .seconds(1))
        #expect(Self.drain(&answers).count == 1)
    }

    @Test("a reset is shorter than what it answers, and short packets get none", arguments: 1...60)
    func resetLength(answering: Int) {
        var answers = StatelessAnswers()
        let id = withUnsafeBytes(of: UInt64(5)) { ConnectionID($0) }
        answers.add(
            .reset(id, key: [UInt8](repeating: 1, count: 32), answering: answering), entropy: .system, to: Self.path,
            now: Self.now)
        let packets = Self.drain(&answers)
        #expect(packets.count == (answering >= 22 ? 1 : 0))
        for packet in packets { #expect(packet.count == min(answering - 1, 42) && packet[0] & 0xc0 == 0x40) }
    }

    @Test("a flood that uses the allowance up leaves honest new clients their Retry")
    func floodAndRetry() throws {
        let pair = try TestPair(seed: 40)
        // Half-open handshakes until Retry is needed.
        var firstPackets: [[UInt8]] = []
        pair.network.tap = { bytes, from, _ in
            if from == pair.client.address { firstPackets.append(bytes) }
            return nil
        }
        for _ in 0..<600 { _ = try pair.dial() }
        pair.network.run(for: .milliseconds(50))
        for (index, packet) in firstPackets.enumerated() {
            pair.network.inject(
                packet, from: SocketAddress(.v4(0x0b00_0000 | UInt32(index)), port: 7), to: pair.server.address)
        }
        // Packets that provoke stateless resets.
        for seed in 0..<1000 as Range<UInt64> {
            var bytes = randomBytes(60, seed: seed)
            bytes[0] = bytes[0] & 0x3f | 0x40
            pair.network.inject(bytes, from: SocketAddress(.v4(0x0c00_0001), port: 7), to: pair.server.address)
        }
        pair.network.run(for: .milliseconds(20))
        pair.network.tap = nil
        let other = try pair.network.add(3)
        let connection = try other.endpoint.connect(
            to: pair.serverKey.nodeID, on: .init(local: other.address, remote: pair.server.address),
            alpn: TestPair.alpn, now: pair.network.now)
        let handler = RecordingConnection()
        connection.handler = handler
        // Before the allowance is renewed.
        pair.network.run(for: .milliseconds(500), until: { handler.isEstablished })
        #expect(handler.isEstablished)
    }
}

@Suite("Bounds of a connection")
struct ConnectionBoundTests {
    @Test("a thousand streams queue little more than a few do")
    func unsentShare() throws {
        let pair = try TestPair(seed: 41)
        let (connection, _) = try pair.connect()
        var total = 0
        var count = 0
        let zeros = [UInt8](repeating: 0, count: TransportLimits.unsentPerStream)
        while let stream = connection.openStream() {
            count += 1
            let room = stream.sendCapacity
            #expect(room >= TransportLimits.leastUnsentPerStream && room <= TransportLimits.unsentPerStream)
            if count == 1 { #expect(room == TransportLimits.unsentPerStream) }
            zeros.withUnsafeBytes { stream.sendQueue.append(UnsafeRawBufferPointer(rebasing: $0[..<room])) }
            #expect(stream.sendCapacity == 0)
            total += room
        }
        #expect(count == 1024)
        #expect(total <= 4 * TransportLimits.unsentPerConnection)
        connection.close(.done)
        pair.network.run(for: .seconds(1))
    }

    @Test("as many stalled readers as there may be do not hold up one that reads")
    func stalledReaders() throws {
        #expect(
            TransportLimits.initialStreamWindow * UInt64(TransportLimits.streamsPerConnection)
                <= UInt64(TransportLimits.unreadPerConnection))
        let pair = try TestPair(seed: 44, consumes: false)
        let (connection, _) = try pair.connect()
        let bytes = randomBytes(70_000, seed: 44)
        var stalled: [RecordingStream] = []
        for _ in 0..<1023 {
            let recorder = RecordingStream()
            let stream = try #require(connection.openStream())
            stream.handler = recorder
            recorder.send(bytes, on: stream, finish: true)
            stalled.append(recorder)
        }
        pair.network.run(for: .seconds(5))
        let peer = try #require(pair.acceptor.connections.first?.handler)
        #expect(peer.accepted.count == 1023)
        #expect(peer.accepted.allSatisfy { $0.handler.bytes.count == TransportLimits.initialStreamWindow })
        peer.consumes = true
        let stream = try #require(connection.openStream())
        let recorder = RecordingStream()
        stream.handler = recorder
        recorder.send(bytes + bytes, on: stream, finish: true)
        pair.network.run(for: .seconds(5), until: { peer.accepted.last?.handler.isEnded == true })
        #expect(peer.accepted.last?.handler.bytes.count == 2 * bytes.count)
        connection.close(.done)
        pair.network.run(for: .seconds(1))
    }

    @Test("streams that are given up in every way return their credit", arguments: 0..<4 as Range<UInt64>)
    func credit(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let pair = try TestPair(seed: seed, LinkConditions(loss: seed % 2 == 0 ? 0 : 0.02), consumes: seed % 4 < 2)
        let (connection, handler) = try pair.connect()
        let peer = try #require(pair.acceptor.connections.first)
        for _ in 0..<40 {
            let stream = try #require(connection.openStream())
            let recorder = RecordingStream()
            stream.handler = recorder
            recorder.send(
                randomBytes(Int.random(in: 1..<900_000, using: &random), seed: random.next()), on: stream,
                finish: Bool.random(using: &random))
            pair.network.run(for: .milliseconds(Int64.random(in: 5..<60, using: &random)))
            // ngtcp2 0.12 never answers for a stream whose reset comes before its first bytes, and so the stream stays
            // with the side that opened it; see conn_recv_reset_stream.
            pair.network.run(until: { peer.handler.accepted.last?.stream.id == stream.id })
            let accepted = peer.handler.accepted.last
            if let accepted, Bool.random(using: &random) {
                accepted.handler.send(
                    randomBytes(Int.random(in: 1..<600_000, using: &random), seed: 1), on: accepted.stream,
                    finish: false)
                pair.network.run(for: .milliseconds(Int64.random(in: 1..<60, using: &random)))
            }
            switch Int.random(in: 0..<4, using: &random) {
            case 0: stream.reset(.connectionReset)
            case 1:
                stream.reset(.connectionReset)
                stream.stopReceiving(.connectionReset)
            case 2:
                accepted?.stream.stopReceiving(.notNeeded)
                accepted?.stream.reset(.notNeeded)
            default:
                accepted?.stream.stopReceiving(.notNeeded)
                accepted?.stream.finish()
            }
            pair.network.run(for: .milliseconds(Int64.random(in: 1..<40, using: &random)))
            stream.reset(.notNeeded)
            stream.stopReceiving(.notNeeded)
            accepted?.stream.reset(.notNeeded)
            accepted?.stream.stopReceiving(.notNeeded)
        }
        pair.network.run(
            for: .seconds(20), until: { connection.openStreamCount == 0 && peer.connection.openStreamCount == 0 })
        #expect(handler.end == nil)
        #expect(connection.openStreamCount == 0 && peer.connection.openStreamCount == 0)
        pair.network.run(for: .seconds(2))
        #expect(connection.unreadCount == 0 && peer.connection.unreadCount == 0)
        #expect(connection.withheldCredit == 0 && peer.connection.withheldCredit == 0)
        for side in [connection, peer.connection] {
            // MAX_DATA is sent once half of the window is used.
            #expect(ngtcp2_conn_get_max_data_left(side.handle) >= TransportLimits.initialConnectionWindow / 2)
        }
        #expect(connection.openableStreams == 1024)
    }

    @Test("counters of handshakes and connections come back to zero, however they end")
    func counters() throws {
        let pair = try TestPair(seed: 42)
        for round in 0..<30 {
            let (connection, handler) =
                round % 3 == 2 ? try pair.dial(expecting: SecretKey.generate().nodeID) : try pair.dial()
            switch round % 3 {
            case 0: pair.network.run(until: { handler.isEstablished })
            // Gives up in the middle of the handshake.
            case 1: pair.network.run(for: .milliseconds(15))
            default: pair.network.run(until: { handler.end != nil })
            }
            connection.close(.done)
            pair.network.run(for: .milliseconds(30))
        }
        pair.network.run(for: .seconds(60))
        #expect(pair.acceptor.connections.count == 30)
        #expect(pair.server.endpoint.handshakes == 0 && pair.server.endpoint.accepted == 0)
        #expect(pair.server.endpoint.connections.isEmpty && pair.client.endpoint.connections.isEmpty)
        #expect(pair.server.endpoint.routes.isEmpty && pair.client.endpoint.routes.isEmpty)
        #expect(pair.server.endpoint.resetTokens.isEmpty && pair.client.endpoint.resetTokens.isEmpty)
        #expect(pair.server.endpoint.nextDeadline == .never && pair.client.endpoint.nextDeadline == .never)
    }

    @Test("an endpoint that closes tells everybody and lets go of everything")
    func close() throws {
        weak var ended: QUICConnection?
        do {
            let pair = try TestPair(seed: 43)
            let (connection, handler) = try pair.connect()
            let stream = try #require(connection.openStream())
            let recorder = RecordingStream()
            stream.handler = recorder
            recorder.send([1], on: stream, finish: false)
            pair.network.run(for: .seconds(1))
            ended = pair.acceptor.connections.first?.connection
            #expect(ended != nil)
            pair.client.endpoint.close()
            pair.server.endpoint.close()
            #expect(recorder.isClosed && handler.end == .closedLocally)
            #expect(pair.client.endpoint.connections.isEmpty && pair.client.endpoint.routes.isEmpty)
            #expect(throws: TransportError.self) { try pair.dial() }
        }
        #expect(ended == nil)
    }
}
