import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertTunnel

@Suite struct LocalGateTests {
    private static let token = "dt_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
    private static let good = "GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"

    private func gate(_ mode: LocalGate.Mode = .open, peer: UInt32? = 1000, own: UInt32 = 1000) -> LocalGate {
        LocalGate(mode: mode, peerUser: peer, ownUser: own, now: .at(100))
    }

    private func decide(_ text: String, _ mode: LocalGate.Mode = .open) -> LocalGate.Action {
        var gate = gate(mode)
        return gate.receive(Array(text.utf8), at: .at(100))
    }

    // MARK: Hosts, in every mode

    @Test(arguments: ["localhost", "localhost:80", "x.localhost", "127.0.0.1:9", "127.9.9.9", "[::1]:1", "LOCALHOST."])
    func loopbackHostsPass(host: String) {
        #expect(decide("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n") == .admit)
        #expect(decide("GET http://\(host)/ HTTP/1.1\r\nHost: \(host)\r\n\r\n") == .admit)
    }

    @Test(arguments: [
        "evil.example", "evil.example:80", "localhost.evil.example", "10.0.0.1", "[fe80::1]", "", "0.0.0.0",
    ])
    func otherHostsAreRefusedInEveryMode(host: String) {
        for mode in [LocalGate.Mode.open, .sameUser, .token(Self.token)] {
            let credentials = "Authorization: Bearer \(Self.token)\r\n"
            #expect(decide("GET / HTTP/1.1\r\nHost: \(host)\r\n\(credentials)\r\n", mode) == .refuse(.hostNotLoopback))
            #expect(decide("GET / HTTP/1.0\r\nHost: \(host)\r\n\(credentials)\r\n", mode) == .refuse(.hostNotLoopback))
        }
    }

    @Test func theTargetsAuthorityCountsToo() {
        #expect(decide("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n") == .refuse(.hostNotLoopback))
        #expect(decide("GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n\r\n") == .refuse(.hostNotLoopback))
        #expect(decide("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n") == .refuse(.hostNotLoopback))
        #expect(decide("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n") == .admit)
        #expect(decide("GET http://evil.example/ HTTP/1.0\r\n\r\n") == .refuse(.hostNotLoopback))
    }

    @Test func anOldRequestWithoutHostPasses() {
        #expect(decide("GET / HTTP/1.0\r\n\r\n") == .admit)
    }

    @Test func whatIsNotARequestIsRefused() {
        #expect(decide("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == .refuse(.badRequest))
        #expect(decide("GET / HTTP/1.1\r\n\r\n") == .refuse(.badRequest))
        #expect(decide("\u{16}\u{3}\u{1}") == .refuse(.badRequest))
    }

    // MARK: Users

    @Test func sameUser() {
        for (peer, action) in [
            (1000, .admit), (0, .refuse(.otherUser)), (1001, .refuse(.otherUser)), (nil, .refuse(.otherUser)),
        ] as [(UInt32?, LocalGate.Action)] {
            var gate = gate(.sameUser, peer: peer)
            #expect(gate.receive(Array(Self.good.utf8), at: .at(100)) == action)
        }
    }

    @Test func anotherUserIsRefusedWithTheFirstByte() {
        var gate = gate(.sameUser, peer: 1001)
        #expect(gate.receive([UInt8](), at: .at(100)) == .wait)
        #expect(gate.receive([0x47], at: .at(100)) == .refuse(.otherUser))
    }

    @Test func otherModesIgnoreTheUser() {
        var gate = gate(.open, peer: 1001)
        #expect(gate.receive(Array(Self.good.utf8), at: .at(100)) == .admit)
    }

    // MARK: Token

