import CulvertCore
import Testing

@testable import CulvertRelay

@Suite("Requests to a relay")
struct RelayRequestTests {
    private func fault(_ text: String) -> HeadFault? {
        do {
            _ = try parseRequest(text)
            return nil
        } catch {
            return error as? HeadFault
        }
    }

    @Test("path, query and persistence are told apart")
    func parts() throws {
        let request = try parseRequest("GET /relay?x=1?y HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect((request.method, request.path, request.query, request.keepsAlive) == ("GET", "/relay", "x=1?y", true))
        for text in ["HEAD / HTTP/1.0", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Close, x"] {
            #expect(try parseRequest(text + "\r\n\r\n").keepsAlive == false)
        }
        let empty = try parseRequest("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        #expect(empty.query == nil && empty.keepsAlive)
    }

    @Test(
        "what is no request for a path of this server is refused",
        arguments: [
            ("GET /\r\nHost: a", .startLine), ("GET  / HTTP/1.1\r\nHost: a", .startLine),
            ("GET / HTTP/1.1 \r\nHost: a", .startLine), ("GET * HTTP/1.1\r\nHost: a", .startLine),
            ("GET http://a/ HTTP/1.1\r\nHost: a", .startLine), ("GET /#f HTTP/1.1\r\nHost: a", .startLine),
            ("G@T / HTTP/1.1\r\nHost: a", .startLine), ("GET / HTTP/2.0\r\nHost: a", .version),
            ("PRI * HTTP/2.0", .startLine), ("GET / http/1.1\r\nHost: a", .startLine), ("GET / HTTP/1.1", .host),
            ("GET / HTTP/1.1\r\nHost: a\r\nhost: a", .host), ("GET / HTTP/1.0\r\nHost: a\r\nHost: a", .host),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1", .body),
            ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", .body),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 5", .body),
        ] as [(String, HeadFault)])
    func malformed(text: String, fault: HeadFault) {
        #expect(self.fault(text + "\r\n\r\n") == fault)
    }

    @Test("the token comes from the header, otherwise from the query")
    func tokens() throws {
        func token(_ target: String, _ fields: String = "") throws -> String? {
            try parseRequest("GET \(target) HTTP/1.1\r\nHost: a\r\n\(fields)\r\n").accessToken?.text
        }
        #expect(try token("/relay", "authorization: Bearer s3cret\r\n") == "s3cret")
        #expect(try token("/relay", "Authorization: bearer   s3cret\r\n") == "s3cret")
        #expect(try token("/relay?x=1&token=s%33cret") == "s3cret")
        #expect(try token("/relay?token=other", "Authorization: Bearer s3cret\r\n") == "s3cret")
        #expect(try token("/relay") == nil)
        let malformed = [
            "token", "token=", "token=a&token=b", "Token=a", "token=%3", "token=%zz", "token=%+1", "token=a%20b",
        ]
        for query in malformed {
            #expect(try token("/relay?\(query)") == nil, "\(query)")
        }
        for fields in ["Basic s3cret", "Bearer", "Bearer ", "Bearer a b", "s3cret"] {
            #expect(try token("/relay?token=x", "Authorization: \(fields)\r\n") == nil, "\(fields)")
        }
        #expect(try token("/relay", "Authorization: Bearer a\r\nAuthorization: Bearer a\r\n") == nil)
    }

    @Test("a token has 1 to 512 visible characters, and never prints")
    func accessTokens() throws {
        let longest = String(repeating: "t", count: 512)
        #expect(RelayAccessToken(longest)?.text == longest)
        for text in ["", longest + "t", "a b", "a\r\nX: y", "\u{e9}"] { #expect(RelayAccessToken(text) == nil) }
        let token = try #require(RelayAccessToken("s3cret"))
        var dumped = ""
        dump(token, to: &dumped)
        for text in ["\(token)", String(reflecting: token), dumped, "\([token])"] {
            #expect(!text.contains("s3cret"))
        }
        #expect(token.hash == RelayAccessToken("s3cret")?.hash)
        #expect(token.hash != RelayAccessToken("s3cres")?.hash)
    }
}
