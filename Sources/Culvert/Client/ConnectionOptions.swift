import CulvertCore
import CulvertTunnel

/// How the loopback proxy of a connection behaves.
public struct ConnectionOptions: Sendable {
    /// The loopback port; 0 for one that is free.
    public var port: UInt16 = 0
    /// Who on this machine may use the proxy.
    public var localAuth = LocalAuth.sameUser
    /// Local connections at a time.
    public var maxConnections: Int

    /// A free port, for this user only.
    public init() {
        maxConnections = TunnelLimits.localConnections
    }
}

/// Who may use a loopback proxy. In every mode a request whose Host is not loopback is refused.
public enum LocalAuth: Sendable, CaseIterable {
    /// Whoever sends exactly one Authorization field with the device token.
    case token
    /// The Unix user who runs the proxy.
    case sameUser
    /// Whoever can reach the port.
    case open
}

/// What happens to a connection.
public enum ServerEvent: Sendable {
    /// Packets take this path.
    case path(PathEvidence)
    /// The connection was lost; it is dialled again.
    case disconnected(TransportError)
    /// The connection is back.
    case reconnected
    /// The connection is over for good. The last event.
    case failed(TransportError)
}
