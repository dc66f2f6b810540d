import CulvertCore
import CulvertIO
import CulvertIdentity
import Testing

@testable import CulvertTransport

@Suite("Dialer", .timeLimit(.minutes(1)))
struct DialerTests {
    static let alpn = "test/1"

    /// A server, the client that dials it and an address where nobody answers.
    struct Setting {
        let key = SecretKey.generate()
        let server: EndpointDriver
        let acceptor = RawHost()
        let client: EndpointDriver
        let silent: UDPSocket

        init(_ bench: isolated LoopBench) throws {
            server = try bench.driver(key, alpns: [DialerTests.alpn], acceptor: acceptor)
            client = try bench.driver(.generate())
            silent = try UDPSocket.bind(SocketAddress(.loopbackV4, port: 0))
        }

        func close() {
            client.close()
            server.close()
            silent.close()
        }
    }

    @Test("a dead address first costs a moment, not the connection")
    func deadFirst() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try Setting(bench)
            let begin = SystemClock.monotonic()
            let connection = try await bench.dial(
                setting.client, setting.key.nodeID, [setting.silent.localAddress, setting.server.localAddress],
                alpn: Self.alpn)
            let time = SystemClock.monotonic() - begin
            #expect(time >= .milliseconds(200) && time < .seconds(5))
            #expect(connection.connection.path.remote == setting.server.localAddress)
            // The loser is given up.
            await bench.wait { setting.client.endpoint.connections.count == 1 }
            #expect(setting.client.endpoint.connections.count == 1)
            setting.close()
        }
    }

    @Test("another node at the first address does not keep the right one from being found")
    func wrongNodeFirst() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try Setting(bench)
            let acceptor = RawHost()
            let other = try bench.driver(.generate(), alpns: [Self.alpn], acceptor: acceptor)
            let connection = try await bench.dial(
                setting.client, setting.key.nodeID, [other.localAddress, setting.server.localAddress], alpn: Self.alpn)
            #expect(connection.connection.peer == setting.key.nodeID)
            // But alone it is what is told of, whatever is silent besides.
            let kind = await bench.dialFailure(
                setting.client, SecretKey.generate().nodeID, [other.localAddress, setting.server.localAddress])
            #expect(kind == .peerIdentity)
            other.close()
            setting.close()
        }
    }

    @Test("no address, addresses of no use and other protocols fail at once, each with its kind")
    func failures() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try Setting(bench)
            let node = setting.key.nodeID
            let address = setting.server.localAddress
            let none = await bench.dialFailure(setting.client, node, [])
            #expect(none == .unavailable)
            // The socket is an IPv4 one.
            let family = await bench.dialFailure(setting.client, node, [SocketAddress(.loopbackV6, port: 1)])
            #expect(family == .unavailable)
            let alpn = await bench.dialFailure(setting.client, node, [address], alpn: "other/1")
            #expect(alpn == .alpn)
            setting.close()
            let closed = await bench.dialFailure(setting.client, node, [address])
            #expect(closed == .cancelled)
        }
    }

    @Test("a dialer that is cancelled says nothing and leaves nothing")
    func cancelled() async throws {
        let bench = try LoopBench()
        try await bench.run { bench in
            let setting = try Setting(bench)
            weak var released: Dialer?
            do {
                let dialer = Dialer(
                    driver: setting.client, node: setting.key.nodeID,
                    addresses: [setting.silent.localAddress, setting.silent.localAddress], alpn: Self.alpn
                ) { _ in Issue.record("a result") }
                released = dialer
                dialer.start()
                #expect(setting.client.endpoint.connections.count == 1)
                dialer.cancel()
            }
            await bench.wait { setting.client.endpoint.connections.isEmpty }
            // Longer than the pause between attempts.
            await bench.wait(atMost: .milliseconds(300)) { !setting.client.endpoint.connections.isEmpty }
            #expect(setting.client.endpoint.connections.isEmpty && released == nil)
            setting.close()
        }
    }
}

extension LoopBench {
    /// The kind of the failure to dial; nil when it succeeded.
    fileprivate func dialFailure(
        _ driver: EndpointDriver, _ node: NodeID, _ addresses: [SocketAddress], alpn: String = DialerTests.alpn
    ) async -> ErrorKind? {
        do {
            _ = try await dial(driver, node, addresses, alpn: alpn)
            return nil
        } catch {
            return (error as? TransportError)?.kind
        }
    }
}
