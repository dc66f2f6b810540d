import CulvertCore
import Testing

@Suite("Encodings")
struct EncodingTests {
    @Test("hex writes lower case and reads nothing else")
    func hex() {
        #expect(Hex.encode([0x00, 0x7f, 0xff]) == "007fff")
        #expect(Hex.decode("007fff") == [0x00, 0x7f, 0xff])
        #expect(Hex.decode("") == [])
        for malformed in ["0", "0F", "0g", "0 ", " 00", "00\u{0}", "０0"] {
            #expect(Hex.decode(malformed) == nil, "\(malformed)")
        }
    }

    // RFC 4648 section 10, lower case and without padding.
    @Test(
        "base32 gives the vectors of RFC 4648",
        arguments: [
            ("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"), ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ])
    func base32Vectors(plain: String, text: String) {
        #expect(Base32.encode(plain.utf8) == text)
        #expect(Base32.decode(text) == Array(plain.utf8))
        #expect(Base32.decode(text.uppercased()) == Array(plain.utf8))
    }

    @Test(
        "base32 refuses padding, foreign characters, impossible lengths and stray bits",
        arguments: [
            "my======", "m", "mzx", "mzxw6y", "mz", "mzxr", "m1", "m0", "m8", "my ", "m-", "mé", "a", "aaa", "aaaaaa",
        ])
    func base32Strictness(text: String) {
        #expect(Base32.decode(text) == nil)
    }

    @Test(
        "base64url gives the vectors of RFC 4648 without padding",
        arguments: [
            ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ])
    func base64Vectors(plain: String, text: String) {
        #expect(Base64URL.encode(plain.utf8) == text)
        #expect(Base64URL.decode(text) == Array(plain.utf8))
    }

    @Test("base64url uses the URL-safe alphabet")
    func base64Alphabet() {
        #expect(Base64URL.encode([0xfb, 0xff, 0xfe]) == "-__-")
        #expect(Base64URL.decode("-__-") == [0xfb, 0xff, 0xfe])
    }

    @Test(
        "base64url refuses padding, the other alphabet, impossible lengths and stray bits",
        arguments: ["Zg==", "+/+/", "Z", "Zm9vY", "Zh", "Zm9", "Z g", "Zm9v\n", "Zm9é", "A", "AAAAA"])
    func base64Strictness(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test("what is written is read back, for every length to 64")
    func roundTrip() {
        for count in 0...64 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ count) }
            #expect(Hex.decode(Hex.encode(bytes)) == bytes)
            #expect(Base32.decode(Base32.encode(bytes)) == bytes)
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
        }
    }
}
