import CSodium
import CulvertCore

/// A node's Ed25519 secret key (RFC 8032). It never prints, and its memory is overwritten when the last copy goes.
public struct SecretKey: Sendable {
    /// Bytes of the seed, which is what a key file holds.
    public static let seedByteCount = 32
    /// Bytes of a signature.
    public static let signatureByteCount = 64

    /// The public half.
    public let nodeID: NodeID
    // libsodium's form: the seed, then the public key.
    private let pair: SecretBytes

    /// A new key from the operating system's random source.
    public static func generate() -> SecretKey {
        // The loop is for the type checker: every seed of the right length has a key.
        while true {
            var seed = Random.bytes(seedByteCount)
            defer { sodium_memzero(&seed, seed.count) }
            if let key = SecretKey(seed: seed) { return key }
        }
    }

    /// The key of a 32-byte seed; nil for any other count. The caller's copy of the seed is the caller's to forget.
    public init?(seed: [UInt8]) {
        guard seed.count == Self.seedByteCount else { return nil }
        var publicKey = [UInt8](repeating: 0, count: NodeID.byteCount)
        pair = SecretBytes(count: Int(crypto_sign_ed25519_SECRETKEYBYTES)) { room in
            _ = crypto_sign_ed25519_seed_keypair(&publicKey, room, seed)
        }
        guard let nodeID = NodeID(bytes: publicKey) else { return nil }
        self.nodeID = nodeID
    }

    /// The key of a seed in 64 lower-case hexadecimal digits or 52 base32 characters in any case.
    public init?(_ text: some StringProtocol) {
        guard var seed = KeyText.decode(text) else { return nil }
        defer { sodium_memzero(&seed, seed.count) }
        self.init(seed: seed)
    }

    /// A copy of the 32-byte seed, for the key file and for TLS. It is not overwritten: keep it no longer than needed.
    public var seed: [UInt8] {
        pair.withBytes { Array($0.prefix(Self.seedByteCount)) }
    }

    /// The 64-byte Ed25519 signature of `message`.
    public func sign(_ message: some Collection<UInt8>) -> [UInt8] {
        let message = Array(message)
        var signature = [UInt8](repeating: 0, count: Self.signatureByteCount)
        pair.withPointer { secret in
            _ = crypto_sign_ed25519_detached(&signature, nil, message, UInt64(message.count), secret)
        }
        return signature
    }
}

extension SecretKey: Redacted {}
