import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay
import CulvertTestSupport
import Testing

@testable import CulvertRelayServer

/// A client on a loop of its own, in the few lines that the tests need.
private actor TestClient {
    private let loop: EventLoop
    private var wire: Wire?
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// What happened, in order.
    enum Event: Sendable, Equatable {
        case connected, failed(TransportError?), bytes([UInt8]), end
    }

    nonisolated let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation

    init() throws {
        loop = try EventLoop(name: "client")
        (events, continuation) = AsyncStream.makeStream(of: Event.self)
    }

    func connect(to address: SocketAddress, as host: String, trust: TLSTrust) throws {
        let socket = try StreamSocket.connect(to: .tcp(address), loop: loop)
        let stream = try TLSStream(over: socket, as: .client(trust, host: host), pool: ChunkPool())
        let wire = Wire(stream, continuation)
        stream.handler = wire
        self.wire = wire
    }

    func send(_ bytes: [UInt8]) { wire?.send(bytes) }

    func export(_ label: String, _ context: [UInt8]) -> [UInt8]? {
        wire?.stream.exportKeyingMaterial(label: label, context: context, count: RelayLimits.exporter)
    }

    func close() {
        wire?.stream.close()
        wire = nil
        continuation.finish()
        loop.stop()
    }

    private final class Wire: StreamSocketHandler {
        let stream: TLSStream
        private let continuation: AsyncStream<Event>.Continuation
        private let queue = ByteQueue(pool: ChunkPool())
        private let output = ByteQueue(pool: ChunkPool())

        init(_ stream: TLSStream, _ continuation: AsyncStream<Event>.Continuation) {
            self.stream = stream
            self.continuation = continuation
        }

        func send(_ bytes: [UInt8]) {
            bytes.withUnsafeBytes { output.append($0) }
            socketWritable()
        }

        func socketConnected() { continuation.yield(.connected) }
        func socketFailed() { continuation.yield(.failed(stream.failure)) }
        func socketWritable() { _ = stream.write(from: output) }

        func socketReadable() {
            while true {
                switch stream.read(into: queue, limit: 100_000) {
                case .bytes(let count):
                    continuation.yield(.bytes(queue.bytes(from: 0, count: count)))
                    queue.consume(count)
                case .wouldBlock: return
                case .end, .failed:
                    continuation.yield(.end)
                    return
                }
            }
        }
    }
}

/// Runs `body` with a relay over TLS and a client that is not connected yet.
private func withRelay(
    _ body: (SocketAddress, TestClient, TLSTrust) async throws -> Void
) async throws {
    let service = try RelayService()
    defer { service.end() }
    var configuration = RelayConfiguration()
    configuration.listen = [SocketAddress(.loopbackV4, port: 0)]
    configuration.identity = try TLSIdentity(
        certificatePEM: TestCertificate.certificatePEM, keyPEM: TestCertificate.keyPEM)
    let address = try #require(try await service.start(configuration).first).address
    let client = try TestClient()
    do {
        try await body(address, client, try TLSTrust(authoritiesPEM: TestCertificate.certificatePEM))
    } catch {
        await client.close()
        throw error
    }
    await client.close()
}

struct TLSTests {
    @Test(.timeLimit(.minutes(1))) func aProofOfTheTLSSessionSavesTheChallenge() async throws {
        try await withRelay { address, client, trust in
            try await client.connect(to: address, as: "localhost", trust: trust)
            var events = client.events.makeAsyncIterator()
            #expect(await events.next() == .connected)
            let key = SecretKey.generate()
            let context = RelayTLSProof.exporterContext(key.nodeID)
            let exported = try #require(await client.export(RelayTLSProof.exporterLabel, context))
            let proof = try #require(RelayTLSProof(key: key, exported: exported))
            let url = try RelayURL("https://localhost:\(address.port)/", allowInsecure: true)
            let upgrade = try #require(ClientUpgrade(relay: url, nonce: [UInt8](repeating: 1, count: 16), proof: proof))
            await client.send(upgrade.request)
            let end = Array("\r\n\r\n".utf8) + WebSocketEncoder.message(RelayServerHandshake.confirmation, mask: nil)
            var answer: [UInt8] = []
            while !answer.hasSuffix(end), case .bytes(let more) = await events.next() { answer += more }
            #expect(answer.hasSuffix(end), "confirmed at once")
        }
    }

    @Test(.timeLimit(.minutes(1))) func aProofOfAnotherSessionIsChallenged() async throws {
        try await withRelay { address, client, trust in
            try await client.connect(to: address, as: "127.0.0.1", trust: trust)
            var events = client.events.makeAsyncIterator()
            #expect(await events.next() == .connected)
            let proof = try #require(RelayTLSProof(key: .generate(), exported: [UInt8](repeating: 7, count: 32)))
            let url = try RelayURL("https://localhost:\(address.port)/", allowInsecure: true)
            let upgrade = try #require(ClientUpgrade(relay: url, nonce: [UInt8](repeating: 1, count: 16), proof: proof))
            await client.send(upgrade.request)
            var answer: [UInt8] = []
            while !answer.dropLast(17).hasSuffix([0x82, 17]), case .bytes(let more) = await events.next() {
                answer += more
            }
            #expect(answer.suffix(17).first == RelayFrameType.serverChallenge.rawValue)
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: ["elsewhere.example", "127.0.0.2"])
    func aCertificateForAnotherNameIsRefused(host: String) async throws {
        try await withRelay { address, client, trust in
            try await client.connect(to: address, as: host, trust: trust)
            var events = client.events.makeAsyncIterator()
            guard case .failed(let error) = await events.next() else { throw TransportError(.state, "it was believed") }
            #expect(error?.kind == .tlsIdentity)
        }
    }

    @Test(.timeLimit(.minutes(1))) func aCertificateOfAnUnknownAuthorityIsRefused() async throws {
        try await withRelay { address, client, _ in
            try await client.connect(to: address, as: "localhost", trust: try TLSTrust())
            var events = client.events.makeAsyncIterator()
            guard case .failed(let error) = await events.next() else { throw TransportError(.state, "it was believed") }
            #expect(error?.kind == .tlsIdentity)
        }
    }

    @Test func badMaterialIsRefused() {
        let (certificate, key) = (TestCertificate.certificatePEM, TestCertificate.keyPEM)
        #expect(throws: TransportError.self) { try TLSIdentity(certificatePEM: key, keyPEM: certificate) }
        #expect(throws: TransportError.self) { try TLSIdentity(certificatePEM: certificate, keyPEM: []) }
        #expect(throws: TransportError.self) { try TLSTrust(authoritiesPEM: key) }
    }
}

extension Collection<UInt8> {
    fileprivate func hasSuffix(_ end: [UInt8]) -> Bool { suffix(end.count).elementsEqual(end) }
}
