import CulvertCore
import CulvertIdentity
import CulvertTransport
import Testing

@Suite("Handshake")
struct HandshakeTests {
    @Test("both sides learn who the other is, and the protocol")
    func mutualIdentity() throws {
        let pair = try TestPair(seed: 1)
        let (connection, handler) = try pair.connect()
        #expect(handler.isEstablished)
        #expect(connection.peer == pair.serverKey.nodeID)
        #expect(connection.alpn == TestPair.alpn)
        pair.network.run(until: { pair.acceptor.connections.first?.handler.isEstablished == true })
        let accepted = try #require(pair.acceptor.connections.first)
        #expect(accepted.connection.peer == pair.clientKey.nodeID)
        #expect(accepted.connection.alpn == TestPair.alpn)
    }

    @Test("another node than the expected one fails closed, on both sides")
    func wrongNode() throws {
        let pair = try TestPair(seed: 2)
        let (_, handler) = try pair.dial(expecting: SecretKey.generate().nodeID)
        pair.network.run(for: .seconds(5))
        #expect(!handler.isEstablished)
        #expect(handler.end?.error.kind == .peerIdentity)
        let accepted = try #require(pair.acceptor.connections.first)
        #expect(!accepted.handler.isEstablished)
        #expect(accepted.handler.end?.error.kind == .peerIdentity)
    }

    @Test("no protocol in common fails closed, on both sides")
    func wrongProtocol() throws {
        let pair = try TestPair(seed: 3)
        let (_, handler) = try pair.dial(alpn: "other/1")
        pair.network.run(for: .seconds(5))
        #expect(handler.end?.error.kind == .alpn)
        #expect(pair.acceptor.connections.first?.handler.end?.error.kind == .alpn)
    }

    @Test("silence is an availability failure")
    func nobodyThere() throws {
        var conditions = LinkConditions()
        conditions.loss = 1
        let pair = try TestPair(seed: 4, conditions)
        let (_, handler) = try pair.dial()
        pair.network.run(for: .seconds(30), until: { handler.end != nil })
        #expect(handler.end?.error.kind == .timedOut)
        #expect(handler.end?.error.kind.mayFallBack == true)
    }
}
