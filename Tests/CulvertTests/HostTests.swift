import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTunnel
import Glibc
import Testing

@testable import Culvert

/// A host, an endpoint that is paired with it, and an HTTP server behind.
struct Tunnel {
    let directory: TemporaryDirectory
    let origin: Origin
    let host: Host
    let manager: EndpointManager
    let server: PairedServer

    init(
        to origin: Origin, relay: RelayOptions = RelayOptions(),
        _ configure: (inout HostConfiguration) -> Void = { _ in }
    ) async throws {
        directory = try TemporaryDirectory()
        self.origin = origin
        var configuration = Self.configuration(directory, port: origin.port, configure)
        configuration.relay = relay
        host = try await Host(configuration)
        var endpoint = EndpointConfiguration(stateDirectory: directory.state("client"))
        endpoint.relay = relay
        endpoint.relay.relays = []
        manager = try await EndpointManager(endpoint)
        server = try await manager.pair(with: host.makeInvite().link, deviceName: "phone")
    }

    static func configuration(
        _ directory: TemporaryDirectory, port: UInt16, _ configure: (inout HostConfiguration) -> Void = { _ in }
    ) -> HostConfiguration {
        var configuration = HostConfiguration(
            stateDirectory: directory.state("host"), target: .tcp(host: "127.0.0.1", port: port))
        configuration.listen = SocketAddress(.loopbackV4, port: 0)
        configuration.name = "studio"
        configure(&configuration)
        return configuration
    }

    func connect(_ options: ConnectionOptions = ConnectionOptions()) async throws -> ServerConnection {
        try await manager.connect(to: server, options)
    }

    func close() async {
        await manager.close()
        await host.shutdown(grace: .zero)
    }
}

extension ServerConnection {
    /// The proxy's port.
    var port: UInt16 { baseURL.split(separator: ":").last.flatMap { UInt16($0) } ?? 0 }

    /// The first event that `pick` takes.
    func firstEvent<T>(_ pick: (ServerEvent) -> T?) async -> T? {
        for await event in events { if let picked = pick(event) { return picked } }
        return nil
    }
}

/// One GET with the connection closed behind it.
func get(_ port: UInt16) async throws -> String {
    try await onThread {
        let socket = try RawSocket(port: port)
        defer { socket.close() }
        try socket.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        socket.finish()
        return String(decoding: try socket.receiveAll(), as: UTF8.self)
    }
}

