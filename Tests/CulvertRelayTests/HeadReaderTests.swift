import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertRelay

/// What a reader made of some pieces.
enum HeadResult: Hashable {
    case needMore
    case head(MessageHead, rest: [UInt8])
    case fault(HeadFault)
}

func readHead(_ pieces: [[UInt8]]) -> HeadResult {
    var reader = HeadReader()
    for (index, piece) in pieces.enumerated() {
        let result: HeadResult = piece.withUnsafeBytes { buffer in
            var input = buffer
            do throws(HeadFault) {
                guard let head = try reader.next(&input) else { return .needMore }
                return .head(head, rest: Array(input) + pieces[(index + 1)...].flatMap { $0 })
            } catch {
                return .fault(error)
            }
        }
        if result != .needMore { return result }
    }
    return .needMore
}

func readHead(_ text: String) -> HeadResult { readHead([Array(text.utf8)]) }

func parseHead(_ text: String) throws -> MessageHead {
    guard case .head(let head, _) = readHead(text) else {
        throw TransportError(.framing, "not a head")
    }
    return head
}

func parseRequest(_ text: String) throws -> RelayRequest { try RelayRequest(try parseHead(text)) }

@Suite("HTTP heads of a relay")
struct HeadReaderTests {
    @Test("a head is read, and what follows is left alone")
    func complete() throws {
        let text = "GET /ping HTTP/1.1\r\nHost: a\r\nX-A:1\r\nx-a: \t 2 3 \t\r\nEmpty:\r\n\r\n"
        guard case .head(let head, let rest) = readHead(text + "\u{1}\n") else {
            Issue.record("not read")
            return
        }
        #expect(rest == [1, 10])
        #expect(head.startLine == "GET /ping HTTP/1.1")
        #expect(head.fields.map(\.name) == ["host", "x-a", "x-a", "empty"])
        #expect(head.values("x-a") == ["1", "2 3"])
        #expect(head.single("x-a") == nil && head.single("host") == "a" && head.single("empty") == "")
    }

    @Test(
        "anything else than CRLF lines with fields is refused",
        arguments: [
            ("\r\n", .startLine), ("GET /\u{e9} HTTP/1.1\r\n", .startLine), ("GET / HTTP/1.1\n", .lineEnding),
            ("GET / HTTP/1.1\rH", .lineEnding), ("GET /\0", .controlCharacter), ("GET /\u{7f}", .controlCharacter),
            ("GET / HTTP/1.1\r\nHost\r\n", .field), ("GET / HTTP/1.1\r\n: a\r\n", .field),
            ("GET / HTTP/1.1\r\nHost : a\r\n", .field), ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n", .field),
            ("GET / HTTP/1.1\r\nH\u{e9}: a\r\n", .field), ("GET / HTTP/1.1\r\nHost: a\u{1}", .controlCharacter),
        ] as [(String, HeadFault)])
    func malformed(text: String, fault: HeadFault) {
        #expect(readHead(text) == .fault(fault))
        #expect(readHead(text.utf8.map { [$0] }) == .fault(fault))
    }

    @Test("64 fields and 8,192 bytes are read, one more is refused")
    func limits() {
        func fields(_ count: Int) -> String { String(repeating: "A: b\r\n", count: count) }
        let line = "GET / HTTP/1.1\r\n"
        guard case .head = readHead(line + fields(64) + "\r\n") else {
            Issue.record("64 fields refused")
            return
        }
        #expect(readHead(line + fields(65) + "\r\n") == .fault(.tooManyFields))
        func sized(_ bytes: Int) -> String {
            line + "A: " + String(repeating: "b", count: bytes - line.utf8.count - 7) + "\r\n\r\n"
        }
        guard case .head = readHead(sized(8192)) else {
            Issue.record("8,192 bytes refused")
            return
        }
        #expect(readHead(sized(8193)) == .fault(.tooLong))
        #expect(readHead([[UInt8](repeating: 0x41, count: 8191)]) == .needMore)
        #expect(readHead([[UInt8](repeating: 0x41, count: 8192)]) == .fault(.tooLong))
    }

    @Test("the result does not depend on how the bytes are cut, damaged or not", arguments: 0..<200)
    func chunking(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var bytes = Array("GET /relay?x=1 HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nX: \u{e9}\r\n\r\nrest".utf8)
        if seed % 2 == 1 { bytes = random.damaged(bytes) }
        #expect(readHead(random.chunks(bytes).map(Array.init)) == readHead([bytes]))
    }

    @Test("a reader is ready for the next head on the same connection")
    func pipelined() throws {
        var reader = HeadReader()
        let lines = try Array("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n".utf8).withUnsafeBytes { buffer in
            var input = buffer
            var lines: [String] = []
            while let head = try reader.next(&input) { lines.append(head.startLine) }
            return lines
        }
        #expect(lines == ["GET /a HTTP/1.1", "GET /b HTTP/1.1"])
    }
}
