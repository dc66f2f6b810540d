import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay
import CulvertRelayClient
import CulvertTransport
import Glibc

/// The relays of one endpoint: performs what ``RelayMembership`` decides. Confined to the loop.
final class EndpointRelays {
    let carrier: RelayCarrier
    let credentials: RelayCredentials
    private let policy: PathPolicy
    private var membership: RelayMembership
    /// How often each owner is in use: several connections may go to one server.
    private var uses: [NodeID: Int] = [:]

    /// The relays of the endpoint that `driver` has just started.
    init(_ options: RelayOptions, side: RelayMembership.Side, key: SecretKey, driver: EndpointDriver, pool: ChunkPool) {
        policy = options.path
        membership = RelayMembership(custom: options.relays, side: side)
        credentials = RelayCredentials(
            key: key, token: options.token, authorities: options.authorities,
            proxies: ProxySettings(environment: Self.environment))
        carrier = RelayCarrier(for: driver, credentials, pool: pool)
        perform(membership.endpointStarted())
    }

    /// Installs the relays of `owner` until as many calls of ``release(_:)``. Throws `metadata` for too many.
    func acquire(_ relays: [RelayURL], for owner: NodeID) throws(TransportError) {
        perform(try membership.set(relays, for: owner))
        uses[owner, default: 0] += 1
    }

    /// Installs the relays of `owner` in place of those before, as far as one owner may have so many.
    func replace(_ relays: [RelayURL], of owner: NodeID) {
        // Fails for too many only.
        if let actions = try? membership.set(Array(relays.prefix(RelayOptions.maximumRelays)), for: owner) {
            perform(actions)
        }
    }

    /// One use of the owner's relays is over.
    func release(_ owner: NodeID) {
        guard let count = uses[owner] else { return }
        uses[owner] = count > 1 ? count - 1 : nil
        if count == 1 { perform(membership.remove(owner)) }
    }

    /// Where to dial `node`, in this order: its own addresses first, as relays are for when there is no direct way; but
    /// many dead ones must not hold the relays up.
    ///
    /// Throws `unavailable` when only relays may be used and none is known, or when one could not be set up.
    func addresses(of node: NodeID, direct: [SocketAddress]) throws(TransportError) -> [SocketAddress] {
        guard policy.allowsRelay else { return direct }
        let relays = try membership.relays(toDial: node).compactMap { carrier.address(of: node, via: $0) }
        guard policy.allowsDirect else {
            guard !relays.isEmpty else { throw Self.noRelay }
            return relays
        }
        return direct.prefix(Self.directFirst) + relays + direct.dropFirst(Self.directFirst)
    }

    /// Closes the connections to all relays.
    func close() {
        membership.endpointStopped()
        carrier.close()
    }

    private func perform(_ actions: [RelayMembership.Action]) {
        for action in actions {
            switch action.verb {
            case .install: carrier.install(action.relay)
            case .remove: carrier.remove(action.relay)
            }
        }
    }

    private static var environment: [String: String] {
        var variables: [String: String] = [:]
        for name in ProxySettings.variables {
            if let value = getenv(name) { variables[name] = String(cString: value) }
        }
        return variables
    }

    /// Direct addresses that are tried before relays; a machine has two or three.
    private static let directFirst = 4
    private static let noRelay = TransportError(
        .unavailable, "no relay of this server is known; name one with --relay, or do without --path relay")
}
