import CSodium
import CulvertCore

/// What a paired device shows to the host: `dt_` and 32 random bytes in base64url. It never prints by accident.
public struct DeviceToken: Sendable {
    private static let prefix = "dt_"
    private let secret: SecretBytes

    /// A new token from the operating system's random source.
    public static func generate() -> DeviceToken {
        DeviceToken(secret: TokenText.random(prefix: prefix))
    }

    /// The token that `text` is; nil when it is not of the documented form.
    public init?(_ text: String) {
        guard text.hasPrefix(Self.prefix),
            let random = Base64URL.decode(text.dropFirst(Self.prefix.count)),
            random.count == Limits.tokenEntropyBytes
        else { return nil }
        secret = SecretBytes(text.utf8)
    }

    private init(secret: SecretBytes) {
        self.secret = secret
    }

    /// The token itself, for the wire and for the client's own state file.
    public var text: String { secret.text }
    /// What the host stores instead of the token.
    public var hash: TokenHash { TokenHash(secret) }
}

/// What an invite carries and the host accepts once. Opaque here: another program's may be of any visible ASCII.
public struct PairingToken: Sendable {
    private static let prefix = "pt_"
    private let secret: SecretBytes

    /// A new token (`pt_` and 32 random bytes in base64url) from the operating system's random source.
    public static func generate() -> PairingToken {
        PairingToken(secret: TokenText.random(prefix: prefix))
    }

    /// The token that `text` is; nil when it is empty, longer than 512 bytes or has other than visible ASCII.
    public init?(_ text: String) {
        guard TokenText.isAcceptable(text) else { return nil }
        secret = SecretBytes(text.utf8)
    }

    private init(secret: SecretBytes) {
        self.secret = secret
    }

    /// The token itself, for the wire.
    public var text: String { secret.text }
    /// What the host stores instead of the token.
    public var hash: TokenHash { TokenHash(secret) }
}

extension DeviceToken: Redacted, Equatable {
    /// Compares in constant time.
    public static func == (left: DeviceToken, right: DeviceToken) -> Bool { left.secret.isEqual(to: right.secret) }
}

extension PairingToken: Redacted, Equatable {
    /// Compares in constant time.
    public static func == (left: PairingToken, right: PairingToken) -> Bool { left.secret.isEqual(to: right.secret) }
}

/// The SHA-256 of a token's text, which stands for the token in the host's database.
///
/// A fast hash is right for it: the tokens we issue have 256 random bits, so there is nothing to guess.
public struct TokenHash: Sendable {
    /// Bytes of a hash.
    public static let byteCount = SHA256.count

    /// The 32 bytes.
    public let bytes: [UInt8]

    /// The hash of whatever a peer presented as its token.
    public init(ofText text: String) {
        bytes = SHA256.digest(text.utf8)
    }

    /// A stored hash; nil when there are not 32 bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = Array(bytes)
    }

    fileprivate init(_ secret: SecretBytes) {
        bytes = secret.withBytes { SHA256.digest($0) }
    }
}

extension TokenHash: Hashable, Redacted {
    /// Compares in constant time.
    public static func == (left: TokenHash, right: TokenHash) -> Bool {
        sodium_memcmp(left.bytes, right.bytes, byteCount) == 0
    }

    /// By the bytes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(bytes)
    }
}

extension SecretBytes {
    fileprivate var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}

private enum TokenText {
    static func random(prefix: String) -> SecretBytes {
        SecretBytes((prefix + Base64URL.encode(Random.bytes(Limits.tokenEntropyBytes))).utf8)
    }

    /// Visible ASCII only, so that a token fits into an HTTP header and into one line.
    static func isAcceptable(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= Limits.tokenBytes && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }
}
