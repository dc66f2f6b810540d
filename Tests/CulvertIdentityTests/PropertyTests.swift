import CulvertCore
import CulvertIdentity
import CulvertTestSupport
import FoundationEssentials
import Testing

@Suite("Hostile input")
struct PropertyTests {
    private static let frame = "culvert://connect?v=4&invite="

    private func link() throws -> String {
        try Invite.make(Fixture.payload(Fixture.key()), key: Fixture.key()).link
    }

    private func isAccepted(_ text: String) -> Bool {
        (try? Invite.parse(text, now: Fixture.now)) != nil
    }

    @Test("no part of a link is a link")
    func truncatedLinks() throws {
        let link = try link()
        for count in 0..<link.count {
            #expect(!isAccepted(String(link.prefix(count))), "\(count) characters")
            #expect(!isAccepted(String(link.suffix(count))), "the last \(count) characters")
        }
    }

    // Scheme and host are read in any case (RFC 3986), so the bit that makes a capital letter is the only one of a
    // link that may flip.
    @Test("a flipped bit in a link is refused, but for the case of scheme and host")
    func flippedLinkBits() throws {
        let bytes = Array(try link().utf8)
        let caseless = Set(0..<7).union(10..<17)
        for bit in 0..<bytes.count * 8 {
            var flipped = bytes
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            let isIgnorable = caseless.contains(bit / 8) && bit % 8 == 5
            #expect(isAccepted(String(decoding: flipped, as: UTF8.self)) == isIgnorable, "bit \(bit)")
        }
    }

    // Our envelopes have no white space and no unknown field, so there is nothing in them that may change.
    @Test("every flipped bit in an envelope is refused")
    func flippedEnvelopeBits() throws {
        let envelope = try #require(Base64URL.decode(try link().dropFirst(Self.frame.count)))
        for bit in 0..<envelope.count * 8 {
            var flipped = envelope
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(!isAccepted(Self.frame + Base64URL.encode(flipped)), "bit \(bit)")
        }
        for count in 0..<envelope.count {
            #expect(!isAccepted(Self.frame + Base64URL.encode(envelope.prefix(count))), "\(count) bytes")
        }
    }

    @Test("an unsigned change of the payload is refused, whatever it is", arguments: 1...20 as ClosedRange<UInt64>)
    func changedPayload(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<50 {
            let position = Double.random(in: 0..<1, using: &generator)
            let value = UInt8.random(in: 0...255, using: &generator)
            var forgery = try Forgery()
            var isChanged = false
            let original = JSONText.object(forgery.payload)
            var json = Array(original.utf8)
            let index = Int(position * Double(json.count))
            isChanged = json[index] != value
            json[index] = value
            forgery.tamper = { _ in Base64URL.encode(json) }
            #expect((forgery.fault() != nil) == isChanged)
        }
    }

