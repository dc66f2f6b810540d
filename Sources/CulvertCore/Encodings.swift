/// Lower-case hexadecimal (RFC 4648 section 8, but lower case, as node IDs are printed).
package enum Hex {
    /// Two lower-case digits a byte.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of lower-case hexadecimal text; nil for any other character or an odd count.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in text.utf8 {
            let value: UInt8
            switch character {
            case 0x30...0x39: value = character - 0x30
            case 0x61...0x66: value = character - 0x61 + 10
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return high == nil ? bytes : nil
    }
}

/// Encodings that spend a fixed number of bits on a character and are written here without padding.
private struct RadixAlphabet {
    let bits: Int
    let characters: [UInt8]
    private let values: [UInt8]

    init(bits: Int, _ characters: String, foldingCase: Bool = false) {
        self.bits = bits
        self.characters = Array(characters.utf8)
        var values = [UInt8](repeating: 0xff, count: 256)
        for (value, character) in self.characters.enumerated() {
            values[Int(character)] = UInt8(value)
            if foldingCase, (0x61...0x7a).contains(character) { values[Int(character) - 32] = UInt8(value) }
        }
        self.values = values
    }

    func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var pending: UInt32 = 0
        var count = 0
        for byte in bytes {
            pending = pending << 8 | UInt32(byte)
            count += 8
            while count >= bits {
                count -= bits
                text.append(characters[Int(pending >> UInt32(count)) & (1 << bits - 1)])
            }
        }
        if count > 0 { text.append(characters[Int(pending << UInt32(bits - count)) & (1 << bits - 1)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Strict: no padding, no foreign character, no superfluous character and no stray bits at the end.
    func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var pending: UInt32 = 0
        var count = 0
        for character in text.utf8 {
            let value = values[Int(character)]
            guard value != 0xff else { return nil }
            pending = pending << UInt32(bits) | UInt32(value)
            count += bits
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(count)))
            }
        }
        guard count < bits, pending & (1 << UInt32(count) - 1) == 0 else { return nil }
        return bytes
    }
}

/// RFC 4648 section 6 without padding, written in lower case and read in any case, as in iroh's tickets.
package enum Base32 {
    private static let alphabet = RadixAlphabet(bits: 5, "abcdefghijklmnopqrstuvwxyz234567", foldingCase: true)

    /// Lower-case text without padding.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String { alphabet.encode(bytes) }

    /// The bytes of unpadded text in any case; nil when it is malformed.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? { alphabet.decode(text) }
}

/// RFC 4648 section 5 without padding.
package enum Base64URL {
    private static let alphabet = RadixAlphabet(
        bits: 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

    /// URL-safe text without padding.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String { alphabet.encode(bytes) }

    /// The bytes of unpadded URL-safe text; nil when it is malformed.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? { alphabet.decode(text) }
}
