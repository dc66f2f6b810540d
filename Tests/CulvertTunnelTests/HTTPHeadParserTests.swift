import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertTunnel

@Suite struct HTTPHeadParserTests {
    private func parse(_ text: String) -> HTTPHeadParser.Progress {
        var parser = HTTPHeadParser()
        return parser.feed(Array(text.utf8))
    }

    private func head(_ text: String) throws -> HTTPHead {
        guard case .complete(let head, let length) = parse(text) else {
            Issue.record("not a complete head: \(parse(text))")
            throw TemporaryDirectory.Failure()
        }
        #expect(length == text.utf8.count)
        return head
    }

    @Test func aRequest() throws {
        let head = try head(
            "POST /a?b=c HTTP/1.1\r\nHost: localhost:8080\r\nX-A:1\r\nx-a: \t 2 3 \t\r\nEmpty:\r\nUTF: caf\u{e9}\r\n\r\n"
        )
        #expect(head.method == "POST")
        #expect(head.target == .origin("/a?b=c"))
        #expect(head.minorVersion == 1)
        #expect(head.host == Authority(Array("localhost:8080".utf8)))
        #expect(head.fields.map(\.name) == ["host", "x-a", "x-a", "empty", "utf"])
        #expect(head.values(of: "x-a") == [Array("1".utf8), Array("2 3".utf8)])
        #expect(head.values(of: "empty") == [[]])
        #expect(head.values(of: "none").isEmpty)
    }

