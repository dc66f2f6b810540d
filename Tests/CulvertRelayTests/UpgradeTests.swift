import CulvertCore
import CulvertIdentity
import Testing

@testable import CulvertRelay

/// The request that real endpoints send, with lines replaced or left out.
private func upgrade(
    line: String = "GET /relay HTTP/1.1", replacing name: String = "", with value: String? = nil, adding: String = ""
) throws -> RelayRequest {
    let fields = [
        ("Host", "127.0.0.1:4701"), ("Upgrade", "websocket"), ("Connection", "Upgrade"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Sec-WebSocket-Version", "13"),
        ("sec-websocket-protocol", "iroh-relay-v2, iroh-relay-v1"),
    ]
    let kept = fields.compactMap { field -> String? in
        guard field.0 == name else { return "\(field.0): \(field.1)\r\n" }
        return value.map { "\(field.0): \($0)\r\n" }
    }
    return try parseRequest("\(line)\r\n\(kept.joined())\(adding)\r\n")
}

@Suite("WebSocket upgrade, server")
struct ServerUpgradeTests {
    private func fault(_ request: RelayRequest) -> UpgradeFault? {
        do {
            _ = try ServerUpgrade.accept(request)
            return nil
        } catch {
            return error
        }
    }

    @Test("a real endpoint's request is accepted, with the accept value of RFC 6455")
    func accepted() throws {
        let upgrade = try ServerUpgrade.accept(upgrade())
        #expect(upgrade.version == .v2)
        #expect(upgrade.proof == nil)
        let text = String(decoding: upgrade.response, as: UTF8.self)
        #expect(text.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n"))
        #expect(text.hasSuffix("\r\n\r\n"))
        let answer = try parseHead(text)
        #expect(answer.single("sec-websocket-accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        #expect(answer.single("sec-websocket-protocol") == "iroh-relay-v2")
        #expect(answer.fields.count == 4)
    }

    @Test("lists and letter case are read as HTTP has them")
    func lenience() throws {
        let request = try upgrade(
            replacing: "Connection", with: "keep-alive,UPGRADE", adding: "sec-WebSocket-protocol: iroh-relay-v9\r\n")
        #expect(try ServerUpgrade.accept(request).version == .v2)
        let split = try upgrade(
            replacing: "sec-websocket-protocol", with: "x", adding: "Sec-WebSocket-Protocol: , iroh-relay-v1\r\n")
        #expect(try ServerUpgrade.accept(split).version == .v1)
        let several = try upgrade(replacing: "Upgrade", with: "h2c, WebSocket")
        #expect(throws: Never.self) { try ServerUpgrade.accept(several) }
    }

    @Test("each condition has its answer")
    func faults() throws {
        #expect(fault(try upgrade(line: "POST /relay HTTP/1.1")) == .method)
        #expect(fault(try upgrade(line: "get /relay HTTP/1.1")) == .method)
        #expect(fault(try upgrade(line: "GET /relay HTTP/1.0")) == .notWebSocket)
        for (name, value, expected) in [
            ("Upgrade", nil, .notWebSocket), ("Upgrade", "h2c", .notWebSocket), ("Connection", nil, .notWebSocket),
            ("Connection", "close", .notWebSocket), ("Sec-WebSocket-Version", nil, .webSocketVersion),
            ("Sec-WebSocket-Version", "8", .webSocketVersion), ("Sec-WebSocket-Key", nil, .key),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ", .key),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZR==", .key),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j", .key), ("sec-websocket-protocol", nil, .relayVersion),
            ("sec-websocket-protocol", "iroh-relay-v3", .relayVersion),
        ] as [(String, String?, UpgradeFault)] {
            #expect(fault(try upgrade(replacing: name, with: value)) == expected, "\(name): \(value ?? "none")")
        }
        let twice = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        #expect(fault(try upgrade(adding: twice)) == .key)
    }

    @Test("every refusal is a whole response that closes", arguments: UpgradeFault.allCases)
    func responses(fault: UpgradeFault) throws {
        guard case .head(let head, let rest) = readHead([fault.response]) else {
            Issue.record("no head")
            return
        }
        #expect(head.startLine.hasPrefix("HTTP/1.1 4") || fault == .server)
        #expect(head.single("content-length") == "\(rest.count)")
        #expect(head.single("connection") == "close")
    }

    @Test("a proof over TLS is handed on when it is well formed")
    func proof() throws {
        let proof = try #require(RelayTLSProof(key: try key(), exported: Array(0..<32)))
        let field = "X-Iroh-Relay-Client-Auth-V1: \(proof.headerValue)\r\n"
        #expect(try ServerUpgrade.accept(upgrade(adding: field)).proof == proof)
        #expect(try ServerUpgrade.accept(upgrade(adding: field + field)).proof == nil)
        #expect(try ServerUpgrade.accept(upgrade(adding: "x-iroh-relay-client-auth-v1: abc\r\n")).proof == nil)
    }
}

@Suite("WebSocket upgrade, client")
struct ClientUpgradeTests {
    private let nonce = Array("the sample nonce".utf8)

