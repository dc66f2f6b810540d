/// An end of a relay connection.
package enum RelaySide: Hashable, Sendable, CaseIterable {
    /// An endpoint that uses the relay.
    case client
    /// The relay.
    case server
}

/// Where a relay connection stands.
package enum RelayPhase: Hashable, Sendable, CaseIterable {
    /// The client has not proved its key yet.
    case handshake
    /// The server has confirmed the client.
    case established
}

/// What kind of frame it is: the first byte. On the wire it is a QUIC variable-length integer (RFC 9000 section 16), of
/// which every known value takes one byte; a longer encoding is no known type here.
package enum RelayFrameType: UInt8, CaseIterable, Sendable {
    /// Server: sign these bytes.
    case serverChallenge = 0
    /// Client: the signature.
    case clientAuth = 1
    /// Server: welcome.
    case serverConfirmsAuth = 2
    /// Server: no, and why.
    case serverDeniesAuth = 3
    /// Client: one datagram for a node.
    case clientToRelayDatagram = 4
    /// Client: datagrams of one size for a node.
    case clientToRelayDatagramBatch = 5
    /// Server: one datagram of a node.
    case relayToClientDatagram = 6
    /// Server: datagrams of one size of a node.
    case relayToClientDatagramBatch = 7
    /// Server: a node has left.
    case endpointGone = 8
    /// Both: answer this.
    case ping = 9
    /// Both: the answer.
    case pong = 10
    /// Server, version 1: a problem, as text.
    case health = 11
    /// Server: it restarts.
    case restarting = 12
    /// Server, version 2: a problem, as a number.
    case status = 13
}

/// Who sends a frame, when, and in which version: what decides whether its type is allowed.
package struct RelayRules: Hashable, Sendable {
    /// Who sends.
    package var sender: RelaySide
    /// When.
    package var phase: RelayPhase
    /// The agreed version.
    package var version: RelayVersion

    /// Rules for what `sender` sends in `phase` of a connection of `version`.
    package init(sender: RelaySide, phase: RelayPhase, version: RelayVersion) {
        self.sender = sender
        self.phase = phase
        self.version = version
    }

    /// Whether a frame of `type` may come.
    package func allow(_ type: RelayFrameType) -> Bool {
        switch (phase, sender) {
        case (.handshake, .client):
            type == .clientAuth
        case (.handshake, .server):
            type == .serverChallenge || type == .serverConfirmsAuth || type == .serverDeniesAuth
        case (.established, .client):
            type == .clientToRelayDatagram || type == .clientToRelayDatagramBatch || type == .ping || type == .pong
        case (.established, .server):
            switch type {
            case .relayToClientDatagram, .relayToClientDatagramBatch, .endpointGone, .ping, .pong, .restarting: true
            case .health: version == .v1
            case .status: version == .v2
            case .serverChallenge, .clientAuth, .serverConfirmsAuth, .serverDeniesAuth, .clientToRelayDatagram,
                .clientToRelayDatagramBatch:
                false
            }
        }
    }
}