    @Test func theHeadEndsWhereItEnds() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        var parser = HTTPHeadParser()
        guard case .complete(_, let length) = parser.feed(Array((text + "body\0\n").utf8)) else {
            Issue.record("not complete")
            return
        }
        #expect(length == text.utf8.count)
    }

    @Test(arguments: [
        ("GET http://localhost:80/x HTTP/1.1", "localhost:80"), ("GET HTTPS://[::1]?q HTTP/1.1", "[::1]"),
        ("OPTIONS http://evil.example HTTP/1.1", "evil.example"),
        ("CONNECT evil.example:443 HTTP/1.1", "evil.example:443"),
    ])
    func targetsWithAnAuthority(line: String, authority: String) throws {
        #expect(try head(line + "\r\nHost: a\r\n\r\n").target.authority == Authority(Array(authority.utf8)))
    }

    @Test(arguments: [
        "GET / HTTP/1.1", "OPTIONS * HTTP/1.1", "GET //evil/x HTTP/1.1", "M-SEARCH! /{}|^\"\u{e9}# HTTP/1.9",
    ])
    func targetsWithoutOne(line: String) throws {
        #expect(try head(line + "\r\nHost: a\r\n\r\n").target.authority == nil)
    }

    @Test func oneEmptyLineMayComeFirst() throws {
        _ = try head("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(parse("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n") == .invalid(.requestLine))
    }

    @Test func oldVersionMayLackHost() throws {
        #expect(try head("GET / HTTP/1.0\r\n\r\n").host == nil)
        #expect(try head("GET / HTTP/1.0\r\nHost: a\r\n\r\n").host != nil)
    }

    @Test(arguments: [
        ("GET /\r\n", HTTPHeadFault.requestLine), ("GET  / HTTP/1.1\r\n", .requestLine),
        (" GET / HTTP/1.1\r\n", .requestLine),
        ("GET / HTTP/1.1 \r\n", .requestLine), ("GET\t/ HTTP/1.1\r\n", .requestLine),
        ("GET /\tx HTTP/1.1\r\n", .requestLine),
        ("GET / http/1.1\r\n", .requestLine), ("GET / HTTP/1.10\r\n", .requestLine),
        ("GET / HTTP/11\r\n", .requestLine),
        ("GET / HTTP/1.\r\n", .requestLine), ("G(T / HTTP/1.1\r\n", .requestLine), ("GET x HTTP/1.1\r\n", .requestLine),
        ("GET * HTTP/1.1\r\n", .requestLine), ("GET ftp://a/ HTTP/1.1\r\n", .requestLine),
        ("GET http:/a HTTP/1.1\r\n", .requestLine), ("GET http://u@localhost/ HTTP/1.1\r\n", .requestLine),
        ("GET http://localhost\\@evil/ HTTP/1.1\r\n", .requestLine), ("CONNECT / HTTP/1.1\r\n", .requestLine),
        ("CONNECT localhost HTTP/1.1\r\n", .requestLine), ("GET localhost:80 HTTP/1.1\r\n", .requestLine),
        ("GET / HTTP/2.0\r\n", .version), ("GET / HTTP/0.9\r\n", .version), ("GET / HTTP/3.0\r\n", .version),
        ("PRI * HTTP/2.0\r\n", .http2), ("GET / HTTP/1.1\n", .lineEnding), ("GET / HTTP/1.1\rX", .lineEnding),
        ("GET / HTTP/1.1\r\r\n", .lineEnding), ("\n", .lineEnding), ("GET /\0 HTTP/1.1\r\n", .controlCharacter),
        ("GET /\u{7f} HTTP/1.1\r\n", .controlCharacter), ("\u{16}\u{3}\u{1}", .controlCharacter),
        ("GET /\u{b}", .controlCharacter), ("GET /\u{1f}", .controlCharacter),
    ])
    func wrongRequestLines(text: String, fault: HTTPHeadFault) {
        #expect(parse(text) == .invalid(fault))
    }

    @Test(arguments: [
        ("Host: a\n", HTTPHeadFault.lineEnding), ("Host: a\rb\r\n", .lineEnding), ("Host: a\r\r\n", .lineEnding),
        ("Host: a\0\r\n", .controlCharacter), ("X: \u{8}\r\n", .controlCharacter),
        ("X: \u{1b}[0m\r\n", .controlCharacter),
        ("Host : a\r\n", .whitespaceBeforeColon), ("Host\t: a\r\n", .whitespaceBeforeColon), (": a\r\n", .fieldName),
        ("Host\r\n", .fieldName), ("Ho st: a\r\n", .fieldName), ("H\u{e9}: a\r\n", .fieldName),
        ("(x): a\r\n", .fieldName),
        ("X: a\r\n folded\r\n", .lineFolding), ("X: a\r\n\tfolded\r\n", .lineFolding), (" Host: a\r\n", .lineFolding),
        ("\r\n", .hostMissing), ("X: a\r\n\r\n", .hostMissing), ("Host: a\r\nHost: a\r\n\r\n", .hostRepeated),
        ("Host: a\r\nhOST: b\r\n\r\n", .hostRepeated), ("Host: a b\r\n\r\n", .hostInvalid),
        ("Host: a, b@c\r\n\r\n", .hostInvalid),
        ("Host: http://a\r\n\r\n", .hostInvalid),
    ])
    func wrongFields(text: String, fault: HTTPHeadFault) {
        #expect(parse("GET / HTTP/1.1\r\n" + text) == .invalid(fault))
    }

    @Test func oldVersionMustNotHaveTwoHosts() {
        #expect(parse("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n") == .invalid(.hostRepeated))
    }

    @Test func fieldsAtTheirLimitAndOnePast() throws {
        func request(_ count: Int) -> String {
            "GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: "x: y\r\n", count: count - 1) + "\r\n"
        }
        #expect(try head(request(TunnelLimits.headFields)).fields.count == TunnelLimits.headFields)
        #expect(parse(request(TunnelLimits.headFields + 1)) == .invalid(.tooManyFields))
    }

    @Test func sizeAtItsLimitAndOnePast() throws {
        func request(_ count: Int) -> String {
            let fixed = "GET / HTTP/1.1\r\nHost: a\r\nx: \r\n\r\n"
            return fixed.replacing("x: ", with: "x: " + String(repeating: "y", count: count - fixed.utf8.count))
        }
        _ = try head(request(TunnelLimits.head))
        #expect(parse(request(TunnelLimits.head + 1)) == .invalid(.tooLarge))
        // A line that never ends is not kept either.
        var parser = HTTPHeadParser()
        let block = [UInt8](repeating: 0x61, count: TunnelLimits.head - 1)
        #expect(parser.feed(block) == .needMore)
        #expect(parser.feed([0x61]) == .invalid(.tooLarge))
        #expect(parser.feed(block) == .invalid(.tooLarge))
    }

    @Test func everyFaultHasItsAnswer() {
        for fault in HTTPHeadFault.allCases {
            let isSize = fault == .tooManyFields || fault == .tooLarge
            #expect(fault.refusal == (isSize ? .headTooLarge : .badRequest))
        }
    }

    @Test func theCutsDoNotMatterAndDamageNeverCrashes() {
        var random = SplitMix64(seed: 5)
        let good = [
            "GET /index.html?q=1 HTTP/1.1\r\nHost: localhost:8080\r\nAccept: */*\r\n\r\n",
            "\r\nCONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nAuthorization: Bearer dt_x\r\n\r\nmore",
            "GET http://app.localhost/ HTTP/1.0\r\nX:\t y \r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ].map { Array($0.utf8) }
        var seen = Set<String>()
        for round in 0..<8000 {
            var bytes = good[round % good.count]
            for _ in 0..<(round / 4) % 4 { bytes = random.damaged(bytes) }
            var parser = HTTPHeadParser()
            let whole = parser.feed(bytes)
            var cut = HTTPHeadParser()
            var last = HTTPHeadParser.Progress.needMore
            for piece in random.chunks(bytes) { last = cut.feed(piece) }
            #expect(last == whole)
            switch whole {
            case .needMore: seen.insert("needMore")
            case .complete: seen.insert("complete")
            case .invalid(let fault): seen.insert("\(fault)")
            }
        }
        // The damage reaches all the parser's corners but the limits.
        #expect(seen.count >= 11)
    }

    @Test func randomBytesNeverCrash() {
        var random = SplitMix64(seed: 6)
        let alphabet = Array("GET /:HTTP/1.1\r\n\r\n\r\nHost \t*[]a0%".utf8)
        for _ in 0..<5000 {
            let bytes = (0..<200).map { _ in alphabet[Int.random(in: alphabet.indices, using: &random)] }
            var parser = HTTPHeadParser()
            _ = parser.feed(bytes)
            var other = HTTPHeadParser()
            _ = other.feed(random.bytes(100))
        }
    }
}
