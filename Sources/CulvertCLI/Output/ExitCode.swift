import CulvertCore

/// What the process tells the script that started it.
enum ExitCode: Int32, Sendable, CaseIterable {
    case success = 0
    /// Anything that has no code of its own: local state, a port in use, a peer that breaks the protocol.
    case failure = 1
    /// The command line cannot be understood.
    case usage = 2
    /// The peer cannot be reached.
    case unreachable = 3
    /// The host refused this device or its invite, or revoked it.
    case refused = 4
    /// The peer, or who signed the invite, is not who it should be.
    case untrusted = 5
    /// A signal came before the command was ready, so what was asked for is not there. Shells give it to Ctrl-C.
    case interrupted = 130

    /// What the manual says about the code.
    var meaning: String {
        switch self {
        case .success: "success, also after a host or a connection that was ready is stopped by a signal"
        case .failure: "any other failure, such as unreadable state or a port in use; also a second signal"
        case .usage: "the command line cannot be understood"
        case .unreachable: "the other side cannot be reached"
        case .refused: "refused: the invite has expired or was used, too many tries failed, or the device was revoked"
        case .untrusted: "the other side's identity, or the invite's signature, is not the right one"
        case .interrupted: "stopped by a signal before the host or the connection was ready"
        }
    }

    /// The code for a kind of failure.
    init(_ kind: ErrorKind) {
        self =
            switch kind {
            case .unavailable, .timedOut: .unreachable
            case .authentication, .revoked: .refused
            case .peerIdentity, .tlsIdentity: .untrusted
            case .metadata(let fault): ExitCode(fault)
            case .alpn, .framing, .protocolViolation, .limit, .localListener, .state, .cancelled: .failure
            }
    }

    /// The code for a refused invite.
    private init(_ fault: InviteFault) {
        self =
            switch fault {
            case .signature, .fingerprint, .ticketNode: .untrusted
            case .expired, .clock: .refused
            case .envelope: .usage
            case .algorithm, .version, .noTunnel, .nodeID, .alpn, .ticketMissing, .ticket, .relayURL: .failure
            }
    }
}
