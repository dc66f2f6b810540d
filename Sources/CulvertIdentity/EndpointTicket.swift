import CulvertCore

/// One way to reach a node, as a ticket lists it.
public enum TicketAddress: Hashable, Sendable {
    /// A relay, by its URL. The URL is well formed and normalised, but not checked for being allowed: see ``RelayURL``.
    case relay(String)
    /// An address of the node itself.
    case direct(SocketAddress)
    /// An address of a transport that this program does not have; kept so that a ticket survives being passed on.
    case custom(id: UInt64, bytes: [UInt8])
}

extension TicketAddress: Comparable {
    /// The order in which tickets are written: relays by URL, addresses, custom transports.
    public static func < (left: TicketAddress, right: TicketAddress) -> Bool {
        switch (left, right) {
        case (.relay(let a), .relay(let b)): a.utf8.lexicographicallyPrecedes(b.utf8)
        case (.relay, _): true
        case (.direct, .relay): false
        case (.direct(let a), .direct(let b)): a < b
        case (.direct, .custom): true
        case (.custom(let id, let bytes), .custom(let otherID, let otherBytes)):
            id != otherID ? id < otherID : bytes.lexicographicallyPrecedes(otherBytes)
        case (.custom, _): false
        }
    }
}

/// iroh's endpoint ticket: a node ID and where to look for the node, as one word of text.
///
/// The text is `endpoint` and lower-case base32 of the postcard encoding. Writing is canonical (sorted, without
/// duplicates, relay URLs normalised); reading takes any order and duplicates.
public struct EndpointTicket: Hashable, Sendable {
    /// Whose ticket it is.
    public let nodeID: NodeID
    /// Sorted, without duplicates.
    public let addresses: [TicketAddress]

    /// A ticket for `nodeID`. Relay URLs are normalised.
    ///
    /// - Throws: `.metadata(.ticket)` when a relay URL cannot be parsed or the ticket would exceed its limits.
    public init(nodeID: NodeID, addresses: some Sequence<TicketAddress>) throws(TransportError) {
        try self.init(nodeID: nodeID, unsorted: Array(addresses))
        guard description.utf8.count <= Limits.ticketTextBytes else { throw TicketFault.tooLarge }
    }

    private init(nodeID: NodeID, unsorted: [TicketAddress]) throws(TransportError) {
        var unique: Set<TicketAddress> = []
        for address in unsorted {
            if case .relay(let text) = address {
                guard let url = URLText(text) else { throw TicketFault.relay }
                unique.insert(.relay(url.text))
            } else {
                unique.insert(address)
            }
        }
        guard unique.count <= Limits.ticketAddresses else { throw TicketFault.tooLarge }
        self.nodeID = nodeID
        self.addresses = unique.sorted()
    }

    /// Parses a ticket's text. White space, padding and the prefix of other kinds of ticket are refused.
    ///
    /// - Throws: `.metadata(.ticket)`.
    public init(text: String) throws(TransportError) {
        guard text.utf8.count <= Limits.ticketTextBytes else { throw TicketFault.tooLarge }
        guard text.hasPrefix(Self.prefix), let bytes = Base32.decode(text.dropFirst(Self.prefix.count)) else {
            throw TicketFault.text
        }
        try self.init(bytes: bytes)
    }

    /// The node's own addresses, without relays.
    public var directAddresses: [SocketAddress] {
        addresses.compactMap { if case .direct(let address) = $0 { address } else { nil } }
    }

    /// The relay URLs, normalised and unchecked.
    public var relayTexts: [String] {
        addresses.compactMap { if case .relay(let text) = $0 { text } else { nil } }
    }

    private static let prefix = "endpoint"
}

// MARK: - Wire form

extension EndpointTicket {
    private static let variant: UInt8 = 0
    private static let relayTag: UInt64 = 0
    private static let directTag: UInt64 = 1
    private static let customTag: UInt64 = 2
    private static let ipv4Tag: UInt64 = 0
    private static let ipv6Tag: UInt64 = 1

