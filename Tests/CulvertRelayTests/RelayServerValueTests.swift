import CulvertCore
import CulvertIdentity
import CulvertTestSupport
import Testing

@testable import CulvertRelay

/// Lets `#expect` look at the result of a mutating call, which it would make on a copy.
private func result(_ value: Bool) -> Bool { value }

struct RelayBacklogTests {
    @Test func takesAsManyDatagramsAsTheLimitAndNoMore() {
        var backlog = RelayBacklog()
        for _ in 0..<RelayServerLimits.queuedDatagrams - 10 { #expect(result(backlog.admit(bytes: 100, datagrams: 1))) }
        #expect(!result(backlog.admit(bytes: 1000, datagrams: 11)))
        #expect(result(backlog.admit(bytes: 1000, datagrams: 10)))
        #expect(!result(backlog.admit(bytes: 1, datagrams: 1)))
        #expect(result(backlog.admitReply(bytes: 9)), "an answer takes no datagram's room")
        backlog.sent(99)
        #expect(!result(backlog.admit(bytes: 1, datagrams: 1)), "half a frame is still there")
        backlog.sent(1)
        #expect(result(backlog.admit(bytes: 1, datagrams: 1)))
    }

    @Test func takesAsManyBytesAsTheLimitAndNoMore() {
        var backlog = RelayBacklog()
        #expect(result(backlog.admit(bytes: RelayServerLimits.queuedBytes - 1, datagrams: 1)))
        #expect(!result(backlog.admit(bytes: 2, datagrams: 1)))
        #expect(result(backlog.admit(bytes: 1, datagrams: 1)))
    }

    @Test func takesAsManyRepliesAsTheLimitAndNoMore() {
        var backlog = RelayBacklog()
        for _ in 0..<RelayServerLimits.queuedReplies { #expect(result(backlog.admitReply(bytes: 11))) }
        #expect(!result(backlog.admitReply(bytes: 11)))
        backlog.sent(11)
        #expect(result(backlog.admitReply(bytes: 11)))
    }

    @Test(arguments: 0..<30) func countsWhateverIsSentInWhateverPieces(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var backlog = RelayBacklog()
        var frames: [(left: Int, datagrams: Int)] = []
        for _ in 0..<2000 {
            if generator.chance(0.5) {
                let (bytes, datagrams) = (
                    Int.random(in: 1...3000, using: &generator), Int.random(in: 1...12, using: &generator)
                )
                let fits =
                    frames.reduce(0) { $0 + $1.datagrams } + datagrams <= RelayServerLimits.queuedDatagrams
                    && frames.reduce(0) { $0 + $1.left } + bytes <= RelayServerLimits.queuedBytes
                #expect(result(backlog.admit(bytes: bytes, datagrams: datagrams)) == fits)
                if fits { frames.append((bytes, datagrams)) }
            } else {
                var count = Int.random(in: 0...min(backlog.bytes, 9000), using: &generator)
                backlog.sent(count)
                while count > 0 {
                    let part = min(count, frames[0].left)
                    frames[0].left -= part
                    count -= part
                    if frames[0].left == 0 { frames.removeFirst() }
                }
                if generator.chance(0.1) { backlog.trim() }
            }
            #expect(backlog.bytes == frames.reduce(0) { $0 + $1.left })
            #expect(backlog.datagrams == frames.reduce(0) { $0 + $1.datagrams })
        }
    }
}

struct TokenBucketTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    @Test func isNothingWithoutALimit() {
        #expect(TokenBucket(bytesPerSecond: 0, at: start) == nil)
    }

    @Test func holdsTheRateInTheLongRun() throws {
        var bucket = try #require(TokenBucket(bytesPerSecond: 1_000_000, at: start))
        var now = start
        var spent = 0
        while now < start + .seconds(10) {
            spent += 50_000
            now = bucket.spend(50_000, at: now) ?? now
        }
        #expect((10_000_000...10_400_000).contains(spent))
    }

    @Test func givesABurstAndThenADebtThatEnds() throws {
        var bucket = try #require(TokenBucket(bytesPerSecond: 1_000_000, at: start))
        let burst = bucket.spend(250_000, at: start)
        #expect(burst == nil)
        let debt = bucket.spend(100_000, at: start)
        let end = try #require(debt)
        #expect(abs((end - start).milliseconds - 100) < 0.01)
        let after = bucket.spend(0, at: end)
        #expect(after == nil)
    }
}

struct ConnectionCensusTests {
    @Test func countsAddressesAndAllOfThem() throws {
        var quota = RelayServerQuota()
        quota.connections = 3
        quota.connectionsPerAddress = 2
        var census = ConnectionCensus()
        let one = try #require(IPAddress("192.0.2.1"))
        let mapped = try #require(IPAddress("::ffff:192.0.2.1"))
        let two = try #require(IPAddress("2001:db8::1"))
        let sameNetwork = try #require(IPAddress("2001:db8::ffff"))
        #expect(census.enter(one, quota) == .taken)
        #expect(census.enter(mapped, quota) == .taken)
        #expect(census.enter(one, quota) == .addressFull)
        #expect(census.enter(two, quota) == .taken)
        #expect(census.enter(sameNetwork, quota) == .full)
        census.leave(one)
        #expect(census.enter(sameNetwork, quota) == .taken)
        census.leave(mapped)
        #expect(census.enter(two, quota) == .addressFull, "a /64 is one address")
        for address in [two, sameNetwork] { census.leave(address) }
        #expect(census.total == 0)
    }
}

struct RelayAccessTests {
    @Test func everyRuleThatIsSetMustBePassed() throws {
        let node = try #require(NodeID("197f6b23e16c8532c6abc838facd5ea789be0c76b2920334039bfa8b3d368d61"))
        var access = RelayAccess()
        #expect(access.admits(node) && access.admits(nil as TokenHash?))
        access.tokens = [TokenHash(ofText: "a"), TokenHash(ofText: "b")]
        #expect(!access.admits(nil as TokenHash?) && !access.admits(TokenHash(ofText: "c")))
        #expect(access.admits(TokenHash(ofText: "a")) && access.admits(TokenHash(ofText: "b")))
        access.allowed = []
        #expect(!access.admits(node))
        access.allowed = [node]
        #expect(access.admits(node))
        access.denied = [node]
        #expect(!access.admits(node))
    }
}

struct WebSocketServerHeadTests {
    @Test(arguments: [1, 80, 91, 92, 1200, 65_400, 65_502]) func isWhatTheEncoderWrites(size: Int) {
        let contents = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
        let key = [UInt8](repeating: 7, count: 32).withUnsafeBytes { PeerKey($0) }
        for segment in [nil, 1200] as [UInt16?] {
            let header = RelayDatagramHeader(sender: .server, peer: key, ecnByte: 2, segmentSize: segment)
            var whole = [UInt8](
                repeating: 0, count: WebSocketEncoder.count(header, contentsCount: size, isMasked: false))
            contents.withUnsafeBytes { contents in
                whole.withUnsafeMutableBytes {
                    _ = WebSocketEncoder.write(header, contents: contents, mask: nil, into: $0)
                }
            }
            var head = [UInt8](repeating: 0, count: WebSocketEncoder.serverHeadCount)
            let count = head.withUnsafeMutableBytes {
                WebSocketEncoder.writeHead(header, contentsCount: size, into: $0)
            }
            #expect(head[..<count] + contents == whole[...])
        }
    }
}
