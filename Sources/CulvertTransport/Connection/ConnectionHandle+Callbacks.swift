import CNgtcp2
import CNgtcp2Crypto
import CulvertCore

// ngtcp2's callbacks: the cryptographic ones are its GnuTLS glue, the others lead to methods of `QUICConnection`.
extension ConnectionHandle {
    static func callbacks(isServer: Bool) -> ngtcp2_callbacks {
        var callbacks = ngtcp2_callbacks()
        installCryptography(in: &callbacks, isServer: isServer)
        installIdentifiers(in: &callbacks)
        installStreams(in: &callbacks)
        callbacks.handshake_completed = { _, cell in
            callbackResult(QUICConnection.from(cell)?.completeHandshake())
        }
        callbacks.handshake_confirmed = { _, cell in
            guard let connection = QUICConnection.from(cell), !connection.isServer else { return 0 }
            connection.handler?.connectionConfirmed(connection)
            return 0
        }
        callbacks.path_validation = { _, _, _, outcome, cell in
            if outcome == NGTCP2_PATH_VALIDATION_RESULT_SUCCESS { QUICConnection.from(cell)?.pathMayHaveChanged = true }
            return 0
        }
        return callbacks
    }

    private static func installCryptography(in callbacks: inout ngtcp2_callbacks, isServer: Bool) {
        if isServer {
            callbacks.recv_client_initial = ngtcp2_crypto_recv_client_initial_cb
        } else {
            callbacks.client_initial = ngtcp2_crypto_client_initial_cb
            callbacks.recv_retry = ngtcp2_crypto_recv_retry_cb
        }
        callbacks.recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb
        callbacks.encrypt = ngtcp2_crypto_encrypt_cb
        callbacks.decrypt = ngtcp2_crypto_decrypt_cb
        callbacks.hp_mask = ngtcp2_crypto_hp_mask_cb
        callbacks.update_key = ngtcp2_crypto_update_key_cb
        callbacks.delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb
        callbacks.delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb
        callbacks.get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb
        callbacks.version_negotiation = ngtcp2_crypto_version_negotiation_cb
        callbacks.rand = { destination, count, context in
            guard let entropy = context?.pointee.native_handle else { return }
            Unmanaged<Entropy>.fromOpaque(entropy).takeUnretainedValue()
                .fill(UnsafeMutableRawBufferPointer(start: destination, count: count))
        }
    }

    private static func installIdentifiers(in callbacks: inout ngtcp2_callbacks) {
        callbacks.get_new_connection_id = { _, id, token, length, cell in
            guard let connection = QUICConnection.from(cell), let id, let token else {
                return NGTCP2_ERR_CALLBACK_FAILURE
            }
            id.pointee = ConnectionHandle.freshID(connection.entropy, length: length)
            _ = ngtcp2_crypto_generate_stateless_reset_token(token, connection.resetKey, connection.resetKey.count, id)
            connection.owner?.connection(connection, issued: ConnectionID(id.pointee))
            return 0
        }
        callbacks.remove_connection_id = { _, id, cell in
            guard let connection = QUICConnection.from(cell), let id else { return 0 }
            connection.owner?.connection(connection, retired: ConnectionID(id.pointee))
            return 0
        }
        callbacks.dcid_status = { _, kind, _, _, token, cell in
            guard let connection = QUICConnection.from(cell), let token else { return 0 }
            if kind == Int32(NGTCP2_CONNECTION_ID_STATUS_TYPE_ACTIVATE.rawValue) {
                connection.owner?.connection(connection, expects: ResetToken(token))
            } else {
                connection.owner?.connection(connection, forgets: ResetToken(token))
            }
            return 0
        }
    }

    private static func installStreams(in callbacks: inout ngtcp2_callbacks) {
        callbacks.stream_open = { _, id, cell in
            callbackResult(QUICConnection.from(cell)?.acceptStream(id))
        }
        callbacks.recv_stream_data = { _, flags, id, _, data, count, cell, stream in
            QUICConnection.from(cell)?.receive(
                UnsafeRawBufferPointer(start: data, count: count), isEnd: flags & NGTCP2_STREAM_DATA_FLAG_FIN != 0,
                for: QUICStream.from(stream))
            return 0
        }
        callbacks.acked_stream_data_offset = { _, _, _, count, _, stream in
            QUICStream.from(stream)?.acknowledged(Int(count))
            return 0
        }
        callbacks.stream_reset = { _, _, _, code, _, stream in
            guard let stream = QUICStream.from(stream) else { return 0 }
            stream.handler?.stream(stream, resetBy: StreamErrorCode(rawValue: code))
            return 0
        }
        callbacks.stream_close = { _, _, id, _, cell, _ in
            QUICConnection.from(cell)?.streamClosed(id)
            return 0
        }
        callbacks.extend_max_stream_data = { _, _, _, cell, stream in
            guard let connection = QUICConnection.from(cell), let stream = QUICStream.from(stream) else { return 0 }
            connection.scheduleSend(stream)
            return 0
        }
        callbacks.extend_max_local_streams_bidi = { _, _, cell in
            guard let connection = QUICConnection.from(cell), connection.isEstablished else { return 0 }
            connection.handler?.connectionMayOpenStreams(connection)
            return 0
        }
    }
}

/// What ngtcp2 takes for success or failure of a callback.
private func callbackResult(_ success: Bool?) -> Int32 {
    success == true ? 0 : NGTCP2_ERR_CALLBACK_FAILURE
}

extension QUICStream {
    /// The stream that ngtcp2 keeps a pointer to; ``QUICConnection/streams`` keeps it alive.
    static func from(_ pointer: UnsafeMutableRawPointer?) -> QUICStream? {
        pointer.map { Unmanaged<QUICStream>.fromOpaque($0).takeUnretainedValue() }
    }
}
