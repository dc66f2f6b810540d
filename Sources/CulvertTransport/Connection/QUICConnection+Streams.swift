import CNgtcp2
import CulvertCore

extension QUICConnection {
    /// Opens a bidirectional stream; nil while the peer allows no more (``ConnectionHandler/connectionMayOpenStreams(_:)``
    /// tells when it does) or when the connection is not established. Set the stream's handler at once.
    package func openStream() -> QUICStream? {
        guard isEstablished else { return nil }
        var id: Int64 = -1
        guard ngtcp2_conn_open_bidi_stream(handle, &id, nil) == 0 else { return nil }
        return addStream(id)
    }

    /// How many more streams may be opened now.
    package var openableStreams: Int {
        isEstablished ? Int(clamping: ngtcp2_conn_get_streams_bidi_left(handle)) : 0
    }

    /// How many streams are open.
    package var openStreamCount: Int { streams.count }

    private func addStream(_ id: Int64) -> QUICStream {
        let stream = QUICStream(id: id, connection: self)
        streams[id] = stream
        ngtcp2_conn_set_stream_user_data(handle, id, Unmanaged.passUnretained(stream).toOpaque())
        return stream
    }

    // MARK: Called by ngtcp2

    /// The peer opened a stream. Unidirectional ones are not allowed to it, so this one is bidirectional.
    func acceptStream(_ id: Int64) -> Bool {
        handler?.connection(self, accepted: addStream(id))
        return true
    }

    /// Bytes arrived in order. The connection's window opens at once, so that one slow reader holds up its own
    /// stream only; but not while the readers together leave too much unread.
    func receive(_ bytes: UnsafeRawBufferPointer, isEnd: Bool, for stream: QUICStream?) {
        unreadCount += bytes.count
        withheldCredit += UInt64(bytes.count)
        releaseCredit()
        if stream?.deliver(bytes, isEnd: isEnd) != true { unreadCount -= bytes.count }
    }

    func streamClosed(_ id: Int64) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        unreadCount -= stream.unreadCount
        releaseCredit()
        stream.close()
        if ngtcp2_conn_is_local_stream(handle, id) == 0 { ngtcp2_conn_extend_max_streams_bidi(handle, 1) }
    }

    // MARK: Called by streams

    func consumed(_ count: Int, of stream: QUICStream) {
        unreadCount -= count
        guard end == nil else { return }
        ngtcp2_conn_extend_max_stream_offset(handle, stream.id, UInt64(count))
        releaseCredit()
        owner?.connectionWantsFlush(self)
    }

    func scheduleSend(_ stream: QUICStream) {
        guard stream.hasUnsent else { return }
        sendOrder.append(stream)
        owner?.connectionWantsFlush(self)
    }

    func resetStream(_ stream: QUICStream, _ code: StreamErrorCode) {
        stream.abandonSending()
        ngtcp2_conn_shutdown_stream_write(handle, stream.id, code.rawValue)
        owner?.connectionWantsFlush(self)
    }

    func stopStream(_ stream: QUICStream, _ code: StreamErrorCode) {
        ngtcp2_conn_shutdown_stream_read(handle, stream.id, code.rawValue)
        owner?.connectionWantsFlush(self)
    }

    private func releaseCredit() {
        guard withheldCredit > 0, unreadCount <= TransportLimits.unreadPerConnection else { return }
        ngtcp2_conn_extend_max_offset(handle, withheldCredit)
        withheldCredit = 0
    }
}
