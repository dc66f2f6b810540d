import CulvertRelay

/// Numbers for the peers behind one relay, from 1 on and never used twice, so that each can have an address.
struct RelayPeerTable {
    private let limit: Int
    private var numbers: [PeerKey: UInt64] = [:]
    private var peers: [UInt64: PeerKey] = [:]
    private var last: UInt64 = 0

    /// A table for at most `limit` peers.
    init(limit: Int = RelayClientLimits.peers) {
        self.limit = limit
    }

    /// How many peers have a number.
    var count: Int { numbers.count }

    /// The peer with this number; nil when it was forgotten.
    func peer(_ number: UInt64) -> PeerKey? { peers[number] }

    /// The number of `peer`. In a full table those are forgotten first that are not in `used`, which is asked for only
    /// then; nil when everyone is.
    mutating func number(of peer: PeerKey, used: () -> Set<UInt64>) -> UInt64? {
        if let number = numbers[peer] { return number }
        if numbers.count >= limit {
            let used = used()
            numbers = numbers.filter { used.contains($0.value) }
            peers = peers.filter { used.contains($0.key) }
            guard numbers.count < limit else { return nil }
        }
        last += 1
        numbers[peer] = last
        peers[last] = peer
        return last
    }
}