@Suite("Host and endpoint", .timeLimit(.minutes(1)))
struct HostTests {
    @Test("pair, connect, and a request through the proxy")
    func request() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        #expect(tunnel.server.name == "studio" && tunnel.server.nodeID == tunnel.host.nodeID)
        let connection = try await tunnel.connect()
        #expect(connection.baseURL.hasPrefix("http://127.0.0.1:"))
        #expect(try await get(connection.port).hasSuffix("\r\n\r\nhello"))
        let kind = await connection.firstEvent { if case .path(let evidence) = $0 { evidence.kind } else { nil } }
        #expect(kind == .direct)
        let devices = try await tunnel.host.devices()
        #expect(devices.map(\.name) == ["phone"])
        #expect(devices.first?.isConnected == true && devices.first?.isRevoked == false)
        await tunnel.close()
    }

    @Test("the events of a host tell of pairing, connecting and leaving")
    func events() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let connection = try await tunnel.connect()
        #expect(try await get(connection.port).hasSuffix("hello"))
        await connection.close(grace: .seconds(1))
        var seen: [String] = []
        for await event in tunnel.host.events {
            switch event {
            case .paired(let name): seen.append("paired \(name)")
            case .deviceConnected(let name): seen.append("connected \(name)")
            case .path(let name, let evidence): seen.append("path \(name ?? "") \(evidence.kind)")
            case .deviceDisconnected(let name): seen.append("disconnected \(name)")
            case .relay(let isConnected): seen.append("relay \(isConnected)")
            case .error(let error): seen.append("error \(error)")
            }
            if case .deviceDisconnected = event { break }
        }
        #expect(seen == ["paired phone", "connected phone", "path phone direct", "disconnected phone"])
        await tunnel.close()
        for await _ in tunnel.host.events { Issue.record("an event after the end") }
    }

    @Test("revoking cuts a device off at once and for good")
    func revoke() async throws {
        let tunnel = try await Tunnel(
            to: Origin { socket in
                _ = try socket.receiveHead()
                try socket.send("HTTP/1.1 200 OK\r\n\r\nbegin")
                _ = try socket.receiveAll()
            })
        let connection = try await tunnel.connect()
        let client = try RawSocket(port: connection.port)
        try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _ = try await onThread { try client.receiveHead() }
        let id = try #require(try await tunnel.host.devices().first?.id)
        try await tunnel.host.revoke(id)
        // The response was cut, so the client must not take it for whole.
        await #expect(throws: Failure.self) { try await onThread { try client.receiveAll() } }
        client.close()
        let error = await connection.firstEvent { if case .failed(let error) = $0 { error } else { nil } }
        #expect(error?.kind == .revoked)
        let device = try #require(try await tunnel.host.devices().first)
        #expect(device.isRevoked && !device.isConnected)
        // A second time changes nothing, and another device does not exist.
        try await tunnel.host.revoke(id)
        #expect(await failure { try await tunnel.host.revoke("nobody") } == .authentication)

        let later = await failure { () async throws -> TransportError? in
            let connection = try await tunnel.connect()
            let error = await connection.firstEvent { if case .failed(let error) = $0 { error } else { nil } }
            if let error { throw error }
            return nil
        }
        #expect(later == .revoked)
        // A fresh invite makes it welcome again.
        _ = try await tunnel.manager.pair(with: tunnel.host.makeInvite().link)
        let server = try #require(try ServerStore(tunnel.directory.state("client")).server(named: "studio"))
        let again = try await tunnel.manager.connect(to: server)
        #expect(again.port != 0)
        await tunnel.close()
    }

    @Test("an invite works once, until it expires, and only as it was signed")
    func invites() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let invite = try await tunnel.host.makeInvite()
        _ = try await tunnel.manager.pair(with: invite.link)
        #expect(await failure { try await tunnel.manager.pair(with: invite.link) } == .authentication)
        #expect(await failure { try await tunnel.manager.pair(with: invite.link + "A") } == .metadata(.envelope))
        #expect(await failure { try await tunnel.host.makeInvite(validFor: .zero) } == .limit)
        #expect(await failure { try await tunnel.host.makeInvite(validFor: .seconds(31 * 86_400)) } == .limit)

        // Signed by the host and in time by this clock's tolerance, but the host counts to the second.
        let key = try tunnel.directory.state("host").identity()
        let ticket = try EndpointTicket(text: await tunnel.host.ticket)
        func forged(_ expiresAt: UnixTime, _ key: SecretKey) throws -> String {
            try Invite.make(
                InvitePayload(
                    name: "x", pairingToken: .generate(), preference: .tunnelOnly, expiresAt: expiresAt,
                    tunnel: ServerMetadata(ticket: ticket)), key: key
            ).link
        }
        let now = UnixTime(seconds: Int64(time(nil)))
        #expect(
            await failure { try await tunnel.manager.pair(with: forged(now + .seconds(-600), key)) }
                == .metadata(.expired))
        // A token that the host never issued.
        #expect(
            await failure { try await tunnel.manager.pair(with: forged(now + .seconds(90), key)) } == .authentication)
        // The same node paired twice: one device.
        #expect(try await tunnel.host.devices().count == 1)
        await tunnel.close()
    }

    private func addDevice(_ state: StateDirectory) throws {
        let store = try HostStore(path: state.hostDatabase)
        let (invite, node) = (TokenHash(ofText: "invite").bytes, SecretKey.generate().nodeID.bytes)
        let now = UnixTime(seconds: Int64(time(nil)))
        try store.createInvite(tokenHash: invite, transports: .tunnel, expiresAt: now + .seconds(60), now: now)
        _ = try store.redeemInvite(
            tokenHash: invite, nodeID: node, deviceName: "phone", newTokenHash: TokenHash(ofText: "token").bytes,
            now: now)
    }

    @Test("a host keeps its port, and does not leave it while devices look for it there")
    func lastPort() async throws {
        let directory = try TemporaryDirectory()
        func start() async throws -> Host {
            try await Host(Tunnel.configuration(directory, port: 1) { $0.listen = nil })
        }
        func port(_ host: Host) async throws -> UInt16? {
            try EndpointTicket(text: await host.ticket).directAddresses.first?.port
        }
        let first = try await start()
        let kept = try #require(try await port(first))
        await first.shutdown(grace: .zero)
        let second = try await start()
        #expect(try await port(second) == kept)
        await second.shutdown(grace: .zero)

        // Nobody misses the old port.
        var squatter: UDPSocket? = try UDPSocket.bind(SocketAddress(.anyV6, port: kept))
        let third = try await start()
        let moved = try #require(try await port(third))
        #expect(moved != kept)
        await third.shutdown(grace: .zero)

        // Now a device would.
        try addDevice(directory.state("host"))
        squatter?.close()
        squatter = try UDPSocket.bind(SocketAddress(.anyV6, port: moved))
        #expect(await failure { try await start() } == .localListener)
        squatter?.close()
        let fourth = try await start()
        #expect(try await port(fourth) == moved)
        await fourth.shutdown(grace: .zero)
    }

    @Test("five failed pairings block their source, also with a good invite")
    func blocked() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let used = try await tunnel.host.makeInvite().link
        _ = try await tunnel.manager.pair(with: used)
        for _ in 0..<5 { #expect(await failure { try await tunnel.manager.pair(with: used) } == .authentication) }
        let good = try await tunnel.host.makeInvite().link
        let error = await #expect(throws: TransportError.self) { try await tunnel.manager.pair(with: good) }
        #expect(error?.kind == .authentication && error?.reason.hasPrefix("too many pairings failed") == true)
        await tunnel.close()
    }

    @Test("another node at the host's address is never taken for it")
    func wrongNode() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let address = try #require(try EndpointTicket(text: await tunnel.host.ticket).directAddresses.first)
        let stranger = SecretKey.generate()
        let ticket = try EndpointTicket(nodeID: stranger.nodeID, addresses: [.direct(address)])
        let invite = try Invite.make(
            InvitePayload(
                name: "x", pairingToken: .generate(), preference: .tunnelOnly, expiresAt: nil,
                tunnel: ServerMetadata(ticket: ticket)), key: stranger)
        #expect(await failure { try await tunnel.manager.pair(with: invite.link) } == .peerIdentity)
        await tunnel.close()
    }

    @Test("a host gives open requests time to finish, and what they carry arrives whole")
    func drains() async throws {
        let body = [UInt8](repeating: 7, count: 6_000_000)
        let tunnel = try await Tunnel(
            to: Origin { socket in
                _ = try socket.receiveHead()
                try socket.send("HTTP/1.1 200 OK\r\n\r\n")
                try socket.send(body)
            })
        let connection = try await tunnel.connect()
        let client = try RawSocket(port: connection.port)
        try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _ = try await onThread { try client.receiveHead() }
        async let stopped: Void = tunnel.host.shutdown(grace: .seconds(20))
        let received = try await onThread { try client.receiveAll() }
        #expect(received.count == body.count)
        client.close()
        await stopped
        await tunnel.close()
    }

    @Test("a host that shuts down takes no new requests")
    func drainsNothingNew() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let connection = try await tunnel.connect()
        let open = try RawSocket(port: connection.port)
        try open.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _ = try await onThread { try open.receiveHead() }
        async let stopped: Void = tunnel.host.shutdown(grace: .seconds(20))
        // Until the shutdown has begun, requests go through.
        var answer = ""
        repeat { answer = try await get(connection.port) } while answer.hasSuffix("hello")
        #expect(answer.hasPrefix("HTTP/1.1 503"))
        open.close()
        await stopped
        await tunnel.close()
    }

    @Test("a host gives up on requests that do not finish in time")
    func givesUp() async throws {
        let tunnel = try await Tunnel(
            to: Origin { socket in
                _ = try socket.receiveHead()
                try socket.send("HTTP/1.1 200 OK\r\n\r\n")
                _ = try socket.receiveAll()
            })
        let connection = try await tunnel.connect()
        let client = try RawSocket(port: connection.port)
        try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _ = try await onThread { try client.receiveHead() }
        let clock = ContinuousClock()
        let time = await clock.measure { await tunnel.host.shutdown(grace: .milliseconds(300)) }
        #expect(time >= .milliseconds(300) && time < .seconds(5))
        await #expect(throws: Failure.self) { try await onThread { try client.receiveAll() } }
        client.close()
        await tunnel.close()
    }

    @Test("closing a connection lets its requests finish, or cuts them after the grace")
    func closesGracefully() async throws {
        let tunnel = try await Tunnel(
            to: Origin { socket in
                _ = try socket.receiveHead()
                try socket.send("HTTP/1.1 200 OK\r\n\r\n")
                _ = try socket.receiveAll()
                try socket.send("late")
            })
        let connection = try await tunnel.connect()
        let client = try RawSocket(port: connection.port)
        try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _ = try await onThread { try client.receiveHead() }
        async let closed: Void = connection.close(grace: .seconds(20))
        client.finish()
        #expect(try await onThread { try client.receiveAll() } == Array("late".utf8))
        client.close()
        await closed

        let second = try await tunnel.connect()
        let stuck = try RawSocket(port: second.port)
        try stuck.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _ = try await onThread { try stuck.receiveHead() }
        await second.close(grace: .milliseconds(100))
        await #expect(throws: Failure.self) { try await onThread { try stuck.receiveAll() } }
        stuck.close()
        await tunnel.close()
    }

    @Test("a second host on the same directory is refused, until the first has shut down")
    func secondHost() async throws {
        let directory = try TemporaryDirectory()
        let configuration = Tunnel.configuration(directory, port: 1)
        let first = try await Host(configuration)
        #expect(await failure { try await Host(configuration) } == .state)
        await first.shutdown(grace: .zero)
        let second = try await Host(configuration)
        #expect(second.nodeID == first.nodeID)
        await second.shutdown(grace: .zero)
    }

    @Test("ports that are taken are told of")
    func portsInUse() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let address = try #require(try EndpointTicket(text: await tunnel.host.ticket).directAddresses.first)
        let other = try TemporaryDirectory()
        let configuration = Tunnel.configuration(other, port: 1) { $0.listen = address }
        #expect(await failure { try await Host(configuration) } == .localListener)
        // The failed start has let go of the directory.
        let host = try await Host(Tunnel.configuration(other, port: 1))
        await host.shutdown(grace: .zero)

        let connection = try await tunnel.connect()
        var options = ConnectionOptions()
        options.port = connection.port
        #expect(await failure { try await tunnel.connect(options) } == .localListener)
        await tunnel.close()
    }

    @Test("a host and an endpoint that are closed refuse further work, and closing them again does nothing")
    func closed() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let connection = try await tunnel.connect()
        await tunnel.close()
        await tunnel.close()
        await connection.close(grace: .seconds(1))
        #expect(await failure { try await tunnel.connect() } == .cancelled)
        #expect(await failure { try await tunnel.manager.pair(with: "culvert://") } == .cancelled)
        #expect(await failure { try await tunnel.host.makeInvite() } == .cancelled)
        #expect(await failure { try await tunnel.host.devices() } == .cancelled)
        #expect(await failure { try await tunnel.host.revoke("x") } == .cancelled)
        #expect(await failure { try await tunnel.host.rename("x", to: "y") } == .cancelled)
    }

    @Test("closing the endpoint ends what is being dialled", arguments: [true, false])
    func closeWhileDialling(pairs: Bool) async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let invite = try await tunnel.host.makeInvite().link
        // Nobody answers there any more.
        await tunnel.host.shutdown(grace: .zero)
        let manager = tunnel.manager
        let server = tunnel.server
        let dialling = Task {
            await failure {
                if pairs { _ = try await manager.pair(with: invite) } else { _ = try await manager.connect(to: server) }
            }
        }
        await Task.yield()
        await manager.close()
        let kind = await dialling.value
        #expect(kind == .cancelled || kind == .unavailable)
    }

    @Test("a task that is cancelled stops dialling", arguments: [true, false])
    func cancelWhileDialling(pairs: Bool) async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let invite = try await tunnel.host.makeInvite().link
        await tunnel.host.shutdown(grace: .zero)
        let manager = tunnel.manager
        let server = tunnel.server
        let clock = ContinuousClock()
        let time = await clock.measure {
            let dialling = Task {
                await failure {
                    if pairs {
                        _ = try await manager.pair(with: invite)
                    } else {
                        _ = try await manager.connect(to: server)
                    }
                }
            }
            await Task.yield()
            dialling.cancel()
            #expect(await dialling.value == .cancelled)
        }
        #expect(time < .seconds(5))
        await tunnel.close()
    }
}

