import CulvertCore
import CulvertIdentity
import CulvertTunnel

/// A server that this node is paired with.
public struct PairedServer: Sendable {
    /// What it is called here; unique in its store.
    public let name: String
    /// Its identity, from the signed invite.
    public let nodeID: NodeID
    /// When it was paired.
    public let addedAt: UnixTime

    /// How to reach it, from the signed invite.
    let metadata: ServerMetadata
    /// Its ways by HTTPS, from the signed invite.
    let http: HTTPTransport?
    /// What the device token is good for.
    let transports: CredentialTransports
    /// What opens its tunnel. Never printed.
    let deviceToken: DeviceToken

    /// The checked form of how to reach it; what was fine when it was paired may not be now, such as an insecure relay.
    /// Throws `metadata`.
    func endpoint(allowInsecureRelay: Bool) throws(TransportError) -> ValidatedEndpoint {
        try metadata.validate(requiredALPNs: [], allowInsecureRelay: allowInsecureRelay)
    }

    /// The direct addresses in its ticket.
    var addresses: [SocketAddress] {
        metadata.ticket.flatMap { try? EndpointTicket(text: $0) }?.directAddresses ?? []
    }

    /// The tunnel protocol to ask for: the first of ours that it offers.
    var tunnelALPN: String {
        ALPN.http.first { metadata.alpns.contains($0) } ?? ALPN.http[0]
    }
}

/// A paired server as its file holds it, version 1.
struct PairedServerFile: Codable {
    static let version = 1

    var v: Int
    var name: String
    var nodeID: NodeID
    var addedAt: UnixTime
    var metadata: ServerMetadata
    var http: HTTPTransport?
    var credentialTransports: [String]
    var deviceToken: String

    init(_ server: PairedServer) {
        v = Self.version
        name = server.name
        nodeID = server.nodeID
        addedAt = server.addedAt
        metadata = server.metadata
        http = server.http
        credentialTransports = server.transports.wire
        deviceToken = server.deviceToken.text
    }

    /// The server; nil when the file holds nonsense or is of another version.
    var server: PairedServer? {
        guard v == Self.version, let token = DeviceToken(deviceToken) else { return nil }
        return PairedServer(
            name: name, nodeID: nodeID, addedAt: addedAt, metadata: metadata, http: http,
            transports: CredentialTransports(wire: credentialTransports), deviceToken: token)
    }
}
