import CulvertCore
import CulvertIdentity
import CulvertTestSupport
import Testing

@testable import CulvertRelay

@Suite("Relay handshake")
struct RelayHandshakeTests {
    private let start = Instant.at(100)

    private func client(_ byte: UInt8 = 0x2a, sentProof: Bool = false) throws -> RelayClientHandshake {
        RelayClientHandshake(key: try key(byte), version: .v2, sentProof: sentProof, at: start)
    }

    private func server(_ challenge: [UInt8] = Array(0..<16)) throws -> RelayServerHandshake {
        RelayServerHandshake(challenge: try #require(RelayChallenge(bytes: challenge)), version: .v2, at: start)
    }

    private func give(_ bytes: [UInt8], to client: inout RelayClientHandshake) throws -> RelayClientHandshake.Step {
        try bytes.withUnsafeBytes { try client.receive($0) }
    }

    private func give(_ bytes: [UInt8], to server: inout RelayServerHandshake) throws -> RelayServerHandshake.Step {
        try bytes.withUnsafeBytes { try server.receive($0) }
    }

    private func proof(of client: inout RelayClientHandshake, for greeting: [UInt8]) throws -> [UInt8] {
        guard case .send(let frame) = try give(greeting, to: &client) else { return [] }
        return frame
    }

    @Test("challenge, proof, confirmation, with the bytes of the vectors")
    func complete() throws {
        var client = try client()
        var server = try server()
        #expect(Hex.encode(server.greeting) == "00000102030405060708090a0b0c0d0e0f")
        let proof = try proof(of: &client, for: server.greeting)
        #expect(Hex.encode(proof) == "01\(RelayFrameTests.publicKey)40\(RelayFrameTests.signature)")
        #expect(try give(proof, to: &server) == .proved(try key().nodeID))
        #expect(try give(RelayServerHandshake.confirmation, to: &client) == .confirmed)
    }

    @Test("a real client's proof of its challenge is accepted")
    func realClient() throws {
        var server = try server(.init(hex: "9267b87a04a2b86c4bf482cb19ab26b1"))
        let proof =
            "01ed4928c628d1c2c6eae90338905995612959273a5c63f93636c14614ac8737d14063a21c44de5c42dd6da0a9c120c466743724"
            + "267a53da3a47eec38b6469195827e16f733c32737f3c97685bdca332e38b842a96b2bd571f3e740efa10aed87005"
        #expect(try give(.init(hex: proof), to: &server) == .proved(try key(3).nodeID))
    }

    @Test("a proof for another challenge is refused: nothing can be replayed")
    func replay() throws {
        var client = try client()
        let old = try proof(of: &client, for: server().greeting)
        var server = try server(Array(1..<17))
        #expect(try give(old, to: &server) == .denied(.signature))
    }

    @Test("any damage to the proof is refused", arguments: 0..<100)
    func damage(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var client = try client()
        var server = try server()
        let proof = try proof(of: &client, for: server.greeting)
        let damaged = random.damaged(proof)
        guard damaged != proof else { return }
        do {
            let step = try give(damaged, to: &server)
            #expect(step == .denied(.malformed) || step == .denied(.signature))
        } catch let error as TransportError {
            #expect(error.kind == .protocolViolation)
            #expect(damaged.first != 1)
        }
    }

    @Test("a server takes one answer, and only an answer")
    func serverOrder() throws {
        var client = try client()
        var server = try server()
        let proof = try proof(of: &client, for: server.greeting)
        _ = try give(proof, to: &server)
        #expect(failure { try give(proof, to: &server) } == .protocolViolation)
        for frame in [[], [0] + [UInt8](repeating: 0, count: 16), [2], [9, 0, 0, 0, 0, 0, 0, 0, 0], [14]] {
            var fresh = try self.server()
            #expect(failure { try give(frame, to: &fresh) } == .protocolViolation)
        }
    }

    @Test("a client signs one challenge, and nothing follows the end")
    func clientOrder() throws {
        let greeting = try server().greeting
        var twice = try client()
        _ = try give(greeting, to: &twice)
        #expect(failure { try give(greeting, to: &twice) } == .protocolViolation)
        var done = try client()
        _ = try give(greeting, to: &done)
        _ = try give([2], to: &done)
        for frame in [[2], RelayDenial.signature.frame, greeting] {
            #expect(failure { try give(frame, to: &done) } == .protocolViolation)
        }
        for frame in [[9, 0, 0, 0, 0, 0, 0, 0, 0], [14], [6] + [UInt8](repeating: 0, count: 40)] {
            var fresh = try client()
            #expect(failure { try give(frame, to: &fresh) } == .protocolViolation)
        }
    }

    @Test("a confirmation without a challenge is accepted only from a server that got a proof over TLS")
    func shortcut() throws {
        var without = try client()
        #expect(failure { try give([2], to: &without) } == .protocolViolation)
        var with = try client(sentProof: true)
        #expect(try give([2], to: &with) == .confirmed)
        var challenged = try client(sentProof: true)
        #expect(try proof(of: &challenged, for: server().greeting).count == 98)
    }

    @Test("a denial is heard before and after the proof, and its reason is kept short", arguments: [false, true])
    func denial(answered: Bool) throws {
        var client = try client()
        if answered { _ = try give(server().greeting, to: &client) }
        let long = RelayFrame.serverDeniesAuth(reason: String(repeating: "n", count: 257)).encoded
        #expect(try give(long, to: &client) == .denied(reason: String(repeating: "n", count: 256)))
        var other = try self.client()
        #expect(try give(RelayDenial.notAuthorized.frame, to: &other) == .denied(reason: "not authorized"))
    }

    @Test("both sides give up after ten seconds")
    func deadlines() throws {
        #expect(try client().deadline == .at(110))
        #expect(try server().deadline == .at(110))
    }

    @Test("a challenge has 16 bytes")
    func challengeLength() {
        for count in [0, 15, 17] { #expect(RelayChallenge(bytes: [UInt8](repeating: 0, count: count)) == nil) }
    }
}

@Suite("Relay proof over TLS")
struct RelayTLSProofTests {
    private let exported = Array<UInt8>(100..<132)

    @Test("the header has 151 characters and the documented layout")
    func layout() throws {
        let proof = try #require(RelayTLSProof(key: try key(), exported: exported))
        #expect(proof.headerValue.utf8.count == 151)
        let bytes = try #require(Base64URL.decode(proof.headerValue))
        #expect(bytes.count == 113)
        #expect(Array(bytes[..<32]) == (try key().nodeID.bytes))
        #expect(bytes[32] == 0x40)
        #expect(try key().nodeID.verify(signature: bytes[33..<97], of: exported[..<16]))
        #expect(Array(bytes[97...]) == Array(exported[16...]))
        #expect(RelayTLSProof.exporterContext(try key().nodeID) == (try key().nodeID.bytes))
    }

    @Test("a proof is worth something on its own session only")
    func verification() throws {
        let proof = try #require(RelayTLSProof(key: try key(), exported: exported))
        let received = try #require(RelayTLSProof(headerValue: proof.headerValue))
        #expect(received.nodeID == (try key().nodeID))
        #expect(received.verify(exported: exported))
        for index in exported.indices {
            var other = exported
            other[index] ^= 1
            #expect(!received.verify(exported: other), "byte \(index)")
        }
        #expect(!received.verify(exported: Array(exported[..<31])))
        #expect(!received.verify(exported: []))
    }

    @Test("only 32 bytes of keying material make a proof")
    func material() throws {
        #expect(RelayTLSProof(key: try key(), exported: Array(exported[..<31])) == nil)
        #expect(RelayTLSProof(key: try key(), exported: exported + [0]) == nil)
    }

    @Test("damaged headers are no proof", arguments: 0..<100)
    func damage(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let text = try #require(RelayTLSProof(key: try key(), exported: exported)).headerValue
        let damaged = String(decoding: random.damaged(Array(text.utf8)), as: UTF8.self)
        guard damaged != text else { return }
        #expect(RelayTLSProof(headerValue: damaged)?.verify(exported: exported) != true)
    }
}