@Suite("Control socket", .timeLimit(.minutes(1)))
struct ControlTests {
    @Test("an owner lists, renames and revokes devices and makes invites")
    func owner() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let client = ControlClient(tunnel.directory.state("host"))
        let devices = try await onThread { try client.devices() }
        #expect(devices == (try await tunnel.host.devices()))
        let id = try #require(devices.first?.id)
        try await onThread { try client.rename(id, to: "Anna's \"phone\"") }
        #expect(try await onThread { try client.devices() }.first?.name == "Anna's \"phone\"")
        let invite = try await onThread { try client.makeInvite(validFor: .seconds(3600)) }
        let now = Int64(time(nil))
        #expect((now + 3590...now + 3601).contains(invite.expiresAt.seconds))
        _ = try await tunnel.manager.pair(with: invite.link)
        #expect(try await onThread { try client.devices() }.count == 1)
        try await onThread { try client.revoke(id) }
        #expect(try await onThread { try client.devices() }.first?.isRevoked == true)
        await tunnel.close()
    }

    @Test("what cannot be done is told with its kind")
    func failures() async throws {
        let tunnel = try await Tunnel(to: .answering("hello"))
        let client = ControlClient(tunnel.directory.state("host"))
        let id = try #require(try await tunnel.host.devices().first?.id)
        #expect(await failure { try await onThread { try client.revoke("nobody00") } } == .authentication)
        #expect(await failure { try await onThread { try client.rename("nobody00", to: "x") } } == .authentication)
        #expect(await failure { try await onThread { try client.revoke("not an ID") } } == .authentication)
        #expect(await failure { try await onThread { try client.rename(id, to: "\u{7}") } } == .framing)
        #expect(
            await failure { try await onThread { try client.makeInvite(validFor: .seconds(31 * 86_400)) } } == .limit)
        #expect(await failure { try await onThread { try client.makeInvite(validFor: .zero) } } == .limit)
        await tunnel.close()
        #expect(await failure { try await onThread { try client.devices() } } == .unavailable)
        #expect(TemporaryDirectory.names(in: tunnel.directory.state("host").path).contains("host.sock") == false)
    }
}
