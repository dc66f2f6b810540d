import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertRelay

@Suite("Relay sessions")
struct RelaySessionTests {
    private func client(_ version: RelayVersion = .v2) -> RelayClientSession {
        RelayClientSession(version: version, pingPayload: 7, at: .at(100))
    }

    private func server(random: UInt64 = 0) -> RelayServerSession {
        RelayServerSession(version: .v2, random: random, at: .at(100))
    }

    private func give(
        _ frame: RelayFrame, to session: inout RelayClientSession, at now: Instant
    ) throws -> RelayClientSession.Event {
        try frame.encoded.withUnsafeBytes { try session.receive($0, at: now) }
    }

    private func give(
        _ frame: RelayFrame, to session: inout RelayServerSession, at now: Instant
    ) throws -> RelayServerSession.Event {
        try frame.encoded.withUnsafeBytes { try session.receive($0, at: now) }
    }

    @Test("a client pings at once, measures the round trip, and asks again after 15 s of silence")
    func clientPings() throws {
        var session = client()
        #expect(session.greeting == RelayFrame.ping(7).encoded)
        #expect(session.deadline == .at(105))
        guard case .roundTrip(let time) = try give(.pong(7), to: &session, at: .at(100.25)) else {
            Issue.record("no round trip")
            return
        }
        #expect(time == .milliseconds(250))
        #expect(session.deadline == .at(115.25))
        #expect(session.expire(pingPayload: 8, at: Instant.at(115.25).justBefore) == .notYet)
        #expect(session.expire(pingPayload: 8, at: .at(115.25)) == .send(RelayFrame.ping(8).encoded))
        #expect(session.deadline == .at(120.25))
    }

    @Test("a relay that falls silent is dead 20 s later, not before")
    func clientNoticesSilence() throws {
        var session = client()
        _ = try give(.pong(7), to: &session, at: .at(101))
        _ = session.expire(pingPayload: 8, at: .at(116))
        #expect(session.expire(pingPayload: 9, at: Instant.at(121).justBefore) == .notYet)
        #expect(session.expire(pingPayload: 9, at: .at(121)) == .dead)
    }

    @Test("only the Pong of the Ping under way keeps a session alive")
    func wrongPong() throws {
        var session = client()
        guard case .nothing = try give(.pong(6), to: &session, at: .at(104)) else {
            Issue.record("took another's Pong")
            return
        }
        _ = try give(.endpointGone(peer(1)), to: &session, at: .at(104))
        #expect(session.deadline == .at(105))
        #expect(session.expire(pingPayload: 8, at: .at(105)) == .dead)
        var late = client()
        _ = try give(.pong(7), to: &late, at: .at(101))
        guard case .nothing = try give(.pong(7), to: &late, at: .at(102)) else {
            Issue.record("took a Pong twice")
            return
        }
    }

    @Test("every message moves the next Ping, and the timer need not follow")
    func activity() throws {
        var session = client()
        _ = try give(.pong(7), to: &session, at: .at(101))
        for second in 102...130 {
            _ = try give(.status(.healthy), to: &session, at: .at(Double(second)))
            #expect(session.deadline == .at(Double(second) + 15))
            #expect(session.expire(pingPayload: 8, at: .at(Double(second))) == .notYet)
        }
    }

    @Test("a client learns what the relay says", arguments: RelayVersion.allCases)
    func clientEvents(version: RelayVersion) throws {
        var session = client(version)
        let now = Instant.at(101)
        guard case .reply(let pong) = try give(.ping(99), to: &session, at: now) else {
            Issue.record("no reply")
            return
        }
        #expect(pong == RelayFrame.pong(99).encoded)
        guard case .endpointGone(peer(5)) = try give(.endpointGone(peer(5)), to: &session, at: now) else {
            Issue.record("not gone")
            return
        }
        let restart = RelayRestart(reconnectIn: .seconds(1), tryFor: .seconds(2))
        guard case .restarting(restart) = try give(.restarting(restart), to: &session, at: now) else {
            Issue.record("not restarting")
            return
        }
        switch version {
        case .v1:
            guard case .health("ill") = try give(.health("ill"), to: &session, at: now) else {
                Issue.record("no health")
                return
            }
            #expect(failure { try give(.status(.healthy), to: &session, at: now) } == .protocolViolation)
        case .v2:
            guard case .status(.sameIDConnected) = try give(.status(.sameIDConnected), to: &session, at: now) else {
                Issue.record("no status")
                return
            }
            #expect(failure { try give(.health("ill"), to: &session, at: now) } == .protocolViolation)
        }
        #expect(failure { try give(.serverConfirmsAuth, to: &session, at: now) } == .protocolViolation)
    }

    @Test("datagrams pass a session without a copy")
    func datagrams() throws {
        var bytes = [UInt8](repeating: 3, count: 40)
        bytes[0] = 6
        var session = client()
        try bytes.withUnsafeBytes { buffer in
            guard case .datagrams(let view) = try session.receive(buffer, at: .at(101)) else {
                Issue.record("no datagrams")
                return
            }
            #expect(view.contents.baseAddress == buffer.baseAddress.map { $0 + 34 })
        }
        bytes[0] = 4
        var server = server()
        try bytes.withUnsafeBytes { buffer in
            guard case .forward(let view) = try server.receive(buffer, at: .at(101)) else {
                Issue.record("no datagrams")
                return
            }
            #expect(view.peer == peer(3))
            #expect(view.contents.baseAddress == buffer.baseAddress.map { $0 + 34 })
        }
    }

