import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelayServer
import Testing

@testable import Culvert

/// A relay in this process.
struct TestRelay {
    let service: RelayService
    let url: RelayURL

    init(port: UInt16 = 0) async throws {
        service = try RelayService()
        var configuration = RelayConfiguration()
        configuration.listen = [SocketAddress(.loopbackV4, port: port)]
        let listening = try await service.start(configuration)
        url = try RelayURL("http://\(listening[0].address)", allowInsecure: true)
    }

    /// Options of nodes that reach each other through this relay only.
    var options: RelayOptions {
        var options = RelayOptions()
        options.relays = [url]
        options.allowsInsecure = true
        options.path = .relay
        return options
    }

    func close() async {
        await service.stop()
        service.end()
    }
}

@Suite("Through a relay", .timeLimit(.minutes(1)))
struct RelayedTests {
    @Test("pairing and requests work with relayed paths only, and the evidence says so")
    func wholeJob() async throws {
        let relay = try await TestRelay()
        let tunnel = try await Tunnel(to: .answering("hello"), relay: relay.options)
        #expect(try await EndpointTicket(text: tunnel.host.ticket).addresses == [.relay(relay.url.text)])
        let connection = try await tunnel.connect()
        let kind = await connection.firstEvent { if case .path(let path) = $0 { path.kind } else { nil } }
        #expect(kind == .relay)
        #expect(try await get(connection.port).hasSuffix("hello"))
        await tunnel.close()
        await relay.close()
    }
}
