import CulvertCore
import CulvertIdentity
import Testing

@testable import CulvertRelay

private func relay(_ text: String) throws -> RelayURL { try RelayURL(text, allowInsecure: true) }

@Suite("Proxy settings")
struct ProxySettingsTests {
    /// Host and port of the proxy for a relay; nil when it is reached directly.
    private func proxy(_ environment: [String: String], for url: String = "https://relay.example.com") throws -> String?
    {
        try ProxySettings(environment: environment).proxy(for: relay(url)).map { "\($0.host) \($0.port)" }
    }

    @Test("the lower-case variable comes first, and an empty one is none")
    func variables() throws {
        #expect(try proxy([:]) == nil)
        #expect(try proxy(["https_proxy": "http://lower:1", "HTTPS_PROXY": "http://upper:2"]) == "lower 1")
        #expect(try proxy(["https_proxy": "", "HTTPS_PROXY": "http://upper:2"]) == "upper 2")
        #expect(try proxy(["https_proxy": "", "HTTPS_PROXY": ""]) == nil)
        let upper = ["https_proxy": "http://proxy:1", "NO_PROXY": "relay.example.com"]
        #expect(try proxy(upper) == nil)
        #expect(try proxy(upper.merging(["no_proxy": ""]) { $1 }) == nil)
        #expect(try proxy(upper.merging(["no_proxy": "other"]) { $1 }) == "proxy 1")
    }

    @Test("relays with http:// never use one, and other variables do not count")
    func plainRelays() throws {
        #expect(try proxy(["https_proxy": "http://proxy:1"], for: "http://relay.example.com") == nil)
        let others = ["http_proxy": "http://proxy:1", "ALL_PROXY": "http://proxy:1", "Https_Proxy": "http://proxy:1"]
        #expect(try proxy(others) == nil)
    }

    @Test(
        "a proxy's URL has a host, and may have a port and a slash",
        arguments: [
            ("http://proxy.example:3128", "proxy.example 3128"), ("HTTP://Proxy.Example/", "proxy.example 1080"),
            ("http://proxy.example:80", "proxy.example 80"), ("http://192.0.2.7:8080/", "192.0.2.7 8080"),
            ("http://[2001:db8::7]:8080", "2001:db8::7 8080"), ("http://me:secret@127.0.0.1:8080", "127.0.0.1 8080"),
            ("http://a_b:", "a_b 1080"),
        ])
    func urls(text: String, expected: String) throws {
        #expect(try proxy(["https_proxy": text]) == expected)
    }

    @Test(
        "anything else is an error, which names the variable and not what is in it",
        arguments: [
            "https://hidden.example:3128", "socks5://hidden.example", "hidden.example:3128", "hidden", "http://",
            "http://hidden.example:0", "http://hidden.example:65536", "http://hidden.example:x",
            "http://hidden.example/path", "http://hidden.example?q", "http://hidden.example#f", "http://hid den",
            "http://2001:db8::7", "http://us%3aer:hidden@proxy", "http://user:hid%0aden@proxy",
            "http://user:hidden%7f@proxy", "http://user:hidden%4@proxy", "http://user%zz:hidden@proxy",
            "http://user:hidden@", " http://hidden.example",
        ])
    func malformed(text: String) throws {
        for (variable, other) in [("https_proxy", "HTTPS_PROXY"), ("HTTPS_PROXY", "https_proxy")] {
            let settings = ProxySettings(environment: [variable: text, "no_proxy": "direct.example"])
            let error = #expect(throws: TransportError.self) {
                try settings.proxy(for: relay("https://relay.example.com"))
            }
            #expect(error?.kind == .state)
            let reason = try #require(error?.reason)
            #expect(reason.contains(variable) && !reason.contains(other) && !reason.contains("hidden"))
            // It is not needed here.
            #expect(try settings.proxy(for: relay("https://direct.example")) == nil)
            #expect(try settings.proxy(for: relay("http://relay.example.com")) == nil)
        }
    }

    @Test(
        "exceptions are names, domains, addresses and ranges, with or without a port",
        arguments: [
            ("relay.example.com", "*", true), ("relay.example.com", "a, *", true),
            ("relay.example.com", "relay.example.com", true), ("relay.example.com", "RELAY.Example.COM.", true),
            ("relay.example.com.", "relay.example.com", true), ("relay.example.com", "example.com", true),
            ("relay.example.com", ".example.com", true), ("example.com", ".example.com", true),
            ("relay.example.com", "x,,  example.com ,y", true), ("relay.example.com", "x example.com", true),
            ("notexample.com", "example.com", false), ("notexample.com", ".example.com", false),
            ("relay.example.com", "relay", false), ("relay.example.com", "ple.com", false),
            ("relay.example.com", "a.relay.example.com", false), ("relay.example.com", "", false),
            ("relay.example.com", ".", false), ("relay.example.com", ",.,..,:443", false),
            ("relay.example.com", "example.com:443", true), ("relay.example.com:8443", "example.com:8443", true),
            ("relay.example.com", "example.com:8443", false), ("relay.example.com:8443", "example.com:443", false),
            ("relay.example.com", "example.com:+443", false), ("relay.example.com", "example.com:x", false),
            ("203.0.113.7", "203.0.113.7", true), ("203.0.113.7", "203.0.113.8", false),
            ("203.0.113.7", "203.0.113.7:443", true), ("203.0.113.7", "203.0.113.7:80", false),
            ("203.0.113.7", "113.7", false), ("203.0.113.7", "203.0.113.0/24", true),
            ("203.0.114.7", "203.0.113.0/24", false), ("203.0.113.130", "203.0.113.128/25", true),
            ("203.0.113.127", "203.0.113.128/25", false), ("203.0.113.64", "203.0.113.0/25", true),
            ("203.0.113.128", "203.0.113.192/26", false), ("203.0.113.7", "203.0.113.99/24", true),
            ("203.0.113.7", "203.0.113.7/32", true), ("203.0.113.6", "203.0.113.7/32", false),
            ("203.0.113.7", "0.0.0.0/0", true), ("203.0.113.7", "203.0.113.0/33", false),
            ("203.0.113.7", "203.0.113.0/", false), ("203.0.113.7", "203.0.113.0/+8", false),
            ("203.0.113.7", "::/0", false), ("203.0.113.7", "[203.0.113.7]", false),
            ("[2001:db8::7]", "2001:db8::7", true), ("[2001:db8::7]", "[2001:DB8:0::7]", true),
            ("[2001:db8::7]", "[2001:db8::7]:443", true), ("[2001:db8::7]", "[2001:db8::7]:80", false),
            ("[2001:db8::7]", "2001:db8::/32", true), ("[2001:db9::7]", "2001:db8::/32", false),
            ("[2001:db8::7]", "[2001:db8::]/31", true), ("[2001:db8::7]", "2001:db8::8", false),
            ("[2001:db8::7]", "0.0.0.0/0", false), ("relay.example.com", "0.0.0.0/0,::/0", false),
        ])
    func exceptions(host: String, list: String, isException: Bool) throws {
        let environment = ["https_proxy": "http://proxy:1", "no_proxy": list]
        #expect(try proxy(environment, for: "https://\(host)") == (isException ? nil : "proxy 1"))
    }
}

