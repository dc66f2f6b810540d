import CulvertIdentity

/// 16 random bytes that a server asks a client to sign, once.
package struct RelayChallenge: Hashable, Sendable {
    /// The bytes.
    package let bytes: [UInt8]

    /// A challenge; nil unless there are 16 bytes. They must come fresh from the system's random source.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == RelayLimits.challenge else { return nil }
        self.bytes = Array(bytes)
    }
}

/// How a connection is, as the relay sees it.
package struct RelayStatus: RawRepresentable, Hashable, Sendable {
    /// The byte on the wire.
    package let rawValue: UInt8

    /// The status of a byte; unknown ones are for later versions, and only logged.
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Everything is in order again.
    package static let healthy = RelayStatus(rawValue: 0)
    /// Another connection with the same node ID is newer and gets the datagrams.
    package static let sameIDConnected = RelayStatus(rawValue: 1)
    /// The client sends more than the relay allows.
    package static let rateLimited = RelayStatus(rawValue: 2)
}

/// A relay's announcement that it restarts.
package struct RelayRestart: Hashable, Sendable {
    /// How long to wait before the first attempt to connect again; whole milliseconds, at most 2^32 - 1.
    package var reconnectIn: Duration
    /// For how long to try quickly before the usual pauses apply; whole milliseconds, at most 2^32 - 1.
    package var tryFor: Duration

    /// An announcement.
    package init(reconnectIn: Duration, tryFor: Duration) {
        self.reconnectIn = reconnectIn
        self.tryFor = tryFor
    }
}

/// A frame that carries no datagrams; those are ``RelayDatagramView`` and ``RelayDatagramHeader``, because they are not
/// copied.
package enum RelayFrame: Hashable, Sendable {
    /// The server asks for a proof of the client's key.
    case serverChallenge(RelayChallenge)
    /// The client's proof: an Ed25519 signature of 64 bytes.
    case clientAuth(NodeID, signature: [UInt8])
    /// The client may use the relay.
    case serverConfirmsAuth
    /// The client may not use the relay; the text is the relay's own.
    case serverDeniesAuth(reason: String)
    /// A node that this client sent datagrams to, or got some from, has left.
    case endpointGone(PeerKey)
    /// Asks for a Pong with the same eight bytes, here as a big-endian number.
    case ping(UInt64)
    /// Answers a Ping.
    case pong(UInt64)
    /// Version 1: a problem, or that it is over, in the relay's own words.
    case health(String)
    /// The relay restarts.
    case restarting(RelayRestart)
    /// Version 2: a problem, or that it is over.
    case status(RelayStatus)

    /// The frame's type.
    package var type: RelayFrameType {
        switch self {
        case .serverChallenge: .serverChallenge
        case .clientAuth: .clientAuth
        case .serverConfirmsAuth: .serverConfirmsAuth
        case .serverDeniesAuth: .serverDeniesAuth
        case .endpointGone: .endpointGone
        case .ping: .ping
        case .pong: .pong
        case .health: .health
        case .restarting: .restarting
        case .status: .status
        }
    }

    /// How a server of `version` tells `status`: version 1 has words for it.
    package static func report(_ status: RelayStatus, version: RelayVersion) -> RelayFrame {
        switch version {
        case .v2: return .status(status)
        case .v1:
            switch status {
            case .healthy: return .health("healthy")
            case .sameIDConnected: return .health("another endpoint with this id connected")
            case .rateLimited: return .health("rate limited")
            default: return .health("unknown problem")
            }
        }
    }
}
