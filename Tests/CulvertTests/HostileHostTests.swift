import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTunnel
import Testing

@testable import Culvert
@testable import CulvertTransport

/// A host that does to every stream what a test wants.
final class RawHost: ConnectionAcceptor {
    var connections: [RawHostConnection] = []
    /// What to do with a connection that is established.
    var onConnection: (RawHostConnection) -> Void = { _ in }
    /// What to do with a stream that was opened.
    var onStream: (RawStream) -> Void = { _ in }

    func endpoint(_ endpoint: QUICEndpoint, accepted connection: QUICConnection) {
        connections.append(RawHostConnection(connection, self))
    }
}

final class RawHostConnection: ConnectionHandler {
    let connection: QUICConnection
    private unowned let host: RawHost
    var streams: [RawStream] = []
    var end: ConnectionEnd?

    init(_ connection: QUICConnection, _ host: RawHost) {
        self.connection = connection
        self.host = host
        connection.handler = self
    }

    func connectionEstablished(_ connection: QUICConnection) { host.onConnection(self) }

    func connection(_ connection: QUICConnection, accepted stream: QUICStream) {
        let stream = RawStream(stream)
        streams.append(stream)
        host.onStream(stream)
    }

    func connectionMayOpenStreams(_ connection: QUICConnection) {}
    func connectionPathChanged(_ connection: QUICConnection) {}
    func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd) { end = reason }
}

/// A client of ours and the state it needs to take a ``RawHost`` for a paired one.
struct Victim {
    let directory: TemporaryDirectory
    let manager: EndpointManager
    let key = SecretKey.generate()

    init() async throws {
        directory = try TemporaryDirectory()
        manager = try await EndpointManager(EndpointConfiguration(stateDirectory: directory.state()))
    }

    func invite(_ address: SocketAddress) throws -> Invite {
        let ticket = try EndpointTicket(nodeID: key.nodeID, addresses: [.direct(address)])
        return try Invite.make(
            InvitePayload(
                name: "bad", pairingToken: .generate(), preference: .tunnelOnly, expiresAt: nil,
                tunnel: ServerMetadata(ticket: ticket)), key: key)
    }

    /// As if it had been paired.
    func server(_ address: SocketAddress) throws -> PairedServer {
        let store = ServerStore(directory.state())
        try store.prepare()
        return try store.add(
            invite(address), grant: PairingGrant(deviceToken: DeviceToken.generate().text, transports: .tunnel),
            name: nil, now: UnixTime(seconds: 0))
    }
}

@Suite("Hosts that do not behave", .timeLimit(.minutes(1)))
struct HostileHostTests {
    @Test("a host that drops every connection at once is not dialled in a tight loop")
    func dropsConnections() async throws {
        let victim = try await Victim()
        let bench = try LoopBench()
        try await bench.run { bench in
            let host = RawHost()
            let driver = try bench.driver(victim.key, alpns: ALPN.http, acceptor: host)
            host.onConnection = { $0.connection.close(.done) }
            let connection = try await victim.manager.connect(to: victim.server(driver.localAddress))
            await bench.wait(atMost: .milliseconds(2500)) { host.connections.count > 8 }
            // At once, after 1 s and after 2 s more.
            #expect(host.connections.count <= 4)
            await connection.close(grace: .zero)
            driver.close()
        }
        await victim.manager.close()
    }

