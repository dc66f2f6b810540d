import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertTunnel

@Suite struct PairingLimiterTests {
    private func failing(_ times: [Double]) -> PairingLimiter<String> {
        var limiter = PairingLimiter<String>()
        for time in times { limiter.recordFailure(from: "a", at: .at(time)) }
        return limiter
    }

    @Test func theFifthFailureBlocks() {
        #expect(!failing([0, 1, 2, 3]).isBlocked("a", at: .at(3)))
        let blocked = failing([0, 1, 2, 3, 4])
        #expect(blocked.isBlocked("a", at: .at(4)))
        #expect(!blocked.isBlocked("b", at: .at(4)))
    }

    @Test func theBlocksEnd() {
        let limiter = failing([0, 1, 2, 3, 4])
        #expect(limiter.isBlocked("a", at: Instant.at(124).justBefore))
        #expect(!limiter.isBlocked("a", at: .at(124)))
    }

    @Test func theWindowsEnd() {
        #expect(failing([0, 15, 30, 45, 60]).isBlocked("a", at: .at(60)))
        #expect(!failing([0, 15, 30, 45, 60.000000001]).isBlocked("a", at: .at(61)))
        // The window slides: five of the last 60 s.
        #expect(failing([0, 30, 40, 50, 61, 70]).isBlocked("a", at: .at(70)))
    }

    @Test func failuresWhileBlockedDoNotProlong() {
        var limiter = failing([0, 1, 2, 3, 4, 50, 60, 70, 80, 90, 100])
        #expect(!limiter.isBlocked("a", at: .at(124)))
        // After the block the count begins anew.
        for time in [124.0, 125, 126, 127] { limiter.recordFailure(from: "a", at: .at(time)) }
        #expect(!limiter.isBlocked("a", at: .at(127)))
        limiter.recordFailure(from: "a", at: .at(128))
        #expect(limiter.isBlocked("a", at: .at(128)))
    }

    @Test func onlyTheSourcesOwnFailuresCount() {
        var limiter = PairingLimiter<String>()
        for refusal in PairingRefusal.allCases {
            var one = PairingLimiter<String>()
            one.record(.refused(refusal), from: "a", at: .at(0))
            #expect(one.count == (refusal == .blocked || refusal == .hostState ? 0 : 1))
        }
        limiter.record(.granted(PairingGrant(deviceToken: "x", transports: [])), from: "a", at: .at(0))
        #expect(limiter.count == 0)
    }

    @Test func memoryAtItsLimitAndOnePast() {
        var limiter = PairingLimiter<Int>(capacity: 3)
        for time in 0..<5 { limiter.recordFailure(from: 0, at: .at(Double(time))) }
        limiter.recordFailure(from: 1, at: .at(5))
        limiter.recordFailure(from: 2, at: .at(5))
        #expect(limiter.count == 3)
        #expect(limiter.isBlocked(0, at: .at(6)))
        limiter.recordFailure(from: 1, at: .at(6))
        limiter.recordFailure(from: 3, at: .at(6))  // forgets the least recent: 0
        #expect(limiter.count == 3)
        #expect(!limiter.isBlocked(0, at: .at(6)))
        #expect(PairingLimiter<Int>(capacity: 0).count == 0)
    }

    /// Against a plain model: lists of failures, no bound.
    @Test func agreesWithAModel() {
        var random = SplitMix64(seed: 9)
        var limiter = PairingLimiter<Int>(capacity: 64)
        var failures: [Int: [Double]] = [:]
        var blocked: [Int: Double] = [:]
        var time = 0.0
        var blocks = 0
        for _ in 0..<20000 {
            time += Double.random(in: 0...2, using: &random).rounded(.down)
            let source = Int.random(in: 0..<12, using: &random)
            let isBlocked = time < blocked[source, default: -1]
            #expect(limiter.isBlocked(source, at: .at(time)) == isBlocked)
            limiter.recordFailure(from: source, at: .at(time))
            if !isBlocked {
                failures[source] = failures[source, default: []].filter { time - $0 <= 60 } + [time]
                if failures[source]?.count == 5 {
                    blocked[source] = time + 120
                    failures[source] = []
                    blocks += 1
                }
            }
        }
        #expect(blocks > 100)
    }

    @Test func manySourcesStayBounded() {
        var limiter = PairingLimiter<Int>()
        for source in 0..<5000 { limiter.recordFailure(from: source, at: .at(Double(source))) }
        #expect(limiter.count == TunnelLimits.pairingSources)
    }
}
