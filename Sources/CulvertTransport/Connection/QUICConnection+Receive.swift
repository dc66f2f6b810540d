import CNgtcp2
import CulvertCore

extension QUICConnection {
    /// What the endpoint has to do after a datagram.
    enum ReceiveOutcome {
        case taken
        /// The client has to prove its address first; the connection is to be dropped.
        case needsRetry
    }

    /// Takes a datagram that arrived at `now` on the path that `path` names in ngtcp2's form.
    func receive(_ datagram: UnsafeRawBufferPointer, on path: UnsafePointer<ngtcp2_path>, ecn: UInt8, now: Instant)
        -> ReceiveOutcome
    {
        switch state {
        case .closing, .ended: return .taken
        case .handshaking, .established: break
        }
        self.now = now
        var information = ngtcp2_pkt_info(ecn: UInt32(ecn))
        let result = ngtcp2_conn_read_pkt_versioned(
            handle, path, NGTCP2_PKT_INFO_VERSION, &information,
            datagram.baseAddress?.assumingMemoryBound(to: UInt8.self), datagram.count, now.nanoseconds)
        if result == NGTCP2_ERR_RETRY { return .needsRetry }
        if result != 0 { readFailed(result) }
        notePath()
        owner?.connectionWantsFlush(self)
        return .taken
    }

    /// Does what is due at `now`: acknowledgements, retransmission, keep-alive, giving up.
    package func expire(now: Instant) {
        guard end == nil else { return }
        self.now = now
        let result = ngtcp2_conn_handle_expiry(handle, now.nanoseconds)
        switch result {
        case 0: break
        case NGTCP2_ERR_IDLE_CLOSE:
            finish(.failed(TransportError(.timedOut, "the peer has fallen silent")), closePacket: nil)
        case NGTCP2_ERR_HANDSHAKE_TIMEOUT:
            finish(.failed(TransportError(.timedOut, "the peer did not answer in time")), closePacket: nil)
        default: readFailed(result)
        }
        owner?.connectionWantsFlush(self)
    }

    /// The peer sent a stateless reset (RFC 9000 section 10.3): it has lost the connection's state.
    func receiveStatelessReset() {
        finish(
            .failed(TransportError(.unavailable, "the peer has restarted and forgot the connection")), closePacket: nil)
    }

    private func readFailed(_ result: Int32) {
        switch result {
        case NGTCP2_ERR_DRAINING:
            finish(peersReason, closePacket: nil)
        case NGTCP2_ERR_DROP_CONN:
            finish(
                .failed(knownFailure ?? TransportError(.unavailable, "the connection was dropped")), closePacket: nil)
        case NGTCP2_ERR_RECV_VERSION_NEGOTIATION:
            finish(
                .failed(TransportError(.protocolViolation, "the peer does not speak QUIC version 1")), closePacket: nil)
        case NGTCP2_ERR_CRYPTO:
            let alert = ngtcp2_conn_get_tls_alert(handle)
            state = .closing(.alert(alert), .failed(knownFailure ?? Self.error(forAlert: alert, fromPeer: false)))
        case NGTCP2_ERR_CALLBACK_FAILURE where knownFailure?.kind == .alpn:
            state = .closing(.alert(Self.noApplicationProtocol), .failed(knownFailure ?? peersReason.error))
        default:
            let error = knownFailure ?? TransportError(.protocolViolation, "the peer broke a rule of QUIC")
            state = .closing(.library(result), .failed(error))
        }
    }

    /// Why the peer closed the connection, from its CONNECTION_CLOSE frame.
    private var peersReason: ConnectionEnd {
        var frame = ngtcp2_connection_close_error()
        ngtcp2_conn_get_connection_close_error(handle, &frame)
        let code = frame.error_code
        if frame.type == NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_APPLICATION {
            return .closedByPeer(CloseCode(rawValue: code))
        }
        switch code {
        // APPLICATION_ERROR is what an application's close is called before the handshake is confirmed.
        case 0, UInt64(NGTCP2_APPLICATION_ERROR):
            return .failed(TransportError(.unavailable, "the peer closed the connection"))
        case UInt64(NGTCP2_CONNECTION_REFUSED):
            return .failed(TransportError(.unavailable, "the peer takes no new connections at the moment"))
        case 0x100...0x1ff:
            return .failed(Self.error(forAlert: UInt8(truncatingIfNeeded: code), fromPeer: true))
        default: return .failed(TransportError(.protocolViolation, "the peer says that we broke a rule of QUIC"))
        }
    }

    /// The TLS alert for "no application protocol in common" (RFC 7301 section 3.2).
    private static let noApplicationProtocol: UInt8 = 120

    /// What a TLS alert (RFC 8446 section 6.2) means here, where certificates carry nothing but the identity.
    static func error(forAlert alert: UInt8, fromPeer: Bool) -> TransportError {
        switch alert {
        case noApplicationProtocol: TransportError(.alpn, "no application protocol in common with the peer")
        // bad_certificate, unsupported_certificate, certificate_unknown, unknown_ca, access_denied,
        // certificate_required
        case 42, 43, 46, 48, 49, 116:
            fromPeer
                ? TransportError(.peerIdentity, "the peer refused this node's identity, or was taken for another node")
                : TransportError(.peerIdentity, "the peer did not prove its identity")
        default: TransportError(.protocolViolation, "the TLS handshake failed")
        }
    }

    /// Notices that ngtcp2 moved the connection to another path.
    func notePath() {
        guard pathMayHaveChanged, end == nil else { return }
        pathMayHaveChanged = false
        guard let pointer = ngtcp2_conn_get_path(handle), let current = NetworkPath(pointer.pointee), current != path
        else { return }
        path = current
        handler?.connectionPathChanged(self)
    }
}