    @Test("random text is no invite, ticket, node ID, key, token or relay", arguments: 1...20 as ClosedRange<UInt64>)
    func randomText(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let bytes = generator.bytes(Int.random(in: 0...300, using: &generator))
            let raw = String(decoding: bytes, as: UTF8.self)
            for text in [raw, Self.frame + raw, Self.frame + Base64URL.encode(bytes), "endpoint" + raw] {
                #expect(!isAccepted(text))
                #expect((try? EndpointTicket(text: text)) == nil)
                #expect(NodeID(text) == nil)
                #expect(SecretKey(text) == nil)
                #expect(DeviceToken(text) == nil)
                #expect((try? RelayURL(text, allowInsecure: true)) == nil)
            }
        }
    }

    @Test("random JSON inside a valid signature never crashes the reader", arguments: 1...20 as ClosedRange<UInt64>)
    func signedNonsense(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        func value(_ depth: Int) -> Any {
            switch Int.random(in: 0..<(depth > 0 ? 7 : 4), using: &generator) {
            case 0: return Int.random(in: Int.min...Int.max, using: &generator)
            case 1: return "2026-01-02T03:04:05Z"
            case 2: return Hex.encode(generator.bytes(32))
            case 3: return ()
            case 4: return (0..<3).map { _ in value(depth - 1) }
            default: return Dictionary(uniqueKeysWithValues: (0..<3).map { ("k\($0)", value(depth - 1)) })
            }
        }
        let fields = ["name", "pairingToken", "preference", "expiresAt", "transports", "fingerprint", "v"]
        let metadata = ["version", "nodeId", "alpns", "addressMode", "ticket", "relayUrls"]
        for _ in 0..<50 {
            var forgery = try Forgery()
            if Bool.random(using: &generator) {
                forgery.payload[fields.randomElement(using: &generator) ?? "v"] = value(3)
            } else {
                try forgery.setMetadata(metadata.randomElement(using: &generator) ?? "ticket", value(3))
            }
            // `null` is as good as absent for the optional fields; whatever is accepted must at least be well formed.
            if let invite = try? forgery.parse() {
                #expect(invite.endpoint.nodeID == (try Fixture.key().nodeID))
            }
        }
    }

    @Test("deeply nested JSON is refused and does not exhaust the stack")
    func deepJSON() throws {
        for nesting in ["[", "{\"a\":"] {
            let deep = String(repeating: nesting, count: 8000 / nesting.utf8.count)
            #expect(!isAccepted(Self.frame + Base64URL.encode(deep.utf8)))
            var forgery = try Forgery()
            forgery.payloadText = deep
            #expect(forgery.fault() == .envelope)
        }
    }

    @Test("oversized input is refused at once")
    func oversized() {
        let megabyte = String(repeating: "a", count: 1 << 20)
        #expect(!isAccepted(megabyte))
        #expect(!isAccepted(Self.frame + megabyte))
        #expect((try? EndpointTicket(text: "endpoint" + megabyte)) == nil)
        #expect(NodeID(megabyte) == nil)
        #expect(SecretKey(megabyte) == nil)
        #expect(DeviceToken("dt_" + megabyte) == nil)
        #expect(PairingToken(megabyte) == nil)
        #expect((try? RelayURL("https://" + megabyte, allowInsecure: true)) == nil)
    }

    // A ticket has no checksum, so a changed one may be another valid ticket; it must then survive a round trip and
    // never name the same node with the same addresses unless the change was beyond the end.
    @Test("a changed ticket is refused or is another ticket", arguments: 1...20 as ClosedRange<UInt64>)
    func changedTickets(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let original = try EndpointTicket(
            nodeID: Fixture.key().nodeID,
            addresses: Fixture.ticket(Fixture.key()).addresses + [
                .direct(SocketAddress(.loopbackV6, port: 51820)), .custom(id: 300, bytes: [1, 2, 3]),
            ])
        for _ in 0..<500 {
            var bytes = original.bytes
            switch Int.random(in: 0..<3, using: &generator) {
            case 0:
                bytes.removeLast(Int.random(in: 1...bytes.count, using: &generator))
                let text = "endpoint" + Base32.encode(bytes)
                #expect((try? EndpointTicket(text: text)) == nil, "a cut ticket")
                continue
            case 1:
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^=
                    1 << UInt8.random(in: 0..<8, using: &generator)
            default:
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] &+= UInt8.random(
                    in: 1...255, using: &generator)
            }
            if let changed = try? EndpointTicket(text: "endpoint" + Base32.encode(bytes)) {
                #expect(try EndpointTicket(text: changed.description) == changed)
            }
        }
    }

    @Test("every bit of a node ID's text counts")
    func flippedNodeIDs() throws {
        let id = try Fixture.key().nodeID
        for (text, caseBit) in [(id.description, -1), (Base32.encode(id.bytes), 5)] {
            let bytes = Array(text.utf8)
            for bit in 0..<bytes.count * 8 {
                var flipped = bytes
                flipped[bit / 8] ^= 1 << UInt8(bit % 8)
                let isCaseOfLetter = bit % 8 == caseBit && bytes[bit / 8] >= 0x61
                #expect((NodeID(String(decoding: flipped, as: UTF8.self)) == id) == isCaseOfLetter, "bit \(bit)")
            }
            for count in 0..<text.count { #expect(NodeID(text.prefix(count)) == nil) }
        }
    }
}
