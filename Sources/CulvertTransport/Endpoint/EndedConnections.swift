import CulvertCore

/// The connection IDs of connections that are over, remembered for a few probe timeouts (RFC 9000 section 10.2), so
/// that late packets are neither taken for new connections nor answered with resets.
struct EndedConnections {
    /// What is left of a connection.
    final class Remains {
        /// The CONNECTION_CLOSE to repeat; nil to stay silent because the peer knows.
        let packet: [UInt8]?
        let ids: [ConnectionID]
        let until: Instant
        fileprivate var packetsSeen = 0

        init(ids: [ConnectionID], packet: [UInt8]?, until: Instant) {
            self.ids = ids
            self.packet = packet
            self.until = until
        }
    }

    private var byID: [ConnectionID: Remains] = [:]
    private var oldestFirst: [Remains] = []

    /// Remembers the connection that had `ids`.
    mutating func remember(_ ids: [ConnectionID], closePacket: [UInt8]?, until: Instant) {
        if oldestFirst.count >= TransportLimits.endedConnections { dropOldest(TransportLimits.endedConnections / 4) }
        let remains = Remains(ids: ids, packet: closePacket, until: until)
        oldestFirst.append(remains)
        for id in ids { byID[id] = remains }
    }

    /// Forgets what `id` belonged to.
    mutating func forget(_ id: ConnectionID) {
        guard let remains = byID[id] else { return }
        for id in remains.ids { byID[id] = nil }
    }

    /// What to do with a packet.
    enum Verdict {
        /// The ID did not belong to a connection that ended lately.
        case unknown
        case ignore
        case answer([UInt8])
    }

    /// What to do with a packet for `id`. The last word is repeated for the 1st, 2nd, 4th, 8th … packet only, so that
    /// two ended peers cannot keep each other busy.
    mutating func verdict(for id: ConnectionID, now: Instant) -> Verdict {
        guard let remains = byID[id] else { return .unknown }
        guard now <= remains.until else {
            forget(id)
            return .unknown
        }
        remains.packetsSeen += 1
        let isPowerOfTwo = remains.packetsSeen & (remains.packetsSeen - 1) == 0
        guard isPowerOfTwo, let packet = remains.packet else { return .ignore }
        return .answer(packet)
    }

    private mutating func dropOldest(_ count: Int) {
        for remains in oldestFirst.prefix(count) {
            for id in remains.ids where byID[id] === remains { byID[id] = nil }
        }
        oldestFirst.removeFirst(count)
    }
}
