import CulvertCore

/// What an operator may bound, with the values that hold when nothing is said.
package struct RelayServerQuota: Hashable, Sendable {
    /// Connections altogether, admitted or not: some 500 MB when all are idle, over TLS. The process must be allowed as
    /// many open files.
    package var connections = 20_000
    /// Connections of one address, an IPv6 /64 counting as one: an office behind one address, no more.
    package var connectionsPerAddress = 256
    /// Bytes per second that one client may send in the long run: a gigabit line. 0 means no limit.
    package var bytesPerSecond = 125_000_000
    /// How long a connection may take until it is admitted.
    package var handshakeTime = RelayLimits.handshakeTime

    /// The values above.
    package init() {}
}

/// Counts connections, and says whether one more is taken.
package struct ConnectionCensus: Sendable {
    private var counts: [IPAddress: Int] = [:]
    /// Connections now.
    package private(set) var total = 0

    /// Nobody is there.
    package init() {}

    /// What the census says to a connection.
    package enum Verdict: Hashable, Sendable {
        /// It is counted; call ``leave(_:)`` at its end.
        case taken
        /// There are too many.
        case full
        /// There are too many of its address.
        case addressFull
    }

    /// Counts a connection from `address`, when `quota` allows it.
    package mutating func enter(_ address: IPAddress, _ quota: RelayServerQuota) -> Verdict {
        guard total < quota.connections else { return .full }
        let place = Self.place(address)
        guard counts[place, default: 0] < quota.connectionsPerAddress else { return .addressFull }
        counts[place, default: 0] += 1
        total += 1
        return .taken
    }

    /// A connection that was taken has ended.
    package mutating func leave(_ address: IPAddress) {
        let place = Self.place(address)
        guard let count = counts[place] else { return }
        counts[place] = count > 1 ? count - 1 : nil
        total -= 1
    }

    /// Who has one IPv6 address has the whole /64 of it.
    private static func place(_ address: IPAddress) -> IPAddress {
        if case .v6(let high, _) = address.unmapped { .v6(high, 0) } else { address.unmapped }
    }
}