    @Test(arguments: [
        ("Authorization: Bearer \(token)\r\n", true), ("authorization:Bearer \(token) \r\n", true), ("", false),
        ("Authorization: Bearer \(token)x\r\n", false), ("Authorization: Bearer \(token.dropLast())\r\n", false),
        ("Authorization: Bearer \(token.dropLast())H\r\n", false), ("Authorization: \(token)\r\n", false),
        ("Authorization: Basic \(token)\r\n", false), ("Authorization: bearer \(token)\r\n", false),
        ("Authorization: Bearer  \(token)\r\n", false), ("Proxy-Authorization: Bearer \(token)\r\n", false),
        ("Authorization: Bearer \(token)\r\nAuthorization: Bearer \(token)\r\n", false),
        ("Authorization: Bearer \(token)\r\nAUTHORIZATION: Bearer x\r\n", false), ("Authorization:\r\n", false),
    ])
    func tokens(field: String, passes: Bool) {
        let text = "GET / HTTP/1.1\r\nHost: localhost\r\n\(field)\r\n"
        #expect(decide(text, .token(Self.token)) == (passes ? .admit : .refuse(.localToken)))
    }

    @Test func theTokenIsNeverPrinted() {
        var dumped = ""
        dump(gate(.token(Self.token)), to: &dumped)
        #expect(!dumped.contains(Self.token))
        #expect("\(LocalGate.Mode.token(Self.token))" == "token")
        #expect("\(LocalGate.Mode.sameUser) \(LocalGate.Mode.open)" == "same-user open")
    }

    // MARK: Time and size

    @Test func aSilentConnectionIsClosedSilently() {
        var gate = gate()
        #expect(gate.deadline == .at(160))
        #expect(gate.expired(at: Instant.at(160).justBefore) == .wait)
        #expect(gate.expired(at: .at(160)) == .close)
        #expect(gate.receive(Array(Self.good.utf8), at: .at(161)) == .close)
    }

    @Test func theHeadsTimeBeginsWithTheFirstByte() {
        var gate = gate()
        #expect(gate.receive([UInt8](), at: .at(110)) == .wait)
        #expect(gate.deadline == .at(160))
        #expect(gate.receive([0x47], at: .at(150)) == .wait)
        #expect(gate.deadline == .at(152))
        #expect(gate.receive([0x45], at: .at(151)) == .wait)
        #expect(gate.deadline == .at(152))
        #expect(gate.expired(at: Instant.at(152).justBefore) == .wait)
        #expect(gate.expired(at: .at(152)) == .refuse(.headTimeout))
        #expect(gate.deadline == .never)
    }

    @Test func bytesBeforeTheTimerAreInTime() {
        var gate = gate()
        #expect(gate.receive(Array(Self.good.utf8.dropLast()), at: .at(100)) == .wait)
        #expect(gate.receive([0x0a], at: .at(200)) == .admit)
        #expect(gate.deadline == .never)
        #expect(gate.expired(at: .at(300)) == .admit)
        #expect(gate.ended() == .admit)
    }

    @Test func anEarlyEnd() {
        var silent = gate()
        #expect(silent.ended() == .close)
        var partial = gate()
        #expect(partial.receive([0x47], at: .at(100)) == .wait)
        #expect(partial.ended() == .refuse(.badRequest))
    }

    @Test func headAtItsLimitAndOnePast() {
        let fixed = "GET / HTTP/1.1\r\nHost: localhost\r\nx: \r\n\r\n"
        func request(_ count: Int) -> String {
            fixed.replacing("x: ", with: "x: " + String(repeating: "y", count: count - fixed.utf8.count))
        }
        #expect(decide(request(TunnelLimits.head)) == .admit)
        #expect(decide(request(TunnelLimits.head + 1)) == .refuse(.headTooLarge))
    }

    @Test func theCutsDoNotMatter() {
        var random = SplitMix64(seed: 7)
        let good = Array("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(Self.token)\r\n\r\n".utf8)
        var admitted = 0
        for round in 0..<3000 {
            var bytes = good
            for _ in 0..<round % 3 { bytes = random.damaged(bytes) }
            var whole = gate(.token(Self.token))
            let expected = whole.receive(bytes, at: .at(100))
            var cut = gate(.token(Self.token))
            var action = LocalGate.Action.wait
            for piece in random.chunks(bytes) { action = cut.receive(piece, at: .at(100)) }
            #expect(action == expected)
            if action == .admit { admitted += 1 }
        }
        #expect((1000..<2900).contains(admitted))
    }
}
