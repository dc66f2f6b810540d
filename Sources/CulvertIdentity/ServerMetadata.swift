import CulvertCore

/// The application protocols of this system. The `oppi/` names are those of deployed peers and mean the same.
public enum ALPN {
    /// The HTTP tunnel, ours first.
    public static let http = ["culvert/http/1", "oppi/http/1"]
    /// Pairing, ours first.
    public static let pairing = ["culvert/pair/1", "oppi/pair/1"]
}

/// How a client finds a node.
public enum AddressMode: String, Codable, Sendable {
    /// By looking its node ID up.
    case nodeID = "node-id"
    /// By the addresses in its ticket.
    case ticket
}

/// How a host can be reached by tunnel: version 2 of the server metadata, as it stands in an invite.
///
/// It holds what was written, unchecked, because each fault has its own error:
/// see ``validate(requiredALPNs:allowInsecureRelay:)``.
public struct ServerMetadata: Hashable, Sendable {
    /// The version that is written and read.
    public static let currentVersion = 2

    /// The version of the format.
    public let version: Int
    /// The node ID's text.
    public let nodeID: String
    /// The application protocols that the host offers.
    public let alpns: [String]
    /// How clients find the host.
    public let addressMode: AddressMode
    /// The ticket's text.
    public let ticket: String?
    /// Relays in addition to the ticket's.
    public let relayURLs: [String]

    /// What a host with this ticket says of itself.
    public init(ticket: EndpointTicket, alpns: [String] = ALPN.http + ALPN.pairing, relayURLs: [RelayURL] = []) {
        version = Self.currentVersion
        nodeID = ticket.nodeID.description
        self.alpns = alpns
        addressMode = .ticket
        self.ticket = ticket.description
        self.relayURLs = relayURLs.map(\.text)
    }

    /// What a host says of itself that is to be looked up by its node ID.
    public init(nodeID: NodeID, alpns: [String] = ALPN.http + ALPN.pairing, relayURLs: [RelayURL] = []) {
        version = Self.currentVersion
        self.nodeID = nodeID.description
        self.alpns = alpns
        addressMode = .nodeID
        ticket = nil
        self.relayURLs = relayURLs.map(\.text)
    }

    /// Checks, in this order: version, node ID, application protocols, presence of the ticket, the ticket, its node
    /// ID, relay URLs.
    ///
    /// - Parameters:
    ///   - requiredALPNs: groups of application protocols; of each group the host must offer at least one.
    ///   - allowInsecureRelay: the developer switch for `http://` and loopback relays.
    /// - Throws: `.metadata` with the first fault.
    public func validate(
        requiredALPNs: [[String]], allowInsecureRelay: Bool
    ) throws(TransportError) -> ValidatedEndpoint {
        try checkVersion()
        guard let nodeID = NodeID(nodeID) else {
            throw TransportError(.metadata(.nodeID), "the server's node ID is malformed")
        }
        guard alpns.count <= Limits.alpns, alpns.allSatisfy({ (1...Limits.alpnBytes).contains($0.utf8.count) }),
            requiredALPNs.allSatisfy({ group in group.contains(where: alpns.contains) })
        else {
            throw TransportError(
                .metadata(.alpn), "the server does not offer the tunnel protocol of this version; update both sides")
        }
        let parsedTicket = try validateTicket(of: nodeID)
        // The client contacts the ticket's relays just like the listed ones, so they are held to the same rules.
        let relays = try RelayURL.list(
            relayURLs + (parsedTicket?.relayTexts ?? []), allowInsecure: allowInsecureRelay)
        return ValidatedEndpoint(nodeID: nodeID, ticket: parsedTicket, relayURLs: relays)
    }

    /// Throws `.metadata(.version)` unless the version is the one that this program knows.
    func checkVersion() throws(TransportError) {
        guard version == Self.currentVersion else {
            throw TransportError(
                .metadata(.version), "the server describes itself in an unknown version; update Culvert on both sides")
        }
    }

    /// A ticket must be there in the mode that needs it; wherever it is there, it must be the right one.
    private func validateTicket(of nodeID: NodeID) throws(TransportError) -> EndpointTicket? {
        guard let ticket, !ticket.isEmpty else {
            guard addressMode != .ticket else {
                throw TransportError(.metadata(.ticketMissing), "the server promises a ticket and gives none")
            }
            return nil
        }
        let parsed = try EndpointTicket(text: ticket)
        guard parsed.nodeID == nodeID else {
            throw TransportError(
                .metadata(.ticketNode), "the ticket belongs to another node than the signed one; do not trust it")
        }
        return parsed
    }
}

/// Server metadata that passed every check.
public struct ValidatedEndpoint: Hashable, Sendable {
    /// Who must answer.
    public let nodeID: NodeID
    /// Where to look for it.
    public let ticket: EndpointTicket?
    /// The relays of metadata and ticket together: canonical, without duplicates, at most eight.
    public let relayURLs: [RelayURL]
}

extension ServerMetadata: Codable {
    private enum CodingKeys: String, CodingKey {
        case version
        case nodeID = "nodeId"
        case alpns
        case addressMode
        case ticket
        case relayURLs = "relayUrls"
    }

    /// Decodes the wire form. Unknown fields are ignored; a missing version means the current one.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        version = try container.decodeIfPresent(Int.self, forKey: .version) ?? Self.currentVersion
        nodeID = try container.decode(String.self, forKey: .nodeID)
        alpns = try container.decode([String].self, forKey: .alpns)
        addressMode = try container.decode(AddressMode.self, forKey: .addressMode)
        ticket = try container.decodeIfPresent(String.self, forKey: .ticket)
        relayURLs = try container.decodeIfPresent([String].self, forKey: .relayURLs) ?? []
    }

    /// Encodes the wire form; an absent ticket and an empty list of relays are left out.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(version, forKey: .version)
        try container.encode(nodeID, forKey: .nodeID)
        try container.encode(alpns, forKey: .alpns)
        try container.encode(addressMode, forKey: .addressMode)
        try container.encodeIfPresent(ticket, forKey: .ticket)
        if !relayURLs.isEmpty { try container.encode(relayURLs, forKey: .relayURLs) }
    }
}
