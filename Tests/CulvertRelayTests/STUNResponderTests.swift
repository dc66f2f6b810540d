import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertRelay

struct STUNResponderTests {
    /// RFC 5769 section 2.1.
    private static let sample = Hex.decode(
        """
        000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008932ff9b1\
        51263b36000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf
        """)

    private func answer(_ request: [UInt8], from source: SocketAddress) -> [UInt8]? {
        var room = [UInt8](repeating: 0xee, count: STUNResponder.answerCount)
        let count = request.withUnsafeBytes { request in
            room.withUnsafeMutableBytes { STUNResponder.answer(request, from: source, into: $0) }
        }
        return count.map { Array(room.prefix($0)) }
    }

    private func address(_ text: String) throws -> SocketAddress { try #require(SocketAddress(text)) }

    private func request(_ attributes: String = "") throws -> [UInt8] {
        let attributes = try #require(Hex.decode(attributes))
        let length = UInt8(attributes.count)
        return [0, 1, 0, length, 0x21, 0x12, 0xa4, 0x42] + Array(1...12) + attributes
    }

    @Test func answersTheSampleWithTheSampleAddresses() throws {
        let sample = try #require(Self.sample)
        let four = try #require(answer(sample, from: try address("192.0.2.1:32853")))
        #expect(four[..<20] == [1, 1, 0, 20, 0x21, 0x12, 0xa4, 0x42] + sample[8..<20])
        #expect(Hex.encode(four[20..<32]) == "002000080001a147e112a643")
        let six = try #require(answer(sample, from: try address("[2001:db8:1234:5678:11:2233:4455:6677]:32853")))
        #expect(Hex.encode(six[20..<44]) == "002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9")
        for answer in [four, six] {
            let checksum = answer.dropLast(8).withUnsafeBytes { CRC32.of($0) } ^ 0x5354_554e
            let fingerprint = [0x80, 0x28, 0, 4] + withUnsafeBytes(of: checksum.bigEndian, Array.init)
            #expect(Array(answer.suffix(8)) == fingerprint)
            #expect(Int(answer[2]) << 8 | Int(answer[3]) == answer.count - 20)
        }
    }

    @Test func answersTheShortestRequestAndMappedAddressesAsIPv4() throws {
        let answer = try #require(answer(try request(), from: try address("[::ffff:192.0.2.1]:32853")))
        #expect(Hex.encode(answer[20..<32]) == "002000080001a147e112a643")
        #expect(answer.count == 40)
    }

    @Test func unknownAttributesThatMustBeUnderstoodAreNamed() throws {
        let source = try address("192.0.2.1:1")
        let one = try #require(answer(try request("0003000400000006"), from: source))
        #expect(one[..<2] == [1, 0x11])
        #expect(Hex.encode(one[20..<36]) == "0009000400000414000a000200030000")
        let many = try #require(answer(try request("7001000070020000700300007004000070050000"), from: source))
        #expect(Hex.encode(many[28..<40]) == "000a00087001700270037004")
        #expect(many.count <= STUNResponder.answerCount)
        #expect(try #require(answer(try request("c0010000"), from: source))[..<2] == [1, 1], "this one is optional")
    }

    @Test func anythingElseIsIgnored() throws {
        let source = try address("192.0.2.1:1")
        let sample = try #require(Self.sample)
        #expect(answer([], from: source) == nil)
        #expect(answer(Array(sample.dropLast()), from: source) == nil)
        #expect(answer(sample + [0, 0, 0, 0], from: source) == nil)
        for index in [0, 1, 4, 7, sample.count - 1, 50] {
            var damaged = sample
            damaged[index] ^= 1
            #expect(answer(damaged, from: source) == nil, "byte \(index)")
        }
        #expect(answer(try request("00060008"), from: source) == nil, "an attribute past the end")
        #expect(answer(try request("80280004000000000006" + "0000"), from: source) == nil)
    }

    @Test(arguments: 0..<200) func neverWritesPastItsRoom(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let source = try address("[2001:db8::1]:9")
        var bytes = Array(try #require(Self.sample).dropLast(8))
        for _ in 0..<Int.random(in: 0..<4, using: &generator) { bytes = generator.damaged(bytes) }
        if bytes.count >= 20, generator.chance(0.7) {
            bytes[2] = UInt8((bytes.count - 20) >> 8)
            bytes[3] = UInt8(truncatingIfNeeded: bytes.count - 20)
        }
        if let answer = answer(bytes, from: source) { #expect(answer.count <= 3 * max(bytes.count, 20)) }
    }

    @Test func checksumIsTheStandardOne() {
        let check = Array("123456789".utf8).withUnsafeBytes { CRC32.of($0) }
        #expect(check == 0xcbf4_3926)
    }
}

struct RelayMetricsTests {
    @Test func pageIsOpenMetrics() {
        var metrics = RelayServerMetrics()
        metrics.bytesForwarded = 12
        metrics.refused(.token)
        metrics.refused(.token)
        var state = RelayServerState()
        state.nodes = 3
        let page = metrics.openMetrics(state)
        #expect(page.hasSuffix("# EOF\n"))
        #expect(page.contains("\nculvert_relay_forwarded_bytes_total 12\n"))
        #expect(page.contains("\nculvert_relay_refused_total{reason=\"token\"} 2\n"))
        let help = "# HELP culvert_relay_nodes Nodes that are connected."
        #expect(page.hasPrefix("# TYPE culvert_relay_nodes gauge\n\(help)\nculvert_relay_nodes 3\n"))
        #expect(!page.contains("certificate"))
        let names = page.split(separator: "\n").filter { $0.hasPrefix("# TYPE") }
        #expect(Set(names).count == names.count)
    }
}
