/// The transports on which a device token is valid: what the invite authorised.
public struct CredentialTransports: OptionSet, Hashable, Sendable {
    /// The set as bits; the host's database stores this number.
    public let rawValue: Int

    /// A set from its bits.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// HTTPS.
    public static let http = CredentialTransports(rawValue: 1)
    /// The tunnel; "iroh" on the wire.
    public static let tunnel = CredentialTransports(rawValue: 2)

    private static let words: [(String, CredentialTransports)] = [("http", .http), ("iroh", .tunnel)]

    /// A set from its words on the wire; unknown ones are ignored.
    public init(wire: [String]) {
        self = []
        for (word, transport) in Self.words where wire.contains(word) { insert(transport) }
    }

    /// The words on the wire, in their fixed order.
    public var wire: [String] {
        Self.words.compactMap { contains($0.1) ? $0.0 : nil }
    }
}
