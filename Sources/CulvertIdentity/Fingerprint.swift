import CulvertCore

/// A short name for a public key: `sha256:` and the key's SHA-256 in base64url.
public struct Fingerprint: Hashable, Sendable, CustomStringConvertible {
    private static let prefix = "sha256:"
    private let digest: [UInt8]

    /// The fingerprint of a public key's bytes.
    public init(of publicKey: some Sequence<UInt8>) {
        digest = SHA256.digest(publicKey)
    }

    /// Parses `sha256:` and 43 base64url characters.
    public init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let digest = Base64URL.decode(text.dropFirst(Self.prefix.count)),
            digest.count == SHA256.count
        else { return nil }
        self.digest = digest
    }

    /// `sha256:` and 43 base64url characters.
    public var description: String { Self.prefix + Base64URL.encode(digest) }
}
