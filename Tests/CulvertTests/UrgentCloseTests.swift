import CulvertCore
import Testing

@testable import Culvert

/// Closing at once while an orderly close waits for requests.
@Suite("Closing twice", .timeLimit(.minutes(1)))
struct UrgentCloseTests {
    /// A tunnel with a request that never ends.
    private func stuck() async throws -> (Tunnel, ServerConnection, RawSocket) {
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
        return (tunnel, connection, client)
    }

    @Test("a host that drains can be shut down at once, and its devices hear of it")
    func host() async throws {
        let (tunnel, connection, client) = try await stuck()
        let orderly = Task { await tunnel.host.shutdown(grace: .seconds(600)) }
        // Once new requests are refused, the first shutdown is waiting.
        while !(try await get(connection.port).hasPrefix("HTTP/1.1 503")) {}
        await tunnel.host.shutdown(grace: .zero)
        await orderly.value
        let lost = await connection.firstEvent { if case .disconnected(let error) = $0 { error } else { nil } }
        #expect(lost != nil)
        await #expect(throws: Failure.self) { try await onThread { try client.receiveAll() } }
        client.close()
        await tunnel.close()
    }

    @Test("a connection that drains can be closed at once, by itself or with its endpoint", arguments: [true, false])
    func connection(withEndpoint: Bool) async throws {
        let (tunnel, connection, client) = try await stuck()
        let orderly = Task { await connection.close(grace: .seconds(600)) }
        // Once the port is closed, the first close is waiting. On a thread of its own, so that the task gets one.
        while let another = try? await onThread({ try RawSocket(port: connection.port) }) { another.close() }
        if withEndpoint { await tunnel.manager.close() } else { await connection.close(grace: .zero) }
        await orderly.value
        await #expect(throws: Failure.self) { try await onThread { try client.receiveAll() } }
        for await event in tunnel.host.events { if case .deviceDisconnected = event { break } }
        client.close()
        await tunnel.close()
    }
}