    @Test("a server pings after 16 to 20 s of silence", arguments: [(UInt64(0), 16.0), (.max, 20), (1 << 63, 18)])
    func serverPings(random: UInt64, seconds: Double) throws {
        var session = server(random: random)
        #expect(session.deadline == .at(100 + seconds))
        _ = try give(.ping(1), to: &session, at: .at(103))
        #expect(session.deadline == .at(103 + seconds))
        #expect(session.expire(random: random, at: Instant.at(103 + seconds).justBefore) == .notYet)
        #expect(session.expire(random: random, at: .at(103 + seconds)) == .send(RelayFrame.ping(random).encoded))
        #expect(session.deadline == .at(108 + seconds))
        #expect(session.expire(random: 5, at: Instant.at(108 + seconds).justBefore) == .notYet)
        #expect(session.expire(random: 5, at: .at(108 + seconds)) == .dead)
    }

    @Test("a client that answers stays, and each silence has its own jitter")
    func serverPong() throws {
        var session = server()
        _ = session.expire(random: .max, at: .at(116))
        guard case .roundTrip(.seconds(1)) = try give(.pong(.max), to: &session, at: .at(117)) else {
            Issue.record("no round trip")
            return
        }
        #expect(session.deadline == .at(137))
        guard case .reply(let pong) = try give(.ping(4), to: &session, at: .at(118)) else {
            Issue.record("no reply")
            return
        }
        #expect(pong == RelayFrame.pong(4).encoded)
    }

    @Test("a client may not send what only relays send")
    func serverRefuses() {
        var session = server()
        for frame in [RelayFrame.endpointGone(peer(1)), .status(.healthy), .health(""), .serverConfirmsAuth] {
            #expect(failure { try give(frame, to: &session, at: .at(101)) } == .protocolViolation)
        }
        // What is refused is no sign of life.
        #expect(session.deadline == .at(116))
    }

    @Test("a server reports in the words of the version")
    func serverReports() {
        #expect(server().report(.sameIDConnected) == [13, 1])
        let old = RelayServerSession(version: .v1, random: 0, at: .at(0))
        #expect(old.report(.sameIDConnected).first == 11)
    }
}

@Suite("Relay reconnection")
struct RelayBackoffTests {
    @Test("pauses double from a quarter of a second to half a minute")
    func bounds() {
        var shortest = RelayBackoff()
        let least = (0..<9).map { _ in shortest.next(random: 0, at: .at(0)).milliseconds }
        #expect(least == [250, 500, 1000, 2000, 4000, 8000, 15000, 15000, 15000])
        var longest = RelayBackoff()
        let most = (0..<9).map { _ in longest.next(random: .max, at: .at(0)).milliseconds }
        #expect(most == [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000])
    }

    @Test("pauses are spread over their range", arguments: 0..<20)
    func jitter(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let pauses = (0..<100).map { _ in
            var backoff = RelayBackoff()
            return backoff.next(random: random.next(), at: .at(0)).milliseconds
        }
        #expect(pauses.allSatisfy { (250...500).contains($0) })
        #expect(pauses.contains { $0 < 300 } && pauses.contains { $0 > 450 })
    }

    @Test("success begins anew")
    func success() {
        var backoff = RelayBackoff()
        for _ in 0..<10 { _ = backoff.next(random: 0, at: .at(0)) }
        backoff.succeeded()
        #expect(backoff.next(random: 0, at: .at(0)) == .milliseconds(250))
    }

    @Test("a restarting relay is given the time it asks for, then tried quickly for as long as it says")
    func restart() {
        var backoff = RelayBackoff()
        for _ in 0..<10 { _ = backoff.next(random: 0, at: .at(0)) }
        backoff.announced(RelayRestart(reconnectIn: .seconds(2), tryFor: .seconds(5)), at: .at(100))
        #expect(backoff.next(random: 0, at: .at(100)) == .milliseconds(2250))
        for second in [103.0, 104, 106.9] { #expect(backoff.next(random: 0, at: .at(second)) == .milliseconds(250)) }
        #expect(backoff.next(random: 0, at: .at(107)) == .milliseconds(250))
        #expect(backoff.next(random: 0, at: .at(107)) == .milliseconds(500))
    }

    @Test("a restarting relay cannot keep clients away, nor have them hammer it")
    func restartLimits() {
        let longest = RelayRestart(reconnectIn: .seconds(4_000_000), tryFor: .seconds(4_000_000))
        for random in [0, UInt64.max] {
            var backoff = RelayBackoff()
            backoff.announced(longest, at: .at(0))
            let first = backoff.next(random: random, at: .at(0))
            #expect(first == (random == 0 ? .milliseconds(29_250) : .seconds(30)))
            #expect(backoff.next(random: 0, at: Instant.at(89).justBefore) == .milliseconds(250))
            #expect(backoff.next(random: 0, at: Instant.at(89).justBefore) == .milliseconds(250))
            #expect(backoff.next(random: 0, at: .at(89)) == .milliseconds(250))
            #expect(backoff.next(random: 0, at: .at(89)) == .milliseconds(500))
        }
        var now = RelayBackoff()
        now.announced(RelayRestart(reconnectIn: .zero, tryFor: .zero), at: .at(0))
        #expect(now.next(random: 0, at: .at(0)) == .milliseconds(250))
        now.announced(RelayRestart(reconnectIn: .zero, tryFor: .zero), at: .at(0))
        #expect(now.next(random: .max, at: .at(0)) == .seconds(1))
    }
}
