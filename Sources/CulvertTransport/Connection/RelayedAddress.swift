import CulvertCore

/// Addresses for paths through relays. ngtcp2 knows socket addresses only, so each relay gets one inside this process
/// for our side, and each peer behind it one for the other side: unique-local IPv6 (RFC 4193) under a prefix of our
/// own. None of them is ever sent to, believed of, or accepted from a network.
package enum RelayedAddress {
    /// "culv" behind the byte of locally assigned addresses.
    private static let prefix: UInt64 = 0xfd63_756c << 32
    private static let prefixMask: UInt64 = 0xffff_ffff << 32
    /// Any will do but 0, which means "unknown" in places.
    private static let port: UInt16 = 1

    /// Our side of all paths through the relay with this number.
    package static func local(relay: UInt32) -> SocketAddress { address(relay, 0) }

    /// The side of a peer, numbered from 1 among those behind a relay.
    package static func remote(relay: UInt32, peer: UInt64) -> SocketAddress { address(relay, peer) }

    /// The numbers of relay and peer; nil for an address of a network.
    package static func numbers(_ address: SocketAddress) -> (relay: UInt32, peer: UInt64)? {
        guard case .v6(let high, let low) = address.ip, high & prefixMask == prefix else { return nil }
        return (UInt32(truncatingIfNeeded: high), low)
    }

    private static func address(_ relay: UInt32, _ peer: UInt64) -> SocketAddress {
        SocketAddress(.v6(prefix | UInt64(relay), peer), port: port)
    }
}

extension SocketAddress {
    /// Whether it stands for a peer behind a relay, or our side of such a path.
    package var isRelayed: Bool { RelayedAddress.numbers(self) != nil }
}
