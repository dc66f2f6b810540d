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

    init(_ connection: QUICConnection, adapter: HostAdapter) {
        self.connection = connection
        self.adapter = adapter
    }

    var streamCount: Int { streams.count }

    var targetAddresses: [StreamAddress] { adapter.targetAddresses }

    func targetFailed() {
        adapter.targetFailed()
    }

    func close(_ code: CloseCode) {
        connection.close(code)
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
            adapter.note(deviceID: device)
            if deviceID == nil {
                deviceID = device
                adapter.notify(.connected(deviceID: device, roundTripTime: connection.roundTripTime))
            }
        // The client learns it now, and not only when this stream is refused.
        case .revoked: connection.close(.revoked)
        case .unknown, .forbiddenTransport, .bindingMissing, .bindingMismatch: break
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
        case let alpn? where ALPN.http.contains(alpn): service = .tunnel
        case let alpn? where ALPN.pairing.contains(alpn): service = .pairing
        default: connection.close(.refused)
        }
    }

    func connection(_ connection: QUICConnection, accepted stream: QUICStream) {
        switch service {
        case .tunnel:
            guard adapter.mayAccept(streamsOnConnection: streams.count) else { return stream.refuse(.limit) }
            let host = HostStream(stream, connection: self, loop: adapter.loop, pool: adapter.pool)
            streams[ObjectIdentifier(host)] = host
            stream.handler = host
        case .pairing:
            stream.handler = PairingStream(stream, loop: adapter.loop) { [weak self] request in
                guard let self, let node = self.connection.peer else { return .refused(.malformed) }
                return self.adapter.pair(request, node: node)
            }
        case .undecided: stream.reset(.notNeeded)
        }
    }

    func connectionMayOpenStreams(_ connection: QUICConnection) {}

    func connectionPathChanged(_ connection: QUICConnection) {
        guard let deviceID else { return }
        adapter.notify(.pathChanged(deviceID: deviceID, roundTripTime: connection.roundTripTime))
    }

    func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd) {
        adapter.ended(self)
        if let deviceID { adapter.notify(.disconnected(deviceID: deviceID)) }
    }
}
