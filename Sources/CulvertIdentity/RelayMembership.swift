import CulvertCore

/// Which relays an endpoint uses, and for whom.
///
/// Relays are owned by signed node IDs: the desired set is the union over the active owners and the configured relays.
/// A URL stays as long as one owner uses it. What an endpoint was told belongs to that endpoint: its successor is told
/// everything again. The value decides; whoever owns the endpoint performs the actions, in their order.
public struct RelayMembership: Sendable {
    /// One endpoint after another: what is said about an earlier one does not touch the present one.
    public struct Generation: Hashable, Comparable, Sendable {
        fileprivate var number: UInt64

        /// Earlier before later.
        public static func < (earlier: Generation, later: Generation) -> Bool { earlier.number < later.number }
    }

    /// Something to do to the endpoint of a generation, and to no other.
    public struct Action: Hashable, Sendable {
        /// What to do.
        public enum Verb: Hashable, Sendable {
            /// Make the relay usable.
            case install
            /// Stop using the relay.
            case remove
        }

        /// What to do.
        public let verb: Verb
        /// To which relay.
        public let relay: RelayURL
        /// On whose endpoint.
        public let generation: Generation
    }

    /// Whether the relays are a client's or a host's, which differ in what configured relays mean.
    public enum Side: Hashable, Sendable {
        /// Configured relays add to the defaults.
        case client
        /// Configured relays replace the defaults, unless there are none.
        case host
    }

    private let configured: Set<RelayURL>
    private var owners: [NodeID: Set<RelayURL>] = [:]
    private var installed: Set<RelayURL> = []
    private var generation: Generation?
    private var latest = Generation(number: 0)

    /// A membership without owners and without an endpoint.
    public init(defaults: [RelayURL] = [], custom: [RelayURL] = [], side: Side) {
        switch side {
        case .client: configured = Set(defaults).union(custom)
        case .host: configured = Set(custom.isEmpty ? defaults : custom)
        }
    }

    /// Every relay that is wanted, in the order of the text.
    public var desired: [RelayURL] {
        Self.sorted(owners.values.reduce(configured) { $0.union($1) })
    }

    /// The endpoint that actions are for at present; nil when there is none.
    public var currentGeneration: Generation? { generation }

    /// Whose relays are in the set.
    public var activeOwners: Set<NodeID> { Set(owners.keys) }

    /// Makes `relays` the relays of `owner`, in place of what they were. No relay at all is fine: the owner is reached
    /// in other ways.
    ///
    /// - Returns: what to do now; removals come first.
    /// - Throws: `.metadata(.relayURL)` for more than eight different relays; nothing changes then.
    public mutating func set(_ relays: [RelayURL], for owner: NodeID) throws(TransportError) -> [Action] {
        let unique = Set(relays)
        guard unique.count <= Limits.relayURLs else {
            throw TransportError(.metadata(.relayURL), "there are more than 8 relay URLs")
        }
        owners[owner] = unique
        return reconcile()
    }

    /// Ends the ownership of `owner`. Relays that nobody else uses are removed.
    public mutating func remove(_ owner: NodeID) -> [Action] {
        guard owners.removeValue(forKey: owner) != nil else { return [] }
        return reconcile()
    }

    /// A new endpoint is there, with no relay: installs the whole desired set in it. What was for the endpoint before
    /// is void.
    public mutating func endpointStarted() -> [Action] {
        latest.number += 1
        generation = latest
        installed = []
        return reconcile()
    }

    /// The endpoint is gone. The desired set stays for the next one.
    public mutating func endpointStopped() {
        generation = nil
    }

    /// An installation did not work. It is asked for again with the next change, or by ``retry()``. A report about an
    /// endpoint of the past is ignored.
    public mutating func failed(_ action: Action) {
        guard action.verb == .install, action.generation == generation else { return }
        installed.remove(action.relay)
    }

    /// What is wanted and not installed, to be tried again.
    public mutating func retry() -> [Action] {
        reconcile()
    }

    /// The relays through which `owner` may be dialed: its own and the configured ones. It may be dialed only with all
    /// of its own installed in the endpoint that dials.
    ///
    /// - Throws: `cancelled` without an endpoint, `unavailable` when a relay is not installed. Neither says which.
    public func relays(toDial owner: NodeID) throws(TransportError) -> [RelayURL] {
        guard generation != nil else {
            throw TransportError(.cancelled, "the endpoint is closed; try again when it has started")
        }
        guard owners[owner, default: []].isSubset(of: installed) else {
            throw TransportError(.unavailable, "a relay of this server could not be set up; try again")
        }
        return Self.sorted(configured.union(owners[owner, default: []]).intersection(installed))
    }

    private mutating func reconcile() -> [Action] {
        guard let generation else { return [] }
        let wanted = Set(desired)
        let obsolete = Self.sorted(installed.subtracting(wanted))
        let missing = Self.sorted(wanted.subtracting(installed))
        installed = wanted
        return obsolete.map { Action(verb: .remove, relay: $0, generation: generation) }
            + missing.map { Action(verb: .install, relay: $0, generation: generation) }
    }

    private static func sorted(_ relays: Set<RelayURL>) -> [RelayURL] {
        relays.sorted { $0.text < $1.text }
    }
}
