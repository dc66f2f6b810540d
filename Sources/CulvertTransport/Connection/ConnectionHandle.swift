import CNgtcp2
import CNgtcp2Crypto
import CulvertCore

/// Owner of one `ngtcp2_conn`, its TLS session and the cell through which C finds its way back to Swift.
final class ConnectionHandle {
    let connection: OpaquePointer
    let session: TLSSession
    /// At a fixed address because GnuTLS and ngtcp2 keep pointers to it.
    private let cell: Cell

    init(
        _ role: QUICConnection.Role, path: NetworkPath, alpns: [String], in surroundings: QUICConnection.Surroundings,
        now: Instant
    ) throws(TransportError) {
        let cell = Cell()
        let isServer = if case .server = role { true } else { false }
        session = try TLSSession(
            isServer: isServer, credentials: surroundings.credentials, alpns: alpns, connectionReference: cell.pointer)
        let buffer = PathBuffer()
        var connection: OpaquePointer?
        var callbacks = Self.callbacks(isServer: isServer)
        var settings = Self.settings(path: path, entropy: surroundings.entropy, now: now)
        var parameters = Self.transportParameters(maximumStreams: surroundings.maximumStreams)
        var sourceID = Self.freshID(surroundings.entropy)
        let result: Int32
        switch role {
        case .client:
            var destinationID = Self.freshID(surroundings.entropy, length: 18)
            result = ngtcp2_conn_client_new_versioned(
                &connection, &destinationID, &sourceID, buffer.pointer(to: path), NGTCP2_PROTO_VER_V1,
                NGTCP2_CALLBACKS_VERSION, &callbacks, NGTCP2_SETTINGS_VERSION, &settings,
                NGTCP2_TRANSPORT_PARAMS_VERSION, &parameters, nil, cell.pointer)
        case .server(var header, let originalID):
            parameters.original_dcid = originalID ?? header.dcid
            if originalID != nil {
                parameters.retry_scid = header.dcid
                parameters.retry_scid_present = 1
                settings.token = header.token
            }
            parameters.stateless_reset_token_present = 1
            Self.resetToken(for: &sourceID, key: surroundings.resetKey, into: &parameters.stateless_reset_token)
            result = ngtcp2_conn_server_new_versioned(
                &connection, &header.scid, &sourceID, buffer.pointer(to: path), header.version,
                NGTCP2_CALLBACKS_VERSION, &callbacks, NGTCP2_SETTINGS_VERSION, &settings,
                NGTCP2_TRANSPORT_PARAMS_VERSION, &parameters, nil, cell.pointer)
        }
        guard result == 0, let connection else {
            throw TransportError(.limit, "no memory for another connection")
        }
        self.connection = connection
        self.cell = cell
        ngtcp2_conn_set_tls_native_handle(connection, UnsafeMutableRawPointer(session.handle))
    }

    deinit {
        ngtcp2_conn_del(connection)
    }

    /// Makes C callbacks find `owner`, which owns this handle and so outlives it.
    func attach(_ owner: QUICConnection) {
        cell.pointer.pointee.user_data = Unmanaged.passUnretained(owner).toOpaque()
    }

    /// Writes the stateless reset token of one of our connection IDs (RFC 9000 section 10.3.2).
    static func resetToken<Token>(for id: inout ngtcp2_cid, key: [UInt8], into token: inout Token) {
        withUnsafeMutableBytes(of: &token) { token in
            _ = ngtcp2_crypto_generate_stateless_reset_token(
                token.baseAddress?.assumingMemoryBound(to: UInt8.self), key, key.count, &id)
        }
    }

    static func freshID(_ entropy: Entropy, length: Int = TransportLimits.connectionIDLength) -> ngtcp2_cid {
        var id = ngtcp2_cid()
        id.datalen = length
        withUnsafeMutableBytes(of: &id.data) {
            entropy.fill(UnsafeMutableRawBufferPointer(rebasing: $0.prefix(length)))
        }
        return id
    }

    private static func settings(path: NetworkPath, entropy: Entropy, now: Instant) -> ngtcp2_settings {
        var settings = ngtcp2_settings()
        ngtcp2_settings_default_versioned(NGTCP2_SETTINGS_VERSION, &settings)
        settings.initial_ts = now.nanoseconds
        settings.cc_algo = NGTCP2_CC_ALGO_CUBIC
        settings.handshake_timeout = UInt64(TransportLimits.handshakeTimeout.nanoseconds)
        settings.max_window = TransportLimits.maximumConnectionWindow
        settings.max_stream_window = TransportLimits.maximumStreamWindow
        settings.rand_ctx.native_handle = Unmanaged.passUnretained(entropy).toOpaque()
        if path.staysOnMachine {
            // Discovery tries what the internet carries; loopback carries far more and needs no discovery. How much
            // of it is used is decided packet by packet (`datagramSize`).
            settings.max_tx_udp_payload_size = TransportLimits.loopbackDatagram
            settings.no_tx_udp_payload_size_shaping = 1
            settings.no_pmtud = 1
        } else if path.isRelayed {
            // A relay takes larger datagrams, but not every network between a peer and its relay's other peers may.
            settings.max_tx_udp_payload_size = TransportLimits.minimumDatagram
            settings.no_pmtud = 1
        } else {
            settings.max_tx_udp_payload_size = TransportLimits.maximumDatagram
        }
        return settings
    }

    private static func transportParameters(maximumStreams: Int) -> ngtcp2_transport_params {
        var parameters = ngtcp2_transport_params()
        ngtcp2_transport_params_default_versioned(NGTCP2_TRANSPORT_PARAMS_VERSION, &parameters)
        parameters.initial_max_stream_data_bidi_local = TransportLimits.initialStreamWindow
        parameters.initial_max_stream_data_bidi_remote = TransportLimits.initialStreamWindow
        parameters.initial_max_data = TransportLimits.initialConnectionWindow
        parameters.initial_max_streams_bidi = UInt64(clamping: maximumStreams)
        parameters.max_idle_timeout = UInt64(TransportLimits.idleTimeout.nanoseconds)
        parameters.active_connection_id_limit = 5
        return parameters
    }

    /// A `ngtcp2_crypto_conn_ref` on the heap.
    private final class Cell {
        let pointer: UnsafeMutablePointer<ngtcp2_crypto_conn_ref>

        init() {
            pointer = .allocate(capacity: 1)
            pointer.initialize(
                to: ngtcp2_crypto_conn_ref(
                    get_conn: { QUICConnection.from(UnsafeMutableRawPointer($0))?.handle }, user_data: nil))
        }

        deinit {
            pointer.deallocate()
        }
    }
}

extension QUICConnection {
    /// The connection behind the cell that C handed back.
    static func from(_ cell: UnsafeMutableRawPointer?) -> QUICConnection? {
        guard let cell = cell?.assumingMemoryBound(to: ngtcp2_crypto_conn_ref.self), let owner = cell.pointee.user_data
        else { return nil }
        return Unmanaged<QUICConnection>.fromOpaque(owner).takeUnretainedValue()
    }
}
