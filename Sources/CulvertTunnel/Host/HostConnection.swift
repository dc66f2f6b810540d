import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTransport

/// One client's connection to the host: decides by the application protocol what its streams are, and remembers
/// which device it belongs to. Confined to the loop.
final class HostConnection {
    private enum Service {
        case undecided, tunnel, pairing
    }

    /// The device that showed its token on this connection.
    private(set) var deviceID: String?

    private let connection: QUICConnection
    private unowned let adapter: HostAdapter
    private var service = Service.undecided
    private var streams: [ObjectIdentifier: HostStream] = [:]
    /// The token that was found good. The verdict holds while the connection lives: revocation closes it.
    private var goodToken: TokenHash?
    /// Ends a connection that belongs to no device.
    private var stay: LoopTimer?
    private var sawStream = false

    init(_ connection: QUICConnection, adapter: HostAdapter) {
        self.connection = connection
        self.adapter = adapter
    }

    var streamCount: Int { streams.count }

    /// Whether the connection belongs to no device and is to end soon.
    var isStranger: Bool { stay != nil }

    var targetAddresses: [StreamAddress] { adapter.targetAddresses }

    func targetFailed() {
        adapter.targetFailed()
    }

    func close(_ code: CloseCode) {
        connection.close(code)
    }

    /// Looks the node up when it connects, so that a device shows as connected, and is cut off, before its first
    /// request. Strangers may stay for a moment: their streams are told why they are refused.
    private func recognise() {
        guard let node = connection.peer else { return }
        do {
            switch try adapter.store.binding(of: node.bytes) {
            case .device(let device): belongs(to: device)
            case .revoked: connection.close(.revoked)
            case .none: limitStay(TunnelLimits.silentStrangerTime)
            }
        } catch {
            adapter.notify(.failed(error))
        }
    }

    private func belongs(to device: String) {
        guard deviceID != device else { return }
        stay?.disarm()
        stay = nil
        deviceID = device
        adapter.note(deviceID: device)
        adapter.notify(.connected(deviceID: device, path: connection.pathState))
    }

    private func limitStay(_ time: Duration) {
        guard adapter.strangers < TunnelLimits.strangers else { return connection.close(.refused) }
        let timer = LoopTimer(loop: adapter.loop) { [weak self] in self?.connection.close(.unknownDevice) }
        stay = timer
        timer.arm(at: adapter.loop.now + time)
    }

    /// Judges a stream's preface; nil lets it pass.
    func authorize(_ preface: TunnelPreface) -> Refusal? {
        guard let node = connection.peer else { return .bindingMissing }
        let token = TokenHash(ofText: preface.deviceToken)
        if let deviceID, token == goodToken {
            adapter.note(deviceID: deviceID)
            return nil
        }
        let verdict: HostStore.Authorization
        do {
            verdict = try adapter.store.authorize(tokenHash: token.bytes, nodeID: node.bytes)
        } catch {
            adapter.notify(.failed(error))
            return .limit
        }
        switch verdict {
        case .allowed(let device):
            goodToken = token
            belongs(to: device)
        case .unknown, .revoked, .forbiddenTransport, .bindingMissing, .bindingMismatch: break
        }
        return verdict.refusal
    }

    func ended(_ stream: HostStream) {
        guard streams.removeValue(forKey: ObjectIdentifier(stream)) != nil else { return }
        adapter.streamEnded()
    }
}

extension HostConnection: ConnectionHandler {
    func connectionEstablished(_ connection: QUICConnection) {
        switch connection.alpn {
        case let alpn? where ALPN.http.contains(alpn):
            service = .tunnel
            recognise()
        case let alpn? where ALPN.pairing.contains(alpn):
            service = .pairing
            limitStay(TunnelLimits.strangerTime)
        default: connection.close(.refused)
        }
    }

    func connection(_ connection: QUICConnection, accepted stream: QUICStream) {
        switch service {
        case .tunnel:
            guard adapter.isAccepting else { return stream.refuse(.hostUnreachable) }
            if !sawStream { stay?.arm(at: adapter.loop.now + TunnelLimits.strangerTime) }
            sawStream = true
            let host = HostStream(stream, connection: self, loop: adapter.loop, pool: adapter.pool)
            streams[ObjectIdentifier(host)] = host
            stream.handler = host
        case .pairing:
            stream.handler = PairingStream(stream, loop: adapter.loop) {
                [unowned adapter, unowned connection] request in
                adapter.pair(request, on: connection)
            } record: { [unowned adapter, unowned connection] decision in
                adapter.record(decision, on: connection)
            }
        case .undecided: stream.reset(.notNeeded)
        }
    }

    func connectionPathChanged(_ connection: QUICConnection) {
        guard let deviceID else { return }
        adapter.notify(.pathChanged(deviceID: deviceID, path: connection.pathState))
    }

    func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd) {
        stay?.disarm()
        stay = nil
        adapter.ended(self)
        if let deviceID { adapter.notify(.disconnected(deviceID: deviceID)) }
    }
}