    private func upgrade(
        _ url: String = "https://relay.example.com", token: String? = nil, proof: RelayTLSProof? = nil
    ) throws -> ClientUpgrade {
        let relay = try RelayURL(url, allowInsecure: true)
        return try #require(
            ClientUpgrade(relay: relay, nonce: nonce, token: token.flatMap { RelayAccessToken($0) }, proof: proof))
    }

    private func answer(
        replacing name: String = "", with value: String? = nil, adding: String = ""
    ) throws -> MessageHead {
        let fields = [
            ("Upgrade", "websocket"), ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), ("Sec-WebSocket-Protocol", "iroh-relay-v1"),
        ]
        let kept = fields.compactMap { field -> String? in
            guard field.0 == name else { return "\(field.0): \(field.1)\r\n" }
            return value.map { "\(field.0): \($0)\r\n" }
        }
        return try parseHead("HTTP/1.1 101 Switching Protocols\r\n\(kept.joined())\(adding)\r\n")
    }

    @Test("the request is what a server accepts")
    func bothSides() throws {
        let proof = try #require(RelayTLSProof(key: try key(), exported: Array(0..<32)))
        let client = try upgrade(token: "s3cret", proof: proof)
        let text = String(decoding: client.request, as: UTF8.self)
        #expect(text.hasPrefix("GET /relay HTTP/1.1\r\nHost: relay.example.com\r\n"))
        let request = try parseRequest(text)
        #expect(request.accessToken?.text == "s3cret")
        let server = try ServerUpgrade.accept(request)
        #expect(server.version == .v2)
        #expect(server.proof == proof)
        #expect(try client.accept(parseHead(String(decoding: server.response, as: UTF8.self))) == .v2)
    }

    @Test("nothing is sent that was not given")
    func bare() throws {
        let text = String(decoding: try upgrade().request, as: UTF8.self).lowercased()
        #expect(!text.contains("authorization") && !text.contains("x-iroh") && !text.contains("extensions"))
        #expect(ClientUpgrade(relay: try RelayURL("https://a.example", allowInsecure: false), nonce: []) == nil)
    }

    @Test(
        "the Host field is the URL's authority",
        arguments: [
            ("http://127.0.0.1:4701", "127.0.0.1:4701"), ("https://[2001:db8::1]:444/", "[2001:db8::1]:444"),
            ("https://[2001:db8::1]", "[2001:db8::1]"), ("http://a.example:443", "a.example:443"),
            ("http://a.example:80", "a.example"),
        ])
    func host(url: String, host: String) throws {
        let text = String(decoding: try upgrade(url).request, as: UTF8.self)
        #expect(try parseHead(text).single("host") == host)
    }

    @Test("an answer is checked in every part")
    func checks() throws {
        let client = try upgrade()
        #expect(try client.accept(answer()) == .v1)
        #expect(try client.accept(answer(replacing: "Upgrade", with: "WebSocket")) == .v1)
        for (name, value) in [
            ("Upgrade", nil), ("Upgrade", "h2c"), ("Connection", nil), ("Connection", "close"),
            ("Sec-WebSocket-Accept", nil), ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOO="),
            ("Sec-WebSocket-Protocol", nil), ("Sec-WebSocket-Protocol", "iroh-relay-v3"),
            ("Sec-WebSocket-Protocol", "iroh-relay-v2, iroh-relay-v1"),
        ] as [(String, String?)] {
            let head = try answer(replacing: name, with: value)
            #expect(failure { try client.accept(head) } == .protocolViolation, "\(name): \(value ?? "none")")
        }
        for field in ["Sec-WebSocket-Extensions: x\r\n", "Sec-WebSocket-Protocol: iroh-relay-v1\r\n"] {
            let head = try answer(adding: field)
            #expect(failure { try client.accept(head) } == .protocolViolation)
        }
    }

    @Test(
        "other answers say whether to come again",
        arguments: [
            ("HTTP/1.1 401 Unauthorized", .authentication), ("HTTP/1.1 403 Forbidden", .authentication),
            ("HTTP/1.1 400 Bad Request", .protocolViolation), ("HTTP/1.0 404 Not Found", .protocolViolation),
            ("HTTP/1.1 429 Too Many Requests", .unavailable), ("HTTP/1.1 503 Service Unavailable", .unavailable),
            ("HTTP/1.1 302 Found", .unavailable), ("HTTP/1.1 200 OK", .unavailable), ("HTTP/1.0 101 Old", .unavailable),
            ("HTTP/1.1 99 Odd", .framing), ("HTTP/1.1 1010 Odd", .framing), ("HTTP/2 101 Odd", .framing),
            ("SSH-2.0-OpenSSH", .framing), ("HTTP/1.1 +10 Odd", .framing),
        ] as [(String, ErrorKind)])
    func statuses(line: String, kind: ErrorKind) throws {
        let client = try upgrade()
        let head = try parseHead(line + "\r\n\r\n")
        #expect(failure { try client.accept(head) } == kind)
    }

    @Test("base64 is read in its one canonical form")
    func base64() {
        for count in 0..<20 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 53 + 250) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
        #expect(Base64.encode([0xfb, 0xff]) == "+/8=")
        for text in ["-_8=", "+/8", "+/9=", "+/8==", "=", "====", "A===", "+/8=\n"] {
            #expect(Base64.decode(text) == nil)
        }
    }
}
