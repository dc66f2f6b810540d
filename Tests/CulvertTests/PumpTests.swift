import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTransport
import Testing

@testable import CulvertTunnel

/// A pump between a socket, whose other end the test holds, and a stream, whose other end it holds too.
@Suite("Pump", .timeLimit(.minutes(1)))
struct PumpTests {
    struct Setting {
        let outside: RawSocket
        let peer: RawStream
        let isOver: () -> Bool
        let drivers: [EndpointDriver]
        let host: RawHost
        let pump: TunnelPump

        func close() {
            for driver in drivers { driver.close() }
        }
    }

    private final class Acceptor: StreamListenerHandler {
        var socket: StreamSocket?
        func accepted(_ socket: StreamSocket) { self.socket = socket }
        func acceptingPaused() {}
    }

    private static func make(_ side: TunnelPump.Side, on bench: isolated LoopBench) async throws -> Setting {
        let host = RawHost()
        let key = SecretKey.generate()
        let server = try bench.driver(key, alpns: ["test/1"], acceptor: host)
        let client = try bench.driver(.generate())
        let connection = try await bench.dial(client, key.nodeID, [server.localAddress], alpn: "test/1")
        let opened = try #require(connection.connection.openStream())
        // The accepting side hears of a stream with its first byte.
        let opener = RawStream(opened)
        opener.send([0])
        await bench.wait { host.connections.first?.streams.first?.received.count == 1 }
        let accepted = try #require(host.connections.first?.streams.first)
        let acceptor = Acceptor()
        let listener = try StreamListener(
            at: .tcp(SocketAddress(.loopbackV4, port: 0)), loop: bench.loop, handler: acceptor)
        let outside = try RawSocket(port: #require(listener.localAddress).port)
        await bench.wait { acceptor.socket != nil }
        listener.close()
        var isOver = false
        let inside = side == .proxy ? opened : try #require(accepted.stream)
        let pump = TunnelPump(
            side, socket: try #require(acceptor.socket), stream: inside, unwritten: ByteQueue(pool: bench.pool),
            peerEnded: false, loop: bench.loop
        ) { isOver = true }
        pump.start()
        let peer = side == .proxy ? accepted : opener
        peer.received = []
        return Setting(
            outside: outside, peer: peer, isOver: { isOver }, drivers: [client, server], host: host, pump: pump)
    }

    private static let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    @Test("the end of the request travels alone; the response follows, and its end ends both")
    func halfCloseAtProxy() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try await Self.make(.proxy, on: bench)
            let outside = setting.outside
            let peer = setting.peer
            try await onThread { try outside.send(Self.bytes) }
            outside.finish()
            await bench.wait { peer.isEnded }
            #expect(peer.received == Self.bytes && !setting.isOver())
            peer.send(Self.bytes, finish: true)
            #expect(try await onThread { try outside.receiveAll() } == Self.bytes)
            await bench.wait { setting.isOver() }
            #expect(setting.isOver())
            outside.close()
            setting.close()
        }
    }

    @Test("the end of the response reaches a client that goes on sending, which is let go after a moment")
    func earlyResponse() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try await Self.make(.proxy, on: bench)
            let outside = setting.outside
            setting.peer.send(Array("early".utf8), finish: true)
            setting.peer.stream?.stopReceiving(.notNeeded)
            // On a slow machine the moment may be over before all is sent.
            _ = try? await onThread { try outside.send(Self.bytes) }
            #expect(try await onThread { try outside.receive() } == Array("early".utf8))
            outside.close()
            await bench.wait { setting.isOver() }
            #expect(setting.isOver())
            setting.close()
        }
    }

    @Test("a reset of the response is a reset for the client, and never a clean end")
    func responseReset() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try await Self.make(.proxy, on: bench)
            let outside = setting.outside
            setting.peer.send(Array("begin".utf8))
            #expect(try await onThread { try outside.receive() } == Array("begin".utf8))
            setting.peer.stream?.reset(.connectionReset)
            await #expect(throws: Failure.self) { try await onThread { try outside.receive() } }
            #expect(setting.isOver())
            outside.close()
            setting.close()
        }
    }

    @Test("the connection's end in the middle of a response is a reset; behind a whole one it is not")
    func connectionEnds() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let cut = try await Self.make(.proxy, on: bench)
            let outside = cut.outside
            cut.peer.send(Array("begin".utf8))
            #expect(try await onThread { try outside.receive() } == Array("begin".utf8))
            cut.close()
            await #expect(throws: Failure.self) { try await onThread { try outside.receive() } }
            outside.close()

            let whole = try await Self.make(.proxy, on: bench)
            let reader = whole.outside
            reader.finish()
            await bench.wait { whole.peer.isEnded }
            // More than the socket takes while nobody reads, so that the pump still holds some when the stream is over.
            let big = [UInt8](repeating: 9, count: 8_000_000)
            whole.peer.send(big, finish: true)
            let received = try await onThread {
                var count = 0
                while count < 4_000_000 { count += try reader.receive().count }
                return count
            }
            await bench.wait { whole.peer.isClosed }
            whole.close()
            let rest = try await onThread { try reader.receiveAll().count }
            #expect(received + rest == big.count)
            reader.close()
        }
    }

    @Test("a reset by the client gives up both directions", arguments: [TunnelPump.Side.proxy, .host])
    func socketReset(side: TunnelPump.Side) async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try await Self.make(side, on: bench)
            setting.outside.reset()
            await bench.wait { setting.peer.resetCode != nil }
            #expect(setting.peer.resetCode == .connectionReset && !setting.peer.isEnded)
            await bench.wait { setting.isOver() }
            #expect(setting.isOver())
            setting.close()
        }
    }

    @Test("the end of the target's response is in use until the client has it, and stops the request")
    func targetEnds() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try await Self.make(.host, on: bench)
            let peer = setting.peer
            let outside = setting.outside
            // Fills the window.
            peer.consumes = false
            try await onThread { try outside.send([UInt8](repeating: 5, count: 300_000)) }
            outside.close()
            await bench.wait { peer.received.count >= 60_000 }
            // Noticed on sending.
            for _ in 0..<500 where !peer.isStopped {
                peer.send([1])
                await bench.wait(atMost: .milliseconds(10)) { peer.isStopped }
            }
            #expect(peer.isStopped && !setting.isOver())
            peer.consumeAll()
            await bench.wait { setting.isOver() }
            #expect(peer.isEnded && peer.received.count == 300_000 && setting.isOver())
            setting.close()
        }
    }

    @Test("a client that wants no more of the response ends the target's connection")
    func stopped() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try await Self.make(.host, on: bench)
            let outside = setting.outside
            setting.peer.stream?.stopReceiving(.notNeeded)
            await #expect(throws: Failure.self) { try await onThread { while true { try outside.send(Self.bytes) } } }
            await bench.wait { setting.isOver() }
            #expect(setting.isOver())
            outside.close()
            setting.close()
        }
    }

    @Test("both directions full at once do not stop each other")
    func bothWays() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try await Self.make(.proxy, on: bench)
            let outside = setting.outside
            setting.peer.send(Self.bytes + Self.bytes, finish: true)
            // Writes all before it reads anything.
            try await onThread { try outside.send(Self.bytes + Self.bytes) }
            #expect(try await onThread { try outside.receiveAll().count } == 2 * Self.bytes.count)
            await bench.wait { setting.peer.received.count == 2 * Self.bytes.count || setting.isOver() }
            outside.close()
            setting.close()
        }
    }
}
