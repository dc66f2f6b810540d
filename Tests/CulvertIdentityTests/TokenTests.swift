import CulvertCore
import Testing

@testable import CulvertIdentity

@Suite("Tokens")
struct TokenTests {
    @Test("a device token has the documented form and is new each time")
    func deviceTokens() throws {
        let token = DeviceToken.generate()
        #expect(token.text.hasPrefix("dt_"))
        #expect(token.text.utf8.count == 46)
        #expect(Base64URL.decode(token.text.dropFirst(3))?.count == 32)
        #expect(DeviceToken(token.text) == token)
        #expect(DeviceToken.generate() != token)
    }

    @Test("what is no device token is refused")
    func malformedDeviceTokens() {
        let text = DeviceToken.generate().text
        for malformed in [
            "", "dt_", String(text.dropFirst(3)), text + "A", String(text.dropLast()), "DT_" + text.dropFirst(3),
            text + "=", " " + text, "pt_" + text.dropFirst(3),
        ] {
            #expect(DeviceToken(malformed) == nil, "\(malformed)")
        }
    }

    @Test("a pairing token of another program may be 1 to 512 visible ASCII characters")
    func pairingTokens() {
        #expect(PairingToken.generate() != PairingToken.generate())
        #expect(PairingToken("x")?.text == "x")
        #expect(PairingToken(String(repeating: "x", count: 512)) != nil)
        for malformed in ["", String(repeating: "x", count: 513), "a b", "a\n", "\u{e4}", "a\u{7f}"] {
            #expect(PairingToken(malformed) == nil)
        }
    }

    @Test("a token's hash is the SHA-256 of its text")
    func hashes() throws {
        let token = try #require(PairingToken("abc"))
        #expect(
            Hex.encode(token.hash.bytes) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(token.hash == TokenHash(ofText: "abc"))
        #expect(token.hash != TokenHash(ofText: "abd"))
        #expect(TokenHash(bytes: token.hash.bytes) == token.hash)
        #expect(Set([token.hash, TokenHash(ofText: "abc"), TokenHash(ofText: "abd")]).count == 2)
        #expect(TokenHash(bytes: token.hash.bytes.dropLast()) == nil)
        let device = DeviceToken.generate()
        #expect(device.hash == TokenHash(ofText: device.text))
    }

    @Test("tokens compare by all of their bytes")
    func comparison() throws {
        let text = DeviceToken.generate().text
        let token = try #require(PairingToken(text))
        for index in text.indices {
            var other = text
            other.replaceSubrange(index...index, with: text[index] == "x" ? "y" : "x")
            #expect(PairingToken(other) != token)
        }
        #expect(PairingToken(text + "x") != token)
    }

    @Test("secrets show nothing, however they are printed")
    func redaction() throws {
        let key = try #require(SecretKey(seed: Array("0123456789abcdefghijklmnopqrstuv".utf8)))
        let device = DeviceToken.generate()
        let pairing = PairingToken.generate()
        let payload = InvitePayload(
            name: "studio", pairingToken: pairing, preference: .tunnelOnly, expiresAt: nil,
            tunnel: ServerMetadata(ticket: try Fixture.ticket(key)))
        let invite = try Invite.make(payload, key: key)
        let secrets = [
            device.text, String(device.text.dropFirst(3)), pairing.text, Hex.encode(key.seed), "0123456789abcdef",
            Base32.encode(key.seed), "\(key.seed)", "48\n", invite.link, "invite=", Hex.encode(device.hash.bytes),
        ]
        let values: [Any] = [
            key, device, pairing, device.hash, pairing.hash, invite, payload, [device], ["key": key], (1, key),
            Optional(pairing) as Any,
        ]
        for value in values {
            var dumped = ""
            dump(value, to: &dumped)
            for text in [
                String(describing: value), String(reflecting: value), "\(value)", dumped,
                Mirror(reflecting: value).children.map { "\($0)" }.joined(),
            ] {
                for secret in secrets {
                    #expect(!text.contains(secret), "\(type(of: value)) shows a secret")
                }
            }
        }
        #expect(String(describing: key) == "SecretKey(<redacted>)")
    }
}

@Suite("Names")
struct DisplayNameTests {
    @Test(
        "ordinary names are accepted",
        arguments: [
            "studio", "Anna’s laptop", "東京", "日本語 2", "x", "👩‍👩‍👧", "می‌خواهم", String(repeating: "a", count: 128),
        ])
    func accepted(name: String) {
        #expect(DisplayName.isAcceptable(name))
    }

    @Test(
        "names that are empty, blank, too long or could forge a line are refused",
        arguments: [
            "", " ", "\u{3000}", "\u{200d}", String(repeating: "a", count: 129), String(repeating: "ä", count: 65),
            "a\nb", "a\rb", "a\tb", "a\u{1b}[2J", "a\u{0}", "a\u{7f}", "a\u{85}", "a\u{2028}b", "a\u{202e}b",
            "a\u{2066}b", "a\u{200f}", "a\u{feff}", "a\u{e000}", "a\u{e0041}",
        ])
    func refused(name: String) {
        #expect(!DisplayName.isAcceptable(name))
    }
}
