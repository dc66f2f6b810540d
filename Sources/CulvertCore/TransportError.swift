/// What went wrong, in a closed set of kinds that telemetry may count and policy may decide on.
///
/// A reason is a literal of this program, so no address, token, node ID or relay URL can be in it.
public struct TransportError: Error, Hashable, Sendable {
    /// The kind, which decides about fall-back, exit codes and telemetry.
    public let kind: ErrorKind
    /// One line for people: what happened and, where it helps, what to do.
    public let reason: String

    /// An error of `kind`, explained by the literal `reason`.
    public init(_ kind: ErrorKind, _ reason: StaticString) {
        self.kind = kind
        self.reason = reason.description
    }

    /// The same reason as a failure of availability: for a helper of which there may be others, such as a relay.
    package var asUnavailable: TransportError {
        TransportError(kind: .unavailable, reason: reason)
    }

    private init(kind: ErrorKind, reason: String) {
        self.kind = kind
        self.reason = reason
    }
}

/// The closed set of kinds of failure.
public enum ErrorKind: Hashable, Sendable {
    /// The peer could not be reached.
    case unavailable
    /// The peer did not answer in time.
    case timedOut
    /// A token was missing, unknown, expired or used.
    case authentication
    /// The QUIC peer proved another node ID than the expected one, or none.
    case peerIdentity
    /// The HTTPS peer's certificate is not the paired one.
    case tlsIdentity
    /// No application protocol in common.
    case alpn
    /// A frame or head could not be parsed.
    case framing
    /// The peer broke a rule of QUIC or of a protocol above it.
    case protocolViolation
    /// The invite or the server metadata was refused.
    case metadata(InviteFault)
    /// The host revoked this device.
    case revoked
    /// A limit was reached.
    case limit
    /// The loopback port could not be opened.
    case localListener
    /// Local state could not be read or written.
    case state
    /// The operation was given up by its caller.
    case cancelled

    /// Whether another route may be tried. Only failures of availability may fall back: identity, authentication
    /// and protocol failures fail closed.
    public var mayFallBack: Bool {
        switch self {
        case .unavailable, .timedOut: true
        case .authentication, .peerIdentity, .tlsIdentity, .alpn, .framing, .protocolViolation, .metadata, .revoked,
            .limit, .localListener, .state, .cancelled:
            false
        }
    }

    /// The stable word for the kind in JSON output and metrics.
    public var name: String {
        switch self {
        case .unavailable: "unavailable"
        case .timedOut: "timed-out"
        case .authentication: "authentication"
        case .peerIdentity: "peer-identity"
        case .tlsIdentity: "tls-identity"
        case .alpn: "alpn"
        case .framing: "framing"
        case .protocolViolation: "protocol-violation"
        case .metadata: "metadata"
        case .revoked: "revoked"
        case .limit: "limit"
        case .localListener: "local-listener"
        case .state: "state"
        case .cancelled: "cancelled"
        }
    }
}

/// Why an invite or its server metadata was refused, in the order in which they are checked.
public enum InviteFault: String, Hashable, Sendable, CaseIterable {
    /// The link or the envelope is not of the form this program knows.
    case envelope
    /// The signature algorithm is not `ed25519`.
    case algorithm
    /// The signature does not match the payload and the key.
    case signature
    /// The fingerprint is not that of the key.
    case fingerprint
    /// The payload is of another version.
    case version
    /// The invite has expired.
    case expired
    /// The invite's dates disagree with this machine's clock.
    case clock
    /// The invite offers no tunnel.
    case noTunnel
    /// The node ID is malformed.
    case nodeID
    /// The required application protocol is not offered.
    case alpn
    /// The address mode asks for a ticket and there is none.
    case ticketMissing
    /// The ticket is malformed.
    case ticket
    /// The ticket names another node.
    case ticketNode
    /// A relay URL is not canonical, or not allowed.
    case relayURL
}
