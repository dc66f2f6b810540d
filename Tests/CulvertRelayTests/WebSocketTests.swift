import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertRelay

@Suite("WebSocket frames")
struct WebSocketTests {
    private let hello = Array("Hello".utf8)

    @Test("the examples of RFC 6455 section 5.7")
    func examples() {
        #expect(receive([.init(hex: "810548656c6c6f")], from: .server) == [.text])
        #expect(receive([.init(hex: "818537fa213d7f9f4d5158")], from: .client) == [.text])
        #expect(receive([.init(hex: "010348656c80026c6f")], from: .server) == [.text])
        #expect(receive([.init(hex: "020348656c80026c6f")], from: .server) == [.binary(hello)])
        #expect(receive([.init(hex: "890548656c6c6f")], from: .server) == [.ping(hello)])
        #expect(receive([.init(hex: "8a8537fa213d7f9f4d5158")], from: .client) == [.pong])
        let short = [UInt8](repeating: 5, count: 256)
        #expect(receive([.init(hex: "827e0100") + short], from: .server) == [.binary(short)])
        let long = [UInt8](repeating: 6, count: 65_536)
        #expect(receive([.init(hex: "827f0000000000010000") + long], from: .server) == [.binary(long)])
    }

    @Test("frames are written as in the examples")
    func written() {
        let key = [0x37, 0xfa, 0x21, 0x3d] as [UInt8]
        let mask = key.withUnsafeBytes { WebSocketMask($0) }
        hello.withUnsafeBytes { bytes in
            #expect(WebSocketEncoder.ping(bytes, mask: nil) == .init(hex: "890548656c6c6f"))
            #expect(WebSocketEncoder.pong(bytes, mask: mask) == .init(hex: "8a8537fa213d7f9f4d5158"))
        }
        #expect(WebSocketEncoder.message(hello, mask: mask) == .init(hex: "828537fa213d7f9f4d5158"))
        #expect(WebSocketEncoder.close(.goingAway, mask: nil) == .init(hex: "880203e9"))
        #expect(WebSocketEncoder.close(nil, mask: nil) == .init(hex: "8800"))
        #expect(
            WebSocketEncoder.message([UInt8](repeating: 0, count: 256), mask: nil).prefix(4) == [0x82, 0x7e, 1, 0])
    }

    @Test("lengths are written in their shortest form and read", arguments: [0, 1, 7, 8, 9, 125, 126, 65_535, 65_536])
    func lengths(count: Int) {
        var random = SplitMix64(seed: UInt64(count))
        let payload = random.bytes(count)
        for isMasked in [false, true] {
            let bytes = frame(.binary, payload, masked: isMasked)
            #expect(bytes.count == count + (count < 126 ? 2 : count < 65_536 ? 4 : 10) + (isMasked ? 4 : 0))
            #expect(receive([bytes], from: isMasked ? .client : .server) == [.binary(payload)])
        }
    }

    @Test("a mask is applied bytewise, wherever the payload lies", arguments: 0..<70)
    func masking(offset: Int) {
        var random = SplitMix64(seed: UInt64(offset))
        let key = random.bytes(4)
        let plain = random.bytes(140 + offset)
        var bytes = plain
        let mask = key.withUnsafeBytes { WebSocketMask($0) }
        bytes.withUnsafeMutableBytes { mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[offset...])) }
        for index in plain.indices {
            let expected = index < offset ? plain[index] : plain[index] ^ key[(index - offset) % 4]
            #expect(bytes[index] == expected)
        }
    }

    @Test("a frame that is there as a whole is not copied, and costs no memory")
    func inPlace() throws {
        var decoder = WebSocketDecoder(sender: .client)
        var bytes = frame(.binary, hello) + frame(.ping, [1]) + frame(.binary, [2])
        try bytes.withUnsafeMutableBytes { buffer in
            var input = buffer
            guard case .binary(let first)? = try decoder.next(&input), case .ping? = try decoder.next(&input),
                case .binary(let last)? = try decoder.next(&input)
            else {
                Issue.record("events missing")
                return
            }
            #expect(first.baseAddress == buffer.baseAddress.map { UnsafeRawPointer($0 + 6) })
            #expect(last.baseAddress == buffer.baseAddress.map { UnsafeRawPointer($0 + 24) })
            let rest = try decoder.next(&input).map(Received.init)
            #expect(rest == nil)
        }
        #expect(decoder.retainedBytes == 0)
    }

    @Test("control frames may come between the fragments of a message")
    func interleaved() {
        let stream =
            frame(.binary, [1, 2], final: false) + frame(.ping, [9]) + frame(.continuation, [], final: false)
            + frame(.continuation, [3], final: false) + frame(.pong, []) + frame(.continuation, [4])
            + frame(.text, [0xff], final: false) + frame(.ping, []) + frame(.continuation, [0xfe])
            + frame(.binary, []) + frame(.close, [3, 232])
        #expect(
            receive([stream], from: .client) == [
                .ping([9]), .pong, .binary([1, 2, 3, 4]), .ping([]), .text, .binary([]), .close(.normal),
            ])
    }

    @Test("nothing is read after a Close")
    func afterClose() {
        #expect(receive([frame(.close, []) + [0xff, 0xff, 0xff], [0xff]], from: .client) == [.close(nil)])
    }

    @Test(
        "each rule is enforced",
        arguments: [
            ("c20100", .reservedBits), ("a20100", .reservedBits), ("920100", .reservedBits), ("830100", .opcode),
            ("870100", .opcode), ("8b0100", .opcode), ("8f0100", .opcode), ("828137fa213d00", .masked),
            ("0900", .fragmentedControl), ("0800", .fragmentedControl), ("897e", .longControl), ("887e", .longControl),
            ("8a7f", .longControl), ("827e007d", .length), ("827f000000000000ffff", .length),
            ("827f8000000000010000", .length), ("827f7fffffffffffffff", .tooBig), ("8000", .continuation),
            ("82008000", .continuation), ("02008200", .interrupted), ("02000200", .interrupted),
            ("02008100", .interrupted), ("880103", .closeCode), ("880203e7", .closeCode), ("880203ec", .closeCode),
            ("880203ed", .closeCode), ("880203ee", .closeCode), ("880203f7", .closeCode), ("88020bb7", .closeCode),
            ("88021388", .closeCode), ("880303e8ff", .closeReason),
        ] as [(String, WebSocketFault)])
    func rules(hex: String, fault: WebSocketFault) {
        let bytes = [UInt8](hex: hex)
        #expect(receive([bytes], from: .server).last == .fault(fault))
        #expect(receive(bytes.map { [$0] }, from: .server).last == .fault(fault))
    }

    @Test("close codes that may be sent are read", arguments: [1000, 1003, 1007, 1014, 3000, 4999] as [UInt16])
    func closeCodes(code: UInt16) {
        let payload = [UInt8(code >> 8), UInt8(code & 0xff)] + Array("why \u{e9}".utf8)
        #expect(receive([frame(.close, payload)], from: .client) == [.close(WebSocketCloseCode(rawValue: code))])
    }

    @Test("a server refuses a frame without a mask at its second byte")
    func unmasked() {
        #expect(receive([[0x82], [0x05]], from: .client) == [.fault(.unmasked)])
        #expect(receive([[0x89, 0x00]], from: .client) == [.fault(.unmasked)])
    }

    @Test("control frames of 125 bytes pass")
    func longestControl() {
        let payload = [UInt8](repeating: 1, count: 125)
        #expect(receive([frame(.ping, payload)], from: .client) == [.ping(payload)])
    }

    @Test("a message may be as long as the limit and not longer, however it is cut")
    func messageLimit() {
        #expect(RelayLimits.message == 1_048_576)
        let limit = 1000
        let full = [UInt8](repeating: 1, count: limit)
        func both(_ bytes: [UInt8]) -> [Received] {
            let whole = receive([bytes], from: .client, limit: limit)
            #expect(receive(bytes.map { [$0] }, from: .client, limit: limit) == whole)
            return whole
        }
        #expect(both(frame(.binary, full)) == [.binary(full)])
        #expect(both(frame(.binary, full + [1])) == [.fault(.tooBig)])
        #expect(both(frame(.text, full)) == [.text])
        #expect(both(frame(.text, full + [1])) == [.fault(.tooBig)])
        for opcode in [WebSocketOpcode.binary, .text] {
            let parts = frame(opcode, Array(full[..<999]), final: false)
            #expect(both(parts + frame(.continuation, [1])).count == 1)
            #expect(both(parts + frame(.continuation, [1])) != [.fault(.tooBig)])
            #expect(both(parts + frame(.continuation, [1, 1])) == [.fault(.tooBig)])
        }
    }

    @Test("a frame that is too long is refused by its header")
    func earlyRefusal() {
        let header = [UInt8](hex: "82ff0000000000100001")
        #expect(receive([header + [0, 0, 0, 0]], from: .client) == [.fault(.tooBig)])
    }

    @Test("an announced length costs nothing until the bytes come")
    func memory() throws {
        var decoder = WebSocketDecoder(sender: .client)
        var bytes = [UInt8](hex: "82ff000000000010000011223344") + [UInt8](repeating: 0, count: 100)
        try bytes.withUnsafeMutableBytes { buffer in
            var input = buffer
            let rest = try decoder.next(&input).map(Received.init)
            #expect(rest == nil)
        }
        #expect(decoder.retainedBytes <= 1024)
        var more = [UInt8](repeating: 0, count: 1_048_576 - 100)
        try more.withUnsafeMutableBytes { buffer in
            var input = buffer
            guard case .binary(let message)? = try decoder.next(&input) else {
                Issue.record("not complete")
                return
            }
            #expect(message.count == 1_048_576)
            #expect(decoder.retainedBytes == 14 + 1_048_576)
            let rest = try decoder.next(&input).map(Received.init)
            #expect(rest == nil)
        }
        #expect(decoder.retainedBytes == 0)
    }

    @Test("room for usual frames is kept until it is asked back")
    func trimming() throws {
        var decoder = WebSocketDecoder(sender: .client)
        for var piece in [Array(frame(.binary, hello)[..<4]), Array(frame(.binary, hello)[4...])] {
            try piece.withUnsafeMutableBytes { buffer in
                var input = buffer
                while try decoder.next(&input) != nil {}
            }
        }
        #expect(decoder.retainedBytes == 11)
        decoder.trim()
        #expect(decoder.retainedBytes == 0)
    }

    @Test("what is half received survives a trim")
    func trimInTheMiddle() throws {
        var decoder = WebSocketDecoder(sender: .client)
        let stream = frame(.binary, [1, 2], final: false) + frame(.continuation, [3, 4])
        var received: [Received] = []
        for byte in stream {
            var piece = [byte]
            try piece.withUnsafeMutableBytes { buffer in
                var input = buffer
                while let event = try decoder.next(&input) { received.append(Received(event)) }
            }
            decoder.trim()
        }
        #expect(received == [.binary([1, 2, 3, 4])])
    }

    @Test("a datagram is written, masked and read back", arguments: [RelaySide.client, .server])
    func datagrams(sender: RelaySide) throws {
        var random = SplitMix64(seed: 1)
        for count in [1, 85, 86, 87, 88, 91, 92, 93, 1200, 65_400] {
            let contents = random.bytes(count)
            let header = RelayDatagramHeader(sender: sender, peer: peer(4), ecnByte: 2, segmentSize: 1200)
            let isMasked = sender == .client
            let total = WebSocketEncoder.count(header, contentsCount: count, isMasked: isMasked)
            var room = [UInt8](repeating: 0xee, count: total + 1)
            let written = room.withUnsafeMutableBytes { room in
                contents.withUnsafeBytes { contents in
                    WebSocketEncoder.write(header, contents: contents, mask: isMasked ? testMask : nil, into: room)
                }
            }
            #expect(written == total && room.last == 0xee)
            let received = receive([Array(room[..<total])], from: sender)
            guard case .binary(let message)? = received.first, received.count == 1 else {
                Issue.record("not read: \(count)")
                continue
            }
            let rules = RelayRules(sender: sender, phase: .established, version: .v2)
            guard case .datagrams(header, let datagrams) = try decode(message, rules) else {
                Issue.record("not decoded: \(count)")
                continue
            }
            #expect(datagrams.flatMap { $0 } == contents)
        }
    }
}
