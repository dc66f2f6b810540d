import CulvertCore
import Testing

@Suite("Addresses")
struct AddressTests {
    @Test(
        "addresses print as they are read, in canonical form",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("::", "::"), ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
        ])
    func text(written: String, canonical: String) throws {
        let address = try #require(IPAddress(written))
        #expect(address.description == canonical)
        #expect(IPAddress(bytes: address.bytes) == address)
    }

    @Test(
        "what is no address is refused",
        arguments: [
            "", "1.2.3", "1.2.3.256", "01.2.3.4", "1.2.3.4 ", "[::1]", "fe80::1%eth0", "1::2::3", "host",
            "127.0.0.1\u{0}.example.com", "::1\u{0}",
        ])
    func malformed(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test("only 4 and 16 bytes make an address")
    func byteCounts() {
        for count in 0...20 where count != 4 && count != 16 {
            #expect(IPAddress(bytes: [UInt8](repeating: 1, count: count)) == nil)
        }
    }

    // The last address inside and the first outside of each range.
    @Test(
        "ranges end where the RFCs say",
        arguments: [
            ("127.255.255.255", "loopback"), ("128.0.0.0", ""), ("::1", "loopback"), ("::2", ""),
            ("0.0.0.0", "unspecified"), ("::", "unspecified"), ("10.255.255.255", "private"), ("11.0.0.0", ""),
            ("172.16.0.0", "private"), ("172.31.255.255", "private"), ("172.15.255.255", ""), ("172.32.0.0", ""),
            ("192.168.255.255", "private"), ("192.169.0.0", ""), ("100.64.0.0", "private"),
            ("100.127.255.255", "private"), ("100.63.255.255", ""), ("100.128.0.0", ""), ("fc00::", "private"),
            ("fdff::", "private"), ("fbff::", ""), ("fe00::", ""), ("169.254.0.1", "link-local"), ("169.255.0.1", ""),
            ("fe80::1", "link-local"), ("febf::", "link-local"), ("fec0::", ""), ("224.0.0.0", "multicast"),
            ("239.255.255.255", "multicast"), ("240.0.0.0", ""), ("ff02::1", "multicast"),
            ("::ffff:10.0.0.1", "private"), ("::ffff:127.0.0.1", "loopback"),
        ])
    func ranges(text: String, expected: String) throws {
        let address = try #require(IPAddress(text))
        var found: [String] = []
        if address.isLoopback { found.append("loopback") }
        if address.isUnspecified { found.append("unspecified") }
        if address.isPrivate { found.append("private") }
        if address.isLinkLocal { found.append("link-local") }
        if address.isMulticast { found.append("multicast") }
        #expect(found.joined(separator: " ") == expected)
    }

    @Test("socket addresses are read and printed with brackets around IPv6")
    func socketAddresses() throws {
        #expect(try #require(SocketAddress("192.0.2.1:80")).description == "192.0.2.1:80")
        #expect(try #require(SocketAddress("[2001:db8::1]:65535")).description == "[2001:db8::1]:65535")
        for malformed in [
            "", "192.0.2.1", "192.0.2.1:", ":80", "192.0.2.1:65536", "192.0.2.1:+80", "192.0.2.1:-1", "::1:80",
            "[192.0.2.1]:80", "[::1]80", "[::1:80", "host:80", "192.0.2.1:8 0", "192.0.2.1:８",
        ] {
            #expect(SocketAddress(malformed) == nil, "\(malformed)")
        }
    }

    @Test("addresses sort as tickets list them: IPv4 first, then by value, then by port")
    func order() throws {
        let texts = ["2.0.0.1:1", "10.0.0.0:2", "10.0.0.0:10", "[::1]:9", "[2001:db8::]:1", "[2001:db8::1]:1"]
        let addresses = try texts.map { try #require(SocketAddress($0)) }
        #expect(addresses.reversed().sorted() == addresses)
    }
}
