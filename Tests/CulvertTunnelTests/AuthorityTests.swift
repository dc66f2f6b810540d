import CulvertCore
import Testing

@testable import CulvertTunnel

@Suite struct AuthorityTests {
    @Test(arguments: [
        "localhost", "LOCALHOST", "localhost:", "localhost:1", "localhost:65535", "localhost.", "app.localhost",
        "a.b.LocalHost:8080", "127.0.0.1", "127.0.0.1:8080", "127.255.255.254", "[::1]", "[::1]:80",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]", "a_b.localhost.:80",
    ])
    func loopback(text: String) throws {
        #expect(try #require(Authority(Array(text.utf8))).isLoopback)
    }

    @Test(arguments: [
        "", ":80", "example.com", "localhost.example.com", "localhost.evil:80", "notlocalhost", "xlocalhost",
        ".localhost",
        "a..localhost", "localhost..", ".", "127.0.0.1.example.com", "127.1", "0.0.0.0", "126.255.255.255", "128.0.0.1",
        "10.0.0.1", "[::]", "[::2]", "[fe80::1]", "2130706433", "0x7f.0.0.1", "127.0.0.01", "local%68ost", "127.0.0.1.",
    ])
    func notLoopback(text: String) throws {
        #expect(try !#require(Authority(Array(text.utf8))).isLoopback)
    }

    @Test(arguments: [
        "localhost:65536", "localhost:99999999999999999999", "localhost:8o", "localhost:-1", "localhost:+1",
        "localhost:80:80",
        "user@localhost", "localhost/", "localhost?", "local host", "localhost\\", "a,b@c", "[::1", "::1", "[::1]x",
        "[::1]]",
        "[::1%25lo]", "[::1%lo]", "[127.0.0.1]", "[localhost]", "[]", "[v1.a]", "é.localhost", "localhost\t",
        "\u{0}localhost",
        "<localhost>", "\"localhost\"",
    ])
    func invalid(text: String) {
        #expect(Authority(Array(text.utf8)) == nil)
    }

    @Test func parts() throws {
        let authority = try #require(Authority(Array("[2001:DB8::1]:443".utf8)))
        #expect(authority.host == .address(.v6(0x2001_0db8_0000_0000, 1)))
        #expect(authority.port == 443)
        #expect(Authority(Array("Example.COM:".utf8))?.host == .name("example.com"))
        #expect(Authority(Array("x:".utf8))?.port == nil)
        #expect(Authority(Array("x:0".utf8))?.port == 0)
    }
}
