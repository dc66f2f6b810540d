import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertRelay

@Suite("WebSocket properties")
struct WebSocketPropertyTests {
    /// Frames of every kind, with fragments and control frames between them.
    private func stream(_ random: inout SplitMix64, masked: Bool) -> [UInt8] {
        func encode(_ opcode: WebSocketOpcode, _ count: Int, final: Bool = true) -> [UInt8] {
            let mask = masked ? WebSocketMask(random: UInt32(truncatingIfNeeded: random.next())) : nil
            return WebSocketEncoder.encode(opcode, random.bytes(count), mask, isFinal: final)
        }
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            let lengths = [0, 1, 5, 125, 126, 127, 300, 1300, 70_000]
            let opcode: WebSocketOpcode = Int.random(in: 0..<5, using: &random) == 0 ? .text : .binary
            let fragments = Int.random(in: 0..<3, using: &random)
            for fragment in 0...fragments {
                if Bool.random(using: &random) { bytes += encode(Bool.random(using: &random) ? .ping : .pong, 5) }
                let count = lengths[Int.random(in: 0..<lengths.count, using: &random)]
                bytes += encode(fragment == 0 ? opcode : .continuation, count, final: fragment == fragments)
            }
        }
        return bytes
    }

    @Test("the result does not depend on how the bytes are cut", arguments: 0..<100)
    func chunking(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let sender: RelaySide = Bool.random(using: &random) ? .client : .server
        let bytes = stream(&random, masked: sender == .client)
        let whole = receive([bytes], from: sender)
        #expect(!whole.isEmpty)
        #expect(!whole.contains { if case .fault = $0 { true } else { false } })
        #expect(receive(random.chunks(bytes).map(Array.init), from: sender) == whole)
    }

    @Test("damage gives the same events or the same fault, however it is cut", arguments: 0..<300)
    func damage(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let sender: RelaySide = Bool.random(using: &random) ? .client : .server
        var bytes = stream(&random, masked: sender == .client)
        // Near the front, where headers are likely to be hit.
        let front = random.damaged(Array(bytes.prefix(20)))
        bytes = front + bytes.dropFirst(20)
        let whole = receive([bytes], from: sender, limit: 50_000)
        #expect(receive(random.chunks(bytes).map(Array.init), from: sender, limit: 50_000) == whole)
    }

    @Test("noise never gets far", arguments: 0..<200)
    func noise(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let bytes = random.bytes(200)
        #expect(receive(random.chunks(bytes).map(Array.init), from: .client) == receive([bytes], from: .client))
    }

    @Test("a fault stays")
    func sticky() {
        var decoder = WebSocketDecoder(sender: .client)
        for var piece in [[0x82, 0x00], frame(.binary, [1])] as [[UInt8]] {
            piece.withUnsafeMutableBytes { buffer in
                var input = buffer
                do throws(WebSocketFault) {
                    _ = try decoder.next(&input)
                    Issue.record("no fault")
                } catch {
                    #expect(error == .unmasked)
                }
            }
        }
    }

    @Test("every fault has a close code that may be sent, and a kind", arguments: WebSocketFault.allCases)
    func faults(fault: WebSocketFault) {
        #expect(WebSocketCloseCode(rawValue: fault.closeCode.rawValue) == fault.closeCode)
        #expect(fault.error.kind == .framing || fault.error.kind == .protocolViolation)
        if fault == .tooBig { #expect(fault.closeCode.rawValue == 1009) }
    }
}