    /// The postcard encoding: variant, node ID, counted addresses.
    public var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.byte(Self.variant)
        writer.append(nodeID.bytes)
        writer.leb128(UInt64(addresses.count))
        for address in addresses {
            switch address {
            case .relay(let url):
                writer.leb128(Self.relayTag)
                writer.leb128(UInt64(url.utf8.count))
                writer.append(url.utf8)
            case .direct(let address):
                writer.leb128(Self.directTag)
                switch address.ip {
                case .v4: writer.leb128(Self.ipv4Tag)
                case .v6: writer.leb128(Self.ipv6Tag)
                }
                writer.append(address.ip.bytes)
                writer.leb128(UInt64(address.port))
            case .custom(let id, let bytes):
                writer.leb128(Self.customTag)
                writer.leb128(id)
                writer.leb128(UInt64(bytes.count))
                writer.append(bytes)
            }
        }
        return writer.bytes
    }

    /// Parses the postcard encoding. Bytes after the last address are ignored, as iroh does.
    private init(bytes: [UInt8]) throws(TransportError) {
        var reader = ByteReader(bytes)
        guard reader.byte() == Self.variant else { throw TicketFault.variant }
        guard let key = reader.take(NodeID.byteCount), let nodeID = NodeID(bytes: key) else { throw TicketFault.node }
        guard let count = reader.leb128() else { throw TicketFault.truncated }
        guard count <= UInt64(Limits.ticketAddresses) else { throw TicketFault.tooLarge }
        var addresses: [TicketAddress] = []
        for _ in 0..<count {
            addresses.append(try Self.address(&reader))
        }
        try self.init(nodeID: nodeID, unsorted: addresses)
    }

    private static func address(_ reader: inout ByteReader) throws(TransportError) -> TicketAddress {
        switch reader.tag() {
        case relayTag:
            guard let bytes = reader.counted() else { throw TicketFault.truncated }
            // Relay URLs are normalised and so ASCII; the parser refuses whatever else this may decode to.
            return .relay(String(decoding: bytes, as: UTF8.self))
        case directTag:
            let byteCount: Int
            switch reader.tag() {
            case ipv4Tag: byteCount = 4
            case ipv6Tag: byteCount = 16
            case nil: throw TicketFault.truncated
            default: throw TicketFault.tag
            }
            guard let bytes = reader.take(byteCount), let ip = IPAddress(bytes: bytes), let port = reader.port() else {
                throw TicketFault.truncated
            }
            return .direct(SocketAddress(ip, port: port))
        case customTag:
            guard let id = reader.leb128(), let bytes = reader.counted() else { throw TicketFault.truncated }
            return .custom(id: id, bytes: Array(bytes))
        case nil: throw TicketFault.truncated
        default: throw TicketFault.tag
        }
    }
}

extension ByteReader {
    /// A 32-bit tag: at most five bytes.
    fileprivate mutating func tag() -> UInt64? { leb128(maxBytes: 5, maximum: UInt64(UInt32.max)) }

    /// A port number: at most three bytes.
    fileprivate mutating func port() -> UInt16? {
        leb128(maxBytes: 3, maximum: UInt64(UInt16.max)).map(UInt16.init(truncatingIfNeeded:))
    }

    /// A counted byte sequence.
    fileprivate mutating func counted() -> ArraySlice<UInt8>? {
        leb128().flatMap(Int.init(exactly:)).flatMap { take($0) }
    }

    /// postcard bounds the length of a number by its type, so zero continuation bytes cannot pad it.
    private mutating func leb128(maxBytes: Int, maximum: UInt64) -> UInt64? {
        let before = remaining
        guard let value = leb128(), before - remaining <= maxBytes, value <= maximum else { return nil }
        return value
    }
}

private enum TicketFault {
    static let text = TransportError(
        .metadata(.ticket), "the ticket is not a word that begins with \"endpoint\"; copy it again, whole")
    static let variant = TransportError(.metadata(.ticket), "the ticket is of a kind that this version does not know")
    static let node = TransportError(.metadata(.ticket), "the ticket's node ID is malformed")
    static let truncated = TransportError(.metadata(.ticket), "the ticket is cut short; copy it again, whole")
    static let tag = TransportError(
        .metadata(.ticket), "the ticket has an address of a kind that this version does not know")
    static let relay = TransportError(.metadata(.ticket), "the ticket has a malformed relay URL")
    static let tooLarge = TransportError(.metadata(.ticket), "the ticket is larger than this version reads")
}

extension EndpointTicket: CustomStringConvertible {
    /// The canonical text.
    public var description: String { Self.prefix + Base32.encode(bytes) }
}

extension EndpointTicket: Codable {
    /// Decodes the text form.
    public init(from decoder: any Decoder) throws {
        try self.init(text: decoder.singleValueContainer().decode(String.self))
    }

    /// Encodes the text form.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
