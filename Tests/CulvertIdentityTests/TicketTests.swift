import CulvertCore
import CulvertIdentity
import Testing

@Suite("Tickets")
struct TicketTests {
    private static let relay = TicketAddress.relay("https://relay.example.com")

    private static func direct(_ text: String) throws -> TicketAddress {
        .direct(try #require(SocketAddress(text)))
    }

    private static func bytes(_ tail: String) throws -> String {
        let key = try Fixture.key().nodeID
        return "endpoint" + Base32.encode([0] + key.bytes + (try #require(Hex.decode(tail))))
    }

    @Test("the ticket of an ID alone is iroh's, byte for byte")
    func idOnly() throws {
        let ticket = try EndpointTicket(nodeID: Fixture.key().nodeID, addresses: [])
        #expect(ticket.description == "endpointacfiry65oqe7dfp5klns2pf2lvzmuzyjx4ozieq36n2iqanub5xvyaa")
        #expect(
            Hex.encode(ticket.bytes) == "008a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c00")
    }

    @Test("tickets with addresses are iroh's, byte for byte, whatever order they are given in")
    func vectors() throws {
        let id = try Fixture.key().nodeID
        let cases: [([TicketAddress], String)] = [
            (
                [Self.relay],
                "endpointacfiry65oqe7dfp5klns2pf2lvzmuzyjx4ozieq36n2iqanub5xvyaiadjuhi5dqom5c6l3smvwgc6jomv4gc3lqnrss4y3pnuxq"
            ),
            (
                [try Self.direct("[2001:db8::1]:51820"), try Self.direct("192.168.1.5:4433"), Self.relay],
                "endpointacfiry65oqe7dfp5klns2pf2lvzmuzyjx4ozieq36n2iqanub5xvyayadjuhi5dqom5c6l3smvwgc6jomv4gc3lqnrss4y3pnuxqcagavaaqlujcaeasaainxaaaaaaaaaaaaaaaaaaad3euam"
            ),
            (
                [
                    .relay("http://127.0.0.1:4701"), try Self.direct("127.0.0.1:1"), try Self.direct("10.0.0.1:65535"),
                    try Self.direct("127.0.0.1:1"),
                ],
                "endpointacfiry65oqe7dfp5klns2pf2lvzmuzyjx4ozieq36n2iqanub5xvyayaczuhi5dqhixs6mjsg4xdalrqfyytunbxgays6aiabiaaaap774bqcad7aaaacai"
            ),
        ]
        for (addresses, text) in cases {
            let ticket = try EndpointTicket(nodeID: id, addresses: addresses)
            #expect(ticket.description == text)
            #expect(try EndpointTicket(text: text) == ticket)
            #expect(try EndpointTicket(text: "endpoint" + text.dropFirst(8).uppercased()) == ticket)
        }
    }

    @Test("the parts of a ticket come back")
    func parts() throws {
        let ticket = try EndpointTicket(
            text:
                "endpointacfiry65oqe7dfp5klns2pf2lvzmuzyjx4ozieq36n2iqanub5xvyayadjuhi5dqom5c6l3smvwgc6jomv4gc3lqnrss4y3pnuxqcagavaaqlujcaeasaainxaaaaaaaaaaaaaaaaaaad3euam"
        )
        #expect(ticket.nodeID == (try Fixture.key().nodeID))
        #expect(ticket.relayTexts == ["https://relay.example.com/"])
        #expect(ticket.directAddresses.map(\.description) == ["192.168.1.5:4433", "[2001:db8::1]:51820"])
    }

    @Test("readers take any order, duplicates, unknown transports and bytes after the end")
    func lenientReading() throws {
        let custom = "0205" + "03616263"
        let direct = "01000a00000150"
        let relay = "000a68747470733a2f2f612f"
        let text = try Self.bytes("04" + custom + direct + direct + relay + "ffff")
        let ticket = try EndpointTicket(text: text)
        #expect(
            ticket.addresses == [
                .relay("https://a/"), try Self.direct("10.0.0.1:80"), .custom(id: 5, bytes: Array("abc".utf8)),
            ])
        #expect(try EndpointTicket(text: ticket.description) == ticket)
    }

    // Each measured with iroh 1.2.0.
    @Test(
        "malformed addresses fail the whole ticket",
        arguments: [
            "01", "0103", "010100", "0101000a000001", "0101020a00000150", "0101000a000001d0808000",
            "0101000a000001808004", "010181808080800000", "01" + "0000", "010003666f6f", "01000b68747470733a2f2f6120",
            "0202", "8180808080808080808000", "ffffffffffffffffff01",
        ])
    func malformedAddresses(tail: String) throws {
        let text = try Self.bytes(tail)
        #expect(fault { try EndpointTicket(text: text) } == .ticket)
    }

    @Test("a number may be padded within the width of its type, as postcard allows")
    func paddedNumbers() throws {
        let plain = try EndpointTicket(text: Self.bytes("01" + "01000a00000150"))
        #expect(try EndpointTicket(text: Self.bytes("8100" + "8180808000" + "000a000001d08000")) == plain)
    }

    @Test("the frame of the text is exact")
    func malformedTexts() throws {
        let good = try EndpointTicket(nodeID: Fixture.key().nodeID, addresses: [Self.relay]).description
        let key = try Fixture.key().nodeID.bytes
        for text in [
            "", "endpoint", "node" + good.dropFirst(8), "Endpoint" + good.dropFirst(8), " " + good, good + " ",
            good + "=", good + "\n", String(good.dropLast()), "endpoint1" + good.dropFirst(9),
            "endpoint" + Base32.encode([1] + key + [0]),
            "endpoint" + Base32.encode([0, 2] + [UInt8](repeating: 0, count: 32)),
        ] {
            #expect(fault { try EndpointTicket(text: text) } == .ticket, "\(text)")
        }
    }

    @Test("a ticket has at most 64 addresses and 4 KiB of text")
    func limits() throws {
        let id = try Fixture.key().nodeID
        func addresses(_ count: Int) -> [TicketAddress] {
            (1...count).map { .direct(SocketAddress(.loopbackV4, port: UInt16($0))) }
        }
        let largest = try EndpointTicket(nodeID: id, addresses: addresses(64))
        #expect(try EndpointTicket(text: largest.description) == largest)
        #expect(fault { try EndpointTicket(nodeID: id, addresses: addresses(65)) } == .ticket)
        let tooMany = try Self.bytes("41" + String(repeating: "01000a00000150", count: 65))
        #expect(fault { try EndpointTicket(text: tooMany) } == .ticket)

        // 8 + ceil(8/5 * 2555) characters are 4,096; 34 bytes are frame, 4 are the address's.
        func custom(_ count: Int) -> [TicketAddress] { [.custom(id: 1, bytes: [UInt8](repeating: 7, count: count))] }
        let longest = try EndpointTicket(nodeID: id, addresses: custom(2555 - 38))
        #expect(longest.description.utf8.count == 4096)
        #expect(try EndpointTicket(text: longest.description) == longest)
        #expect(fault { try EndpointTicket(nodeID: id, addresses: custom(2556 - 38)) } == .ticket)
        let tooLong = longest.description + "a"
        #expect(fault { try EndpointTicket(text: tooLong) } == .ticket)
    }

    // Each measured with iroh 1.2.0.
    @Test(
        "relay URLs are normalised as iroh does",
        arguments: [
            ("HTTPS://A.Example:443", "https://a.example/"), ("http://a:443", "http://a:443/"),
            ("https://a.example.", "https://a.example./"), ("https://a/b?c#d", "https://a/b?c#d"),
            ("https://[2001:DB8::1]:80/", "https://[2001:db8::1]:80/"), ("ftp://a:21", "ftp://a/"),
            ("foo:bar", "foo:bar"), ("https://u:p@a/", "https://u:p@a/"), ("wss://a:443/x", "wss://a/x"),
            ("https://a:", "https://a/"), ("https://a?x", "https://a/?x"), ("https://a#x", "https://a/#x"),
        ])
    func normalisedRelays(written: String, normalised: String) throws {
        let ticket = try EndpointTicket(nodeID: Fixture.key().nodeID, addresses: [.relay(written)])
        #expect(ticket.relayTexts == [normalised])
    }
}