@Suite("Connections through a proxy")
struct ConnectRequestTests {
    private func request(_ url: String, through proxy: String) throws -> ConnectRequest {
        ConnectRequest(to: try relay(url), through: try #require(HTTPProxy(proxy)))
    }

    private func text(_ url: String, through proxy: String) throws -> String {
        String(decoding: try request(url, through: proxy).request, as: UTF8.self)
    }

    @Test("the request names host and port, always both")
    func requests() throws {
        #expect(
            try text("https://relay.example.com", through: "http://proxy")
                == "CONNECT relay.example.com:443 HTTP/1.1\r\nHost: relay.example.com:443\r\n\r\n")
        #expect(
            try text("https://[2001:db8::7]:8443", through: "http://proxy")
                == "CONNECT [2001:db8::7]:8443 HTTP/1.1\r\nHost: [2001:db8::7]:8443\r\n\r\n")
    }

    // The first is the example of RFC 7617 section 2, the second that of section 2.1.
    @Test(
        "user name and password are percent-decoded and sent by the Basic scheme",
        arguments: [
            ("Aladdin:open%20sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("test:123%C2%A3", "dGVzdDoxMjPCow=="),
            ("user:a:b%40%3a", "dXNlcjphOmJAOg=="), ("user", "dXNlcjo="), ("user:", "dXNlcjo="),
            ("u%40x:p@y", "dUB4OnBAeQ=="),
        ])
    func credentials(userInfo: String, encoded: String) throws {
        let text = try text("https://relay.example.com", through: "http://\(userInfo)@proxy")
        #expect(text.hasSuffix("\r\nProxy-Authorization: Basic \(encoded)\r\n\r\n"))
    }

    @Test("credentials never print")
    func redaction() throws {
        let proxy = try #require(HTTPProxy("http://aladdin:sesame@proxy"))
        var dumped = ""
        dump(proxy, to: &dumped)
        let encoded = try #require(proxy.credentials?.fieldValue.split(separator: " ").last)
        for text in ["\(proxy)", String(reflecting: proxy), dumped, "\([proxy.credentials])"] {
            #expect(!text.contains("aladdin") && !text.contains("sesame") && !text.contains(encoded))
        }
    }

    @Test(
        "only 2xx is a connection",
        arguments: [
            ("HTTP/1.1 200 Connection established", nil), ("HTTP/1.0 200 OK", nil), ("HTTP/1.1 299 ", nil),
            ("HTTP/1.1 407 Proxy Authentication Required", .authentication), ("HTTP/1.1 403 Forbidden", .unavailable),
            ("HTTP/1.1 502 Bad Gateway", .unavailable), ("HTTP/1.1 101 Switching Protocols", .unavailable),
            ("HTTP/1.1 199 x", .unavailable), ("HTTP/1.1 300 x", .unavailable), ("HTTP/2.0 200 OK", .framing),
            ("HTTP/1.1 2000 OK", .framing), ("HTTP/1.1 +20 OK", .framing), ("SSH-2.0-x", .framing),
        ] as [(String, ErrorKind?)])
    func answers(line: String, expected: ErrorKind?) throws {
        let request = try request("https://relay.example.com", through: "http://proxy")
        #expect(failure { try request.accept(parseHead(line + "\r\n\r\n")) } == expected)
    }

    @Test("the advice differs when a password was sent")
    func advice() throws {
        let answer = try parseHead("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        let reasons = try ["http://proxy", "http://user:pw@proxy"].map { proxy in
            let request = try request("https://relay.example.com", through: proxy)
            return #expect(throws: TransportError.self) { try request.accept(answer) }?.reason
        }
        #expect(reasons[0]?.contains("http://USER:PASSWORD@HOST:PORT") == true)
        #expect(reasons[1]?.contains("correct") == true)
    }
}
