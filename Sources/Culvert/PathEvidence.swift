import CulvertTransport

/// How a connection's packets travel, and how long a round trip takes.
public struct PathEvidence: Hashable, Sendable {
    /// The kind of the selected path.
    public let kind: PathKind
    /// The smoothed round-trip time.
    public let rtt: Duration

    /// Evidence of a path of `kind` with a round-trip time of `rtt`.
    public init(kind: PathKind, rtt: Duration) {
        self.kind = kind
        self.rtt = rtt
    }
}

extension PathEvidence {
    /// What is known of a path.
    init(_ state: PathState) {
        self.init(kind: state.isRelayed ? .relay : .direct, rtt: state.roundTripTime)
    }
}

/// The kinds of path.
public enum PathKind: String, Hashable, Sendable, CaseIterable {
    /// Straight to the peer.
    case direct
    /// Through a relay.
    case relay
    /// Not known yet.
    case unknown
}
