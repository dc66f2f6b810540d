/// Which kinds of path an endpoint may use.
public enum PathPolicy: String, Hashable, Sendable, CaseIterable {
    /// Direct ones, and relays where none works.
    case auto
    /// Direct ones only.
    case direct
    /// Relays only.
    case relay

    /// Whether datagrams may go straight to the peer.
    package var allowsDirect: Bool { self != .relay }
    /// Whether datagrams may go through relays.
    package var allowsRelay: Bool { self != .direct }
}