    @Test("what a host does to a stream, its client sees", arguments: 0..<6)
    func streams(case number: Int) async throws {
        let victim = try await Victim()
        let bench = try LoopBench()
        try await bench.run { bench in
            let host = RawHost()
            let driver = try bench.driver(victim.key, alpns: ALPN.http, acceptor: host)
            host.onStream = { stream in
                switch number {
                case 0: stream.stream?.reset(.connectionReset)
                case 1: stream.send(Array("not HTTP at all".utf8), finish: true)
                case 2: stream.send([], finish: true)
                case 3:
                    stream.stream?.stopReceiving(.notNeeded)
                    stream.send(Array("answer".utf8), finish: true)
                case 4:
                    stream.send(Array("begin".utf8))
                    stream.stream?.flush()
                    stream.stream?.connection.close(.done)
                default:
                    stream.stream?.finish()
                    stream.stream?.stopReceiving(.notNeeded)
                    stream.stream?.reset(.notNeeded)
                }
            }
            let connection = try await victim.manager.connect(to: victim.server(driver.localAddress))
            let port = connection.port
            let answer = try? await onThread {
                let socket = try RawSocket(port: port)
                defer { socket.close() }
                try socket.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
                return String(decoding: try socket.receiveAll(), as: UTF8.self)
            }
            let expected: [String?] = [nil, "not HTTP at all", "", "answer", nil, ""]
            // Whether a FIN or the reset behind it is seen is up to timing.
            if number < 5 { #expect(answer == expected[number]) }
            await connection.close(grace: .zero)
            driver.close()
        }
        await victim.manager.close()
    }

    @Test("a host that takes no streams leaves waiting clients with an answer")
    func noStreams() async throws {
        let victim = try await Victim()
        let bench = try LoopBench()
        try await bench.run { bench in
            let host = RawHost()
            let driver = try bench.driver(victim.key, alpns: ALPN.http, acceptor: host)
            let connection = try await victim.manager.connect(to: victim.server(driver.localAddress))
            let port = connection.port
            // Uses up the host's streams, none of which it ever ends.
            let sockets = try await onThread {
                try (0..<1024).map { _ in
                    let socket = try RawSocket(port: port)
                    try socket.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    return socket
                }
            }
            await bench.wait { host.connections.first?.streams.count == 1024 }
            #expect(host.connections.first?.streams.count == 1024)
            // One more is over the proxy's own limit.
            #expect(try await get(port).hasPrefix("HTTP/1.1 503"))
            for socket in sockets { socket.reset() }
            await bench.wait { host.connections.first?.streams.allSatisfy(\.isClosed) == true }
            let isAllClosed = host.connections.first?.streams.allSatisfy { $0.resetCode != nil }
            #expect(isAllClosed == true)
            await connection.close(grace: .zero)
            driver.close()
        }
        await victim.manager.close()
    }

    @Test("whatever a host answers to a pairing, the client ends with an error and stores nothing", arguments: 0..<7)
    func pairing(case number: Int) async throws {
        let victim = try await Victim()
        let bench = try LoopBench()
        try await bench.run { bench in
            let host = RawHost()
            let driver = try bench.driver(victim.key, alpns: ALPN.pairing, acceptor: host)
            func frame(_ json: String) -> [UInt8] {
                let length = UInt32(json.utf8.count)
                return withUnsafeBytes(of: length.bigEndian, Array.init) + Array(json.utf8)
            }
            host.onStream = { stream in
                switch number {
                case 0: stream.send(Array("HTTP/1.1 200 OK\r\n\r\n".utf8), finish: true)
                case 1: stream.send([0xff, 0xff, 0xff, 0xff])
                case 2: stream.send(frame(#"{"v":1,"kind":"pairResponse","ok":true}"#), finish: true)
                case 3:
                    stream.send(frame(#"{"v":1,"kind":"pairResponse","ok":true,"deviceToken":"x y"}"#), finish: true)
                case 4:
                    stream.send(frame(#"{"v":1,"kind":"pairResponse","ok":true,"deviceToken":"other"}"#), finish: true)
                case 5: stream.stream?.reset(.notNeeded)
                default: stream.stream?.connection.close(.done)
                }
            }
            let link = try victim.invite(driver.localAddress).link
            let kind = await failure { try await victim.manager.pair(with: link) }
            let expected: [ErrorKind] = [
                .framing, .framing, .framing, .framing, .protocolViolation, .authentication, .authentication,
            ]
            #expect(kind == expected[number])
            driver.close()
        }
        #expect(try ServerStore(victim.directory.state()).list().isEmpty)
        await victim.manager.close()
    }
}
