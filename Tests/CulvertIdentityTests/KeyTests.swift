import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertIdentity

@Suite("Keys and node IDs")
struct KeyTests {
    private let hex = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
    private let base32 = "rkeohxlubhyzl7ks3mwtzos5olfgocn7dwkbeg7toseadnapn5oa"

    @Test("the documented key has the documented texts")
    func documentedKey() throws {
        let id = try Fixture.key().nodeID
        #expect(id.description == hex)
        #expect(id.short == "8a88e3dd74")
        #expect(NodeID(hex) == id)
        #expect(NodeID(base32) == id)
        #expect(NodeID(base32.uppercased()) == id)
        #expect(NodeID(bytes: id.bytes) == id)
        #expect(id.bytes == Hex.decode(hex))
    }

    @Test("a node ID's text is exactly one of two forms")
    func malformedTexts() {
        let zBase32 = "tkrq8zmwb8a3m9k15csu3q17qmfgqnp9dskbrg9uq1rydpyxp7qy"
        for text in [
            "", hex.uppercased(), " " + hex, hex + "\n", String(hex.dropLast()), hex + "0", zBase32,
            String(base32.dropLast()), base32 + "=", String(base32.dropLast()) + "b",
        ] {
            #expect(NodeID(text) == nil, "\(text)")
        }
    }

    // Measured with iroh 1.2.0: the value of y, little-endian, with and without the sign bit.
    @Test(
        "small orders and non-canonical encodings pass, what does not decompress is refused",
        arguments: [
            (0, true), (1, true), (2, false), (3, true),
        ])
    func smallValues(value: UInt8, isPoint: Bool) {
        for sign: UInt8 in [0, 0x80] {
            var bytes = [UInt8](repeating: 0, count: 32)
            bytes[0] = value
            bytes[31] = sign
            #expect((NodeID(bytes: bytes) != nil) == isPoint)
            // The same value plus the prime 2^255 - 19.
            bytes = [UInt8](repeating: 0xff, count: 32)
            bytes[0] = 0xed + value
            bytes[31] = 0x7f | sign
            #expect((NodeID(bytes: bytes) != nil) == isPoint)
        }
    }

    @Test("32 x ff is accepted, as iroh does")
    func allOnes() {
        #expect(NodeID(bytes: [UInt8](repeating: 0xff, count: 32)) != nil)
        #expect(NodeID(bytes: [UInt8](repeating: 0xff, count: 31)) == nil)
        #expect(NodeID(bytes: [UInt8](repeating: 0xff, count: 33)) == nil)
        #expect(NodeID(bytes: []) == nil)
    }

    // Bit n tells whether iroh 1.2.0 accepts SHA-256("node-id n") as an endpoint ID.
    @Test("random encodings are accepted exactly when iroh accepts them")
    func acceptanceOfRandomEncodings() throws {
        let accepted = try #require(Hex.decode("a2b65b94a030a2c92b485e2afb2f0e25e3d4c8203583b252552bed55c3f23f1e"))
        for index in 0..<256 {
            let isAccepted = accepted[31 - index / 8] >> UInt8(index % 8) & 1 == 1
            #expect((NodeID(bytes: SHA256.digest("node-id \(index)".utf8)) != nil) == isAccepted, "\(index)")
        }
    }

    @Test("node IDs are ordered as their bytes")
    func order() throws {
        var generator = SplitMix64(seed: 1)
        let ids = try (0..<100).map { _ in try #require(SecretKey(seed: generator.bytes(32))).nodeID }
        #expect(ids.sorted().map(\.bytes) == ids.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) })
    }

    // RFC 8032 section 7.1, tests 1 to 3.
    @Test(
        "signatures are those of RFC 8032",
        arguments: [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
            ),
        ])
    func signatures(seed: String, publicKey: String, message: String, signature: String) throws {
        let key = try #require(SecretKey(seed))
        let message = try #require(Hex.decode(message))
        #expect(key.nodeID.description == publicKey)
        #expect(Hex.encode(key.sign(message)) == signature)
        #expect(key.nodeID.verify(signature: try #require(Hex.decode(signature)), of: message))
    }

    @Test("a signature holds for its message and key only")
    func wrongSignatures() throws {
        let key = try Fixture.key()
        let message = Array("message".utf8)
        let signature = key.sign(message)
        #expect(!key.nodeID.verify(signature: signature, of: message + [0]))
        #expect(!(try Fixture.key(2).nodeID.verify(signature: signature, of: message)))
        #expect(!key.nodeID.verify(signature: signature.dropLast(), of: message))
        #expect(!key.nodeID.verify(signature: signature + [0], of: message))
        for bit in 0..<512 {
            var flipped = signature
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(!key.nodeID.verify(signature: flipped, of: message), "bit \(bit)")
        }
    }

    @Test("a key of small order verifies nothing")
    func smallOrderVerifiesNothing() throws {
        // With the neutral element as key and R, and S = 0, the bare equation holds for every message.
        let neutral = [1] + [UInt8](repeating: 0, count: 31)
        let id = try #require(NodeID(bytes: neutral))
        #expect(!id.verify(signature: neutral + [UInt8](repeating: 0, count: 32), of: [1, 2, 3]))
    }

    @Test("keys come back from their seed's texts")
    func seeds() throws {
        let key = try Fixture.key()
        #expect(key.seed == [UInt8](repeating: 1, count: 32))
        #expect(SecretKey(Hex.encode(key.seed))?.nodeID == key.nodeID)
        #expect(SecretKey(Base32.encode(key.seed))?.nodeID == key.nodeID)
        #expect(SecretKey(seed: []) == nil)
        #expect(SecretKey(seed: [UInt8](repeating: 1, count: 31)) == nil)
        #expect(SecretKey(seed: [UInt8](repeating: 1, count: 64)) == nil)
        #expect(SecretKey("") == nil)
        #expect(SecretKey.generate().nodeID != SecretKey.generate().nodeID)
    }

    @Test("SHA-256 gives the digest of FIPS 180-4")
    func sha256() {
        #expect(
            Hex.encode(SHA256.digest("abc".utf8)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }

    @Test("a fingerprint reads what it writes and nothing else")
    func fingerprints() throws {
        let fingerprint = Fingerprint(of: "abc".utf8)
        #expect(fingerprint.description == "sha256:ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0")
        #expect(Fingerprint(fingerprint.description) == fingerprint)
        for text in ["", "sha256:", "sha256:AAAA", "SHA256:ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"] {
            #expect(Fingerprint(text) == nil)
        }
    }
}
