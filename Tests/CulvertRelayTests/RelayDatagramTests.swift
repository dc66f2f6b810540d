import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertRelay

@Suite("Relay datagrams")
struct RelayDatagramTests {
    private let client = RelayRules(sender: .client, phase: .established, version: .v2)
    private let server = RelayRules(sender: .server, phase: .established, version: .v2)
    private static let hello = "48656c6c6f20576f726c6421"

    private func written(_ header: RelayDatagramHeader, _ contents: [UInt8]) -> [UInt8] {
        var bytes = [UInt8](repeating: 0xee, count: header.count)
        bytes.withUnsafeMutableBytes { header.write(into: $0) }
        return bytes + contents
    }

    @Test("the vectors are written and read, and batches split")
    func vectors() throws {
        let node = PeerKey(try key().nodeID)
        let text = "Hello World!"
        let cases: [(RelayDatagramHeader, String, [String])] = [
            (RelayDatagramHeader(sender: .client, peer: node, ecnByte: 2), "04K02", [text]),
            (
                RelayDatagramHeader(sender: .client, peer: node, ecnByte: 3, segmentSize: 6), "05K030006",
                ["Hello ", "World!"]
            ),
            (RelayDatagramHeader(sender: .server, peer: node), "06K00", [text]),
            (RelayDatagramHeader(sender: .server, peer: node, segmentSize: 5), "07K000005", ["Hello", " Worl", "d!"]),
        ]
        for (header, form, datagrams) in cases {
            let parts = form.split(separator: "K")
            let bytes = [UInt8](hex: "\(parts[0])\(RelayFrameTests.publicKey)\(parts[1])\(Self.hello)")
            #expect(written(header, .init(hex: Self.hello)) == bytes)
            #expect(
                try decode(bytes, header.sender == .client ? client : server)
                    == .datagrams(header, datagrams.map { Array($0.utf8) }))
        }
    }

    @Test("nothing is copied: the datagrams are where the frame is")
    func inPlace() throws {
        let bytes = written(RelayDatagramHeader(sender: .server, peer: peer(1), segmentSize: 4), Array(0..<10))
        try bytes.withUnsafeBytes { buffer in
            guard case .datagrams(let view) = try RelayMessage.decode(buffer, under: server) else {
                Issue.record("no datagrams")
                return
            }
            let starts = view.datagrams.compactMap { datagram in
                datagram.baseAddress.flatMap { base in buffer.baseAddress.map { base - $0 } }
            }
            #expect(starts == [36, 40, 44])
            #expect(view.datagrams.map(\.count) == [4, 4, 2])
        }
    }

    @Test("a relay changes the type and the key, and nothing else", arguments: 0..<50)
    func forwarding(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let batch = Bool.random(using: &random)
        let tail = random.bytes(Int.random(in: (batch ? 3 : 1)...300, using: &random))
        let bytes = [batch ? 5 : 4] + peer(7).bytes + tail
        try bytes.withUnsafeBytes { buffer in
            guard case .datagrams(let view) = try RelayMessage.decode(buffer, under: client) else {
                Issue.record("no datagrams")
                return
            }
            #expect(view.peer == peer(7))
            #expect(view.ecn == tail[0] & 3)
            let forwarded = written(view.forwarded(from: peer(9)), Array(view.contents))
            #expect(forwarded == [batch ? 7 : 6] + peer(9).bytes + tail)
        }
    }

    @Test("what a third node may have written is no fault: emptiness, marks, segment sizes")
    func thirdParties() throws {
        let single = RelayDatagramHeader(sender: .server, peer: peer(1), ecnByte: 0xff)
        #expect(try decode(written(single, []), server) == .datagrams(single, []))
        let zero = RelayDatagramHeader(sender: .server, peer: peer(1), segmentSize: 0)
        #expect(try decode(written(zero, [1, 2, 3]), server) == .datagrams(zero, [[1, 2, 3]]))
        #expect(try decode(written(zero, []), server) == .datagrams(zero, []))
        let large = RelayDatagramHeader(sender: .server, peer: peer(1), segmentSize: 0xffff)
        #expect(try decode(written(large, [1, 2, 3]), server) == .datagrams(large, [[1, 2, 3]]))
        let one = RelayDatagramHeader(sender: .server, peer: peer(1), segmentSize: 1)
        #expect(try decode(written(one, [1, 2]), server) == .datagrams(one, [[1], [2]]))
    }

    @Test("a frame without a whole header is malformed")
    func truncated() {
        for (type, count, rules) in [(4, 33, client), (5, 35, client), (6, 33, server), (7, 35, server)] {
            for length in 0..<count {
                let frame = [UInt8(type)] + [UInt8](repeating: 0, count: length)
                #expect(failure { try decode(frame, rules) } == .framing, "type \(type), body of \(length)")
            }
            let complete = [UInt8(type)] + [UInt8](repeating: 0, count: count)
            #expect(failure { try decode(complete, rules) } == nil)
        }
    }

    @Test("contents up to the limit fit into a frame")
    func contentsLimit() throws {
        for segment in [nil, UInt16(1200)] {
            let header = RelayDatagramHeader(sender: .client, peer: peer(1), segmentSize: segment)
            let longest = [UInt8](repeating: 1, count: header.contentsLimit)
            #expect(failure { try decode(written(header, longest), client) } == nil)
            #expect(failure { try decode(written(header, longest + [1]), client) } == .framing)
        }
    }

    @Test("a key has the bytes it was made of, and its node when there is one")
    func keys() throws {
        let node = try key().nodeID
        #expect(PeerKey(node).bytes == node.bytes)
        #expect(PeerKey(node).nodeID == node)
        #expect(peer(2).nodeID == nil)
        #expect(PeerKey(node) != peer(2))
    }
}
