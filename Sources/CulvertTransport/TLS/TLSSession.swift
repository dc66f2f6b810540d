import CGnuTLS
import CNgtcp2
import CNgtcp2Crypto
import CulvertCore
import CulvertIdentity

/// Owner of one TLS 1.3 handshake for QUIC: raw Ed25519 keys in both directions, ALPN mandatory, no tickets, no 0-RTT.
final class TLSSession {
    let handle: gnutls_session_t
    /// GnuTLS keeps a pointer to the credentials, so they live as long as the session.
    private let credentials: NodeCredentials

    /// TLS 1.3 with what iroh offers: Ed25519 signatures, raw keys, AES-GCM first because processors accelerate it.
    private static let priorities = """
        NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:\
        -GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:-SIGN-ALL:+SIGN-EDDSA-ED25519:\
        -CTYPE-ALL:+CTYPE-SRV-RAWPK:+CTYPE-CLI-RAWPK:%DISABLE_TLS13_COMPAT_MODE
        """

    /// A session for one connection. `connectionReference` is what ngtcp2's GnuTLS glue finds its connection by; it
    /// must outlive the session.
    init(
        isServer: Bool, credentials: NodeCredentials, alpns: [String],
        connectionReference: UnsafeMutablePointer<ngtcp2_crypto_conn_ref>
    ) throws(TransportError) {
        let unusable = TransportError(.state, "GnuTLS could not start a TLS session: its settings are not supported")
        let flags =
            isServer
            ? [GNUTLS_SERVER, GNUTLS_ENABLE_RAWPK, GNUTLS_NO_TICKETS, GNUTLS_NO_AUTO_SEND_TICKET]
            : [GNUTLS_CLIENT, GNUTLS_ENABLE_RAWPK, GNUTLS_NO_TICKETS]
        var session: gnutls_session_t?
        guard gnutls_init(&session, flags.reduce(0) { $0 | $1.rawValue }) == GNUTLS_E_SUCCESS, let session else {
            throw unusable
        }
        handle = session
        self.credentials = credentials
        guard gnutls_priority_set_direct(session, Self.priorities, nil) == GNUTLS_E_SUCCESS,
            gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(credentials.handle))
                == GNUTLS_E_SUCCESS,
            Self.offer(alpns, in: session),
            (isServer
                ? ngtcp2_crypto_gnutls_configure_server_session(session)
                : ngtcp2_crypto_gnutls_configure_client_session(session)) == 0
        else { throw unusable }
        gnutls_session_set_ptr(session, connectionReference)
        if isServer { gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE) }
        gnutls_session_set_verify_function(session) { session in
            guard let session, let connection = QUICConnection.from(gnutls_session_get_ptr(session)) else {
                return GNUTLS_E_CERTIFICATE_ERROR
            }
            return connection.verifyPeer(TLSSession.peer(of: session)) ? 0 : GNUTLS_E_CERTIFICATE_ERROR
        }
    }

    deinit {
        gnutls_deinit(handle)
    }

    private static func offer(_ alpns: [String], in session: gnutls_session_t) -> Bool {
        var names = alpns.flatMap(\.utf8)
        return names.withUnsafeMutableBytes { bytes in
            var start = 0
            var protocols = alpns.map { alpn in
                defer { start += alpn.utf8.count }
                return datum(UnsafeMutableRawBufferPointer(rebasing: bytes[start..<start + alpn.utf8.count]))
            }
            let mandatory = UInt32(GNUTLS_ALPN_MANDATORY.rawValue)
            return gnutls_alpn_set_protocols(session, &protocols, UInt32(protocols.count), mandatory)
                == GNUTLS_E_SUCCESS
        }
    }

    /// The node ID in the peer's certificate; nil before it arrived or when it is not an Ed25519 raw key.
    private static func peer(of session: gnutls_session_t) -> NodeID? {
        guard gnutls_certificate_type_get2(session, GNUTLS_CTYPE_PEERS) == GNUTLS_CRT_RAWPK else { return nil }
        var count: UInt32 = 0
        guard let list = gnutls_certificate_get_peers(session, &count), count == 1, let data = list[0].data else {
            return nil
        }
        return RawPublicKey.decode(UnsafeRawBufferPointer(start: data, count: Int(list[0].size)))
    }

    /// The application protocol that both sides agreed on.
    var selectedALPN: String? {
        var selected = gnutls_datum_t()
        guard gnutls_alpn_get_selected_protocol(handle, &selected) == GNUTLS_E_SUCCESS, let data = selected.data else {
            return nil
        }
        return String(decoding: UnsafeRawBufferPointer(start: data, count: Int(selected.size)), as: UTF8.self)
    }
}
