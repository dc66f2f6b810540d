import CulvertCore
import CulvertIO
import CulvertTransport

/// What a host tells its owner.
package enum HostNotice: Sendable {
    /// A device was paired.
    case paired(name: String)
    /// A paired device opened a connection.
    case connected(deviceID: String, path: PathState)
    /// A paired device's connection ended.
    case disconnected(deviceID: String)
    /// A paired device's packets take another path.
    case pathChanged(deviceID: String, path: PathState)
    /// A pairing was refused.
    case refusedPairing
    /// The HTTP server does not answer.
    case targetUnreachable
    /// Something went wrong that the owner may want to know.
    case failed(TransportError)
}

/// The host's end of the tunnel: takes connections, pairs devices, and joins streams to the HTTP server. Confined to
/// the loop.
package final class HostAdapter {
    /// Where the HTTP server is; the first address that answers is used.
    package var targetAddresses: [StreamAddress]
    /// Who is told what happens.
    package var notify: (HostNotice) -> Void = { _ in }
    /// Called when no address of the target answered, so that its name may be looked up again.
    package var lookUpTarget: () -> Void = {}

    let store: HostStore
    let loop: EventLoop
    let pool: ChunkPool
    private var limiter = PairingLimiter<IPAddress>()
    private var lastSeen = LastSeen()
    /// What the owner was told lately and need not hear again.
    private var lastTold: [Repeatable: Instant] = [:]
    private var connections: [ObjectIdentifier: HostConnection] = [:]
    /// Whether new streams are served.
    private(set) var isAccepting = true
    private var onDrained: (() -> Void)?

    /// A host for the devices in `store`.
    package init(store: HostStore, targetAddresses: [StreamAddress], loop: EventLoop, pool: ChunkPool) {
        self.store = store
        self.targetAddresses = targetAddresses
        self.loop = loop
        self.pool = pool
    }

    /// The devices that have a connection now.
    package var connectedDevices: Set<String> {
        Set(connections.values.compactMap(\.deviceID))
    }

    /// Closes the connections of a device that was just revoked.
    package func disconnect(deviceID: String) {
        for connection in connections.values where connection.deviceID == deviceID {
            connection.close(.revoked)
        }
    }

    /// Takes no new streams; calls `whenDrained` once when the last stream is over, perhaps at once.
    package func stopAccepting(whenDrained: @escaping () -> Void) {
        isAccepting = false
        let others = onDrained
        onDrained = {
            others?()
            whenDrained()
        }
        streamEnded()
    }

    /// Closes all connections and stores what is not stored yet. Nobody waits for streams any more.
    package func close() {
        for connection in connections.values { connection.close(.done) }
        storeLastSeen()
        let onDrained = onDrained
        self.onDrained = nil
        onDrained?()
    }

    // MARK: Called by connections

    /// How many connections belong to no device.
    var strangers: Int { connections.values.count(where: \.isStranger) }

    /// A device was seen; written down once in a while.
    func note(deviceID: String) {
        if lastSeen.note(deviceID, at: SystemClock.wall()) { storeLastSeen() }
    }

    /// A stream is over.
    func streamEnded() {
        guard let onDrained, connections.values.allSatisfy({ $0.streamCount == 0 }) else { return }
        self.onDrained = nil
        onDrained()
    }

    /// A connection is over.
    func ended(_ connection: HostConnection) {
        connections[ObjectIdentifier(connection)] = nil
        streamEnded()
    }

    /// Answers a pairing request of the node that proved its key on `connection`.
    func pair(_ request: PairingRequest, on connection: QUICConnection) -> PairingDecision {
        guard let node = connection.peer else { return .refused(.malformed) }
        let source = connection.path.remote.ip
        guard !limiter.isBlocked(source, at: loop.now) else { return .refused(.blocked) }
        do {
            let decision = try store.pair(request, node: node, token: .generate(), now: SystemClock.wall())
            if case .granted = decision { notify(.paired(name: request.deviceName ?? DeviceName.placeholder)) }
            return decision
        } catch {
            notify(.failed(error))
            return .refused(.hostState)
        }
    }

    /// Nobody answered at the target.
    func targetFailed() {
        lookUpTarget()
        tell(.target, .targetUnreachable)
    }

    /// What happens as often as others like.
    private enum Repeatable {
        case target, pairing
    }

    private func tell(_ kind: Repeatable, _ notice: HostNotice) {
        if let last = lastTold[kind], loop.now - last < TunnelLimits.noticePause { return }
        lastTold[kind] = loop.now
        notify(notice)
    }

    /// Counts what came of a pairing stream, whatever was on it.
    func record(_ decision: PairingDecision, on connection: QUICConnection) {
        if case .refused = decision { tell(.pairing, .refusedPairing) }
        limiter.record(decision, from: connection.path.remote.ip, at: loop.now)
    }

    private func storeLastSeen() {
        do { try store.touch(lastSeen.takePending()) } catch { notify(.failed(error)) }
    }
}

extension HostAdapter: ConnectionAcceptor {
    /// Takes a client's connection in.
    package func endpoint(_ endpoint: QUICEndpoint, accepted connection: QUICConnection) {
        let host = HostConnection(connection, adapter: self)
        connection.handler = host
        connections[ObjectIdentifier(host)] = host
    }
}
