import CSodium
import CulvertCore

/// Who a node is: its 32-byte Ed25519 public key (RFC 8032).
///
/// Two node IDs are equal when their bytes are. Like iroh's, an ID must decompress to a point of the curve, but keys
/// of small order and non-canonical encodings can be named; they never verify a signature.
public struct NodeID: Hashable, Sendable {
    /// Bytes of a node ID.
    public static let byteCount = 32

    // Four big-endian words: stored inline, and ordered as the bytes are.
    private let words: InlineWords

    private struct InlineWords: Hashable {
        var first: UInt64 = 0
        var second: UInt64 = 0
        var third: UInt64 = 0
        var fourth: UInt64 = 0
    }

    /// The key's 32 bytes, as on the wire.
    public var bytes: [UInt8] {
        [words.first, words.second, words.third, words.fourth].flatMap { word in
            withUnsafeBytes(of: word.bigEndian, Array.init)
        }
    }

    /// The node ID of 32 bytes; nil when there are not 32 or they are no point of the curve.
    public init?(bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == Self.byteCount, Self.decompresses(bytes) else { return nil }
        func word(_ index: Int) -> UInt64 { bytes[index * 8..<index * 8 + 8].reduce(0) { $0 << 8 | UInt64($1) } }
        words = InlineWords(first: word(0), second: word(1), third: word(2), fourth: word(3))
    }

    /// The node ID of 64 lower-case hexadecimal digits or of 52 base32 characters in any case; nil for anything else,
    /// white space included.
    public init?(_ text: some StringProtocol) {
        guard let bytes = KeyText.decode(text) else { return nil }
        self.init(bytes: bytes)
    }

    /// The first ten hexadecimal digits: enough to tell nodes apart on a screen, never a proof.
    public var short: String { String(description.prefix(10)) }

    /// Whether `signature` (64 bytes) is this node's Ed25519 signature of `message`.
    public func verify(signature: some Collection<UInt8>, of message: some Collection<UInt8>) -> Bool {
        guard signature.count == Int(crypto_sign_ed25519_BYTES) else { return false }
        let message = Array(message)
        return crypto_sign_ed25519_verify_detached(Array(signature), message, UInt64(message.count), bytes) == 0
    }

    /// Whether the 32 bytes decompress (RFC 8032 section 5.1.3, without the demand for canonical encodings).
    ///
    /// libsodium's `crypto_core_ed25519_is_valid_point` refuses small orders and non-canonical encodings too. Its
    /// addition only decompresses its operands, so adding the neutral element asks exactly our question.
    private static func decompresses(_ bytes: [UInt8]) -> Bool {
        var sum = [UInt8](repeating: 0, count: byteCount)
        return crypto_core_ed25519_add(&sum, bytes, neutralElement) == 0
    }

    /// The encoding of the point (0, 1).
    private static let neutralElement: [UInt8] = [1] + [UInt8](repeating: 0, count: byteCount - 1)
}

extension NodeID: Comparable {
    /// In the order of the bytes.
    public static func < (left: NodeID, right: NodeID) -> Bool {
        (left.words.first, left.words.second, left.words.third, left.words.fourth)
            < (right.words.first, right.words.second, right.words.third, right.words.fourth)
    }
}

extension NodeID: CustomStringConvertible {
    /// 64 lower-case hexadecimal digits.
    public var description: String { Hex.encode(bytes) }
}

extension NodeID: Codable {
    /// Decodes either text form.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let id = NodeID(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a node ID")
        }
        self = id
    }

    /// Encodes 64 lower-case hexadecimal digits.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

/// The two text forms that keys are read from.
enum KeyText {
    private static let hexDigits = 64
    private static let base32Characters = 52

    /// The 32 bytes of 64 lower-case hexadecimal digits or 52 base32 characters in any case.
    static func decode(_ text: some StringProtocol) -> [UInt8]? {
        switch text.utf8.count {
        case hexDigits: Hex.decode(text)
        case base32Characters: Base32.decode(text)
        default: nil
        }
    }
}
