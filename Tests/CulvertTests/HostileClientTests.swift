import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTransport
import CulvertTunnel
import Testing

@testable import Culvert

@Suite("Clients that do not behave", .timeLimit(.minutes(1)))
struct HostileClientTests {
    static let request = Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)

    @Test("a response that has left the server is delivered before a host that shuts down closes")
    func deliversBeforeClosing() async throws {
        let body = [UInt8](repeating: 7, count: 900_000)
        let tunnel = try await Tunnel(
            to: Origin { socket in
                _ = try socket.receiveHead()
                try socket.send(body)
            })
        let bench = try LoopBench()
        let host = tunnel.host
        let preface = try tunnel.preface
        let received = try await bench.run { bench in
            let (driver, connection) = try await bench.dial(tunnel)
            let stream = try #require(connection.open())
            // The window fills; the rest waits in the host.
            stream.consumes = false
            stream.send(preface + Self.request)
            await bench.wait { stream.received.count >= 500_000 }
            let stopping = Task { await host.shutdown(grace: .seconds(10)) }
            // It has begun once new requests are turned away.
            var probe: RawStream?
            repeat {
                let stream = try #require(connection.open())
                stream.send(preface + Self.request)
                await bench.wait { stream.isEnded }
                probe = stream
            } while probe?.text.hasPrefix("HTTP/1.1 503") != true
            stream.consumeAll()
            await bench.wait { stream.isEnded || stream.isClosed }
            await stopping.value
            driver.close()
            return stream.received.count
        }
        #expect(received == body.count)
        await tunnel.close()
    }

    @Test("a stream without a preface, or with a bad one, is refused alone")
    func badPrefaces() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let bench = try LoopBench()
        let preface = try tunnel.preface
        try await bench.run { bench in
            let (driver, connection) = try await bench.dial(tunnel)
            let bad: [[UInt8]] = [[], [0], [0xff, 0xff, 0xff, 0xff], Self.request, [0, 0, 0, 2] + Array("{}".utf8)]
            var streams: [RawStream] = []
            for bytes in bad {
                let stream = try #require(connection.open())
                stream.send(bytes, finish: true)
                streams.append(stream)
            }
            let good = try #require(connection.open())
            good.send(preface + Self.request)
            await bench.wait { streams.allSatisfy(\.isEnded) && good.received.count > 40 }
            for stream in streams { #expect(stream.text.hasPrefix("HTTP/1.1 400")) }
            #expect(good.text.hasSuffix("hello"))
            #expect(connection.end == nil)
            driver.close()
        }
        await tunnel.close()
    }

    @Test("floods of streams that say nothing, end at once or are reset neither stop the host nor count for ever")
    func streamFloods() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let bench = try LoopBench()
        let preface = try tunnel.preface
        try await bench.run { bench in
            let (driver, connection) = try await bench.dial(tunnel)
            var opened = 0
            for round in 0..<6 {
                await bench.wait { connection.connection.openableStreams > 900 }
                while let stream = connection.open() {
                    opened += 1
                    stream.send(round % 3 == 0 ? [0] : preface, finish: round % 3 == 1)
                    if round % 3 != 1 {
                        stream.stream?.reset(.connectionReset)
                        stream.stream?.stopReceiving(.connectionReset)
                    }
                }
            }
            await bench.wait { connection.connection.openStreamCount == 0 }
            #expect(connection.connection.openStreamCount == 0)
            #expect(opened > 5000)
            #expect(connection.end == nil)
            await bench.wait { connection.connection.openableStreams > 0 }
            let good = try #require(connection.open())
            good.send(preface + Self.request)
            await bench.wait { good.received.count > 40 }
            #expect(good.text.hasSuffix("hello"))
            driver.close()
        }
        await tunnel.close()
    }

    @Test("a client that never reads holds up neither its other streams nor the host")
    func neverReads() async throws {
        let body = [UInt8](repeating: 7, count: 4_000_000)
        let tunnel = try await Tunnel(
            to: Origin { socket in
                let head = try socket.receiveHead()
                if head.contains("big") { try socket.send(body) } else { try socket.send("small") }
            })
        let bench = try LoopBench()
        let preface = try tunnel.preface
        try await bench.run { bench in
            let (driver, connection) = try await bench.dial(tunnel)
            var stuck: [RawStream] = []
            for _ in 0..<64 {
                let stream = try #require(connection.open())
                stream.consumes = false
                stream.send(preface + Array("GET /big HTTP/1.1\r\n\r\n".utf8))
                stuck.append(stream)
            }
            await bench.wait { stuck.allSatisfy { $0.received.count >= 500_000 } }
            let good = try #require(connection.open())
            good.send(preface + Self.request)
            await bench.wait { good.isEnded }
            #expect(good.text == "small")
            driver.close()
        }
        await tunnel.close()
    }

    @Test("data behind STOP_SENDING is dropped, and its credit comes back")
    func dataAfterStop() async throws {
        // The server answers at once and reads nothing.
        let tunnel = try await Tunnel(
            to: Origin { socket in
                _ = try socket.receiveHead()
                try socket.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
                socket.finish()
                while try !socket.receive().isEmpty {}
            })
        let bench = try LoopBench()
        let preface = try tunnel.preface
        try await bench.run { bench in
            let (driver, connection) = try await bench.dial(tunnel)
            // Far more in all than the connection's window.
            for _ in 0..<60 {
                let stream = try #require(connection.open())
                stream.send(preface + Self.request + [UInt8](repeating: 1, count: 1_000_000))
                await bench.wait { stream.isEnded || stream.isClosed }
                #expect(stream.text.hasPrefix("HTTP/1.1 413"))
                await bench.wait { stream.isClosed }
                #expect(stream.isClosed)
            }
            driver.close()
        }
        await tunnel.close()
    }

    @Test("a stranger's connection is shown the door and its token is worth nothing to it")
    func stranger() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let bench = try LoopBench()
        let preface = try tunnel.preface
        try await bench.run { bench in
            let (driver, connection) = try await bench.dial(tunnel, key: .generate())
            let stream = try #require(connection.open())
            stream.send(preface + Self.request)
            await bench.wait { stream.isEnded }
            #expect(stream.text.hasPrefix("HTTP/1.1 403") && stream.text.contains("binding_mismatch"))
            driver.close()
        }
        await tunnel.close()
    }

    @Test("pairing frames that make no sense count as failures of their source")
    func malformedPairings() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let bench = try LoopBench()
        try await bench.run { bench in
            let (driver, connection) = try await bench.dial(tunnel, key: .generate(), alpn: ALPN.pairing[0])
            for _ in 0..<5 {
                let stream = try #require(connection.open())
                stream.send(Array("garbage".utf8), finish: true)
                await bench.wait { stream.isEnded }
                #expect(stream.text.contains("400"))
            }
            driver.close()
        }
        let link = try await tunnel.host.makeInvite().link
        let error = await #expect(throws: TransportError.self) { try await tunnel.manager.pair(with: link) }
        #expect(error?.reason.hasPrefix("too many pairings failed") == true)
        await tunnel.close()
    }
}
