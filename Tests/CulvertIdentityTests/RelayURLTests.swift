import CulvertCore
import CulvertIdentity
import Testing

@Suite("Relay URLs")
struct RelayURLTests {
    @Test(
        "public HTTPS root URLs become canonical",
        arguments: [
            ("https://relay.example.com", "https://relay.example.com/"),
            ("HTTPS://Relay.Example.COM:443/", "https://relay.example.com/"),
            ("https://relay.example.com:8443", "https://relay.example.com:8443/"),
            ("https://use1-1.relay.example./", "https://use1-1.relay.example./"),
            ("https://203.0.113.7:", "https://203.0.113.7/"),
            ("https://[2001:DB8:0::1]", "https://[2001:db8::1]/"),
            ("https://localhost.example.com", "https://localhost.example.com/"),
        ])
    func canonical(written: String, text: String) throws {
        let relay = try RelayURL(written, allowInsecure: false)
        #expect(relay.text == text)
        #expect(try RelayURL(relay.text, allowInsecure: false) == relay)
    }

    @Test("host and port are what a client connects to")
    func parts() throws {
        let plain = try RelayURL("http://[::1]", allowInsecure: true)
        #expect((plain.host, plain.port, plain.isSecure) == ("::1", 80, false))
        let secure = try RelayURL("https://relay.example.com", allowInsecure: true)
        #expect((secure.host, secure.port, secure.isSecure) == ("relay.example.com", 443, true))
        #expect(try RelayURL("https://a:8443/", allowInsecure: false).port == 8443)
    }

    @Test(
        "anything but an absolute root URL of the web is refused, even with the developer switch",
        arguments: [
            "", "relay.example.com", "https:", "https://", "https:///", "https:relay.example.com",
            "ftp://relay.example.com", "wss://relay.example.com", "foo:bar", "https://relay.example.com/path",
            "https://relay.example.com//", "https://relay.example.com/?q", "https://relay.example.com?",
            "https://relay.example.com/#", "https://relay.example.com#f", "https://user@relay.example.com",
            "https://user:pw@relay.example.com", "https://@relay.example.com", "https://relay.example.com:0",
            "https://relay.example.com:65536", "https://relay.example.com:x", "https://relay.example.com:+1",
            "https://relay..example.com", "https://.", "https://relay.example.com\\", "https:\\\\relay.example.com",
            " https://relay.example.com", "https://relay.example.com\n", "https://relay.exam ple.com",
            "https://relay%2eexample.com", "https://rel\u{e4}y.example.com", "https://[2001:db8::1",
            "https://[2001:db8::1]x", "https://[relay]", "https://2001:db8::1", "https://relay.1",
        ])
    func malformed(text: String) {
        #expect(fault { try RelayURL(text, allowInsecure: true) } == .relayURL)
    }

    @Test(
        "no relay on a local network, however its address is written, even with the developer switch",
        arguments: [
            "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0", "0.1.2.3",
            "255.255.255.255", "240.0.0.1", "[::]", "[fe80::1]", "[fc00::1]", "[fd00::1]", "[ff02::1]", "[fec0::1]",
            "[::ffff:10.0.0.1]", "[::ffff:127.0.0.1]", "[::10.0.0.1]", "[64:ff9b::10.0.0.1]", "[2002:a00:1::1]",
            "[2001:0:a00:1::1]", "0x7f.1", "0x7f000001", "2130706433", "127.1", "017700000001", "0177.0.0.1",
            "127.0.0.1.", "127.0.0.0x1",
        ])
    func localAddresses(host: String) {
        #expect(fault { try RelayURL("https://\(host)/", allowInsecure: true) } == .relayURL)
    }

    @Test(
        "plain HTTP and loopback need the developer switch",
        arguments: [
            "http://relay.example.com", "http://127.0.0.1:4701", "https://127.9.9.9", "https://[::1]:4701",
            "https://localhost", "https://LOCALHOST.", "https://relay.localhost:8443",
        ])
    func developerSwitch(text: String) throws {
        #expect(fault { try RelayURL(text, allowInsecure: false) } == .relayURL)
        #expect(throws: Never.self) { try RelayURL(text, allowInsecure: true) }
    }

    @Test("a URL of 512 bytes is too long for any host name, and refused")
    func length() {
        let label = String(repeating: "a", count: 63)
        let longest = [label, label, label, String(repeating: "a", count: 61)].joined(separator: ".")
        #expect(throws: Never.self) { try RelayURL("https://\(longest)", allowInsecure: false) }
        for host in [longest + "a", label + "a.example", String(repeating: "a.", count: 300) + "b"] {
            #expect(fault { try RelayURL("https://\(host)", allowInsecure: false) } == .relayURL)
        }
    }
}
