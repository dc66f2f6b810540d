/// Which nodes are connected to a relay, by which connection each is reached, and who is told when one leaves.
///
/// The newest connection of a node gets its datagrams; older ones stay, and take over again when it leaves. The registry
/// decides; telling the connections is for its user.
package struct RelayRegistry<Connection: AnyObject> {
    /// What a new connection means for the others of its node.
    package struct Arrival {
        /// Gets no datagrams any more: report ``RelayStatus/sameIDConnected`` to it.
        package var displaced: Connection?
        /// The oldest of too many, already taken out: close it.
        package var evicted: Connection?
    }

    /// What the end of a connection means for others.
    package struct Departure {
        /// Gets the node's datagrams again: report ``RelayStatus/healthy`` to it.
        package var restored: Connection?
        /// To be told by an `endpointGone` frame that the node has left.
        package var told: [Connection] = []
    }

    private struct Node {
        /// Oldest first; never empty.
        var connections: [Connection]
        /// To whom the node has sent datagrams.
        var sentTo: Set<PeerKey> = []
    }

    private var nodes: [PeerKey: Node] = [:]
    /// Grows whenever a route may have changed, so that users can keep the last one.
    package private(set) var generation: UInt64 = 0

    /// A registry of nobody.
    package init() {}

    /// How many nodes are connected.
    package var count: Int { nodes.count }

    /// Takes a new connection of `node`.
    package mutating func join(_ node: PeerKey, by connection: Connection) -> Arrival {
        generation += 1
        var arrival = Arrival()
        guard var entry = nodes.removeValue(forKey: node) else {
            nodes[node] = Node(connections: [connection])
            return arrival
        }
        arrival.displaced = entry.connections.last
        entry.connections.append(connection)
        if entry.connections.count > RelayServerLimits.connectionsPerNode {
            arrival.evicted = entry.connections.removeFirst()
        }
        nodes[node] = entry
        return arrival
    }

    /// Takes out a connection; does nothing for one that is not there.
    package mutating func leave(_ node: PeerKey, by connection: Connection) -> Departure {
        guard var entry = nodes[node], let index = entry.connections.firstIndex(where: { $0 === connection }) else {
            return Departure()
        }
        generation += 1
        let wasActive = index == entry.connections.count - 1
        entry.connections.remove(at: index)
        guard let active = entry.connections.last else {
            nodes[node] = nil
            return Departure(told: entry.sentTo.compactMap { nodes[$0]?.connections.last })
        }
        nodes[node] = entry
        return Departure(restored: wasActive ? active : nil)
    }

    /// The connection that gets datagrams from `source` for `destination`, which is remembered for the end of `source`;
    /// nil when the destination is not connected.
    package mutating func route(from source: PeerKey, to destination: PeerKey) -> Connection? {
        guard let target = nodes[destination]?.connections.last else { return nil }
        remember(destination, in: source)
        return target
    }

    private mutating func remember(_ destination: PeerKey, in source: PeerKey) {
        guard let node = nodes[source], !node.sentTo.contains(destination) else { return }
        if node.sentTo.count >= RelayServerLimits.rememberedPeers {
            // Those who left need no word; with a full list of those who stay, the newest is not told.
            let present = node.sentTo.filter { nodes[$0] != nil }
            nodes[source]?.sentTo = present
            guard present.count < RelayServerLimits.rememberedPeers else { return }
        }
        nodes[source]?.sentTo.insert(destination)
    }
}
