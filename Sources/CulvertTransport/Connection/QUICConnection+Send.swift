import CNgtcp2
import CulvertCore
import CulvertIO
import Glibc

extension QUICConnection {
    /// Writes what is due at `now` into `batch`, in place. Returns true when there is more: the batch is full, or
    /// others should have a turn first.
    package func write(into batch: DatagramBatch, now: Instant) -> Bool {
        self.now = now
        switch state {
        case .ended: return false
        case .closing(let cause, let end):
            guard let space = batch.reserve(TransportLimits.minimumDatagram) else { return true }
            let length = writeClose(cause, into: space)
            let packet = Array(space.prefix(length))
            if length > 0 { batch.commit(count: length, local: path.local, remote: path.remote, ecn: 0) }
            finish(end, closePacket: packet.isEmpty ? nil : packet)
            return false
        case .handshaking, .established: break
        }
        var written = 0
        var hasMore = false
        repeat {
            offerRoom()
            hasMore = writePackets(into: batch, count: &written)
        } while !hasMore && !roomSeekers.isEmpty
        tellStopped()
        if written > 0 { ngtcp2_conn_update_pkt_tx_time(handle, now.nanoseconds) }
        if case .closing = state { return write(into: batch, now: now) }
        refreshDeadline()
        return hasMore
    }

    /// Closes the connection; the peer is told with the next flush.
    package func close(_ code: CloseCode) {
        switch state {
        case .handshaking, .established:
            state = .closing(.application(code), .closedLocally)
            owner?.connectionWantsFlush(self)
        case .closing, .ended: break
        }
    }

    /// The connection is over: streams first, then the handler, then the endpoint are told.
    func finish(_ end: ConnectionEnd, closePacket: [UInt8]?) {
        if case .ended = state { return }
        state = .ended(end)
        sendOrder.removeAll()
        roomSeekers.removeAll()
        let open = streams.values.sorted { $0.id < $1.id }
        for stream in open { stream.close() }
        streams.removeAll()
        let handler = handler
        self.handler = nil
        handler?.connectionClosed(self, reason: end)
        owner?.connection(self, endedWith: closePacket)
    }

    private func offerRoom() {
        guard !roomSeekers.isEmpty else { return }
        let seekers = roomSeekers
        roomSeekers.removeAll(keepingCapacity: true)
        for stream in seekers where !stream.isClosed { stream.handler?.streamMaySend(stream) }
    }

    private func tellStopped() {
        guard !stoppedStreams.isEmpty else { return }
        let stopped = stoppedStreams
        stoppedStreams.removeAll()
        for stream in stopped where !stream.isClosed { stream.handler?.stream(stream, stoppedBy: .notNeeded) }
    }

    /// The largest datagram to write now. Above loopback's minimum only when the peer's own limit is known.
    private var datagramSize: Int {
        if path.isRelayed { return TransportLimits.minimumDatagram }
        guard path.staysOnMachine else { return TransportLimits.maximumDatagram }
        return isEstablished ? TransportLimits.loopbackDatagram : TransportLimits.minimumDatagram
    }

    private func writePackets(into batch: DatagramBatch, count: inout Int) -> Bool {
        let size = datagramSize
        while count < TransportLimits.datagramsPerTurn {
            guard let space = batch.reserve(size) else { return true }
            var information = ngtcp2_pkt_info()
            let length = writePacket(into: space, &information)
            guard length >= 0 else {
                let error = TransportError(.protocolViolation, "the connection cannot go on")
                state = .closing(.library(Int32(length)), .failed(knownFailure ?? error))
                return false
            }
            guard length > 0 else { return false }
            let packetPath = writePath.written ?? path
            batch.commit(
                count: length, local: packetPath.local, remote: packetPath.remote, ecn: UInt8(information.ecn))
            count += 1
        }
        return true
    }

    /// Fills one packet from as many streams as fit. Returns its length, 0 when nothing may be sent, or ngtcp2's
    /// error.
    private func writePacket(into space: UnsafeMutableRawBufferPointer, _ information: inout ngtcp2_pkt_info) -> Int {
        while let stream = sendOrder.first, ngtcp2_conn_get_max_data_left(handle) > 0 || stream.onlyFinishes {
            var accepted: ngtcp2_ssize = -1
            // A datagram never spans more than a few chunks, so all of `bytes` are offered.
            let bytes = min(space.count, stream.sendQueue.count - stream.sentCount)
            let vectors = stream.sendQueue.vectors(from: stream.sentCount, maxBytes: bytes, maxVectors: 8)
            let offersEnd = stream.finishes(at: stream.sentCount + bytes)
            let flags = NGTCP2_WRITE_STREAM_FLAG_MORE | (offersEnd ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0)
            let length = write(stream.id, vectors, flags, into: space, &information, &accepted)
            let isEnd = offersEnd && accepted == bytes
            switch length {
            case Int(NGTCP2_ERR_STREAM_DATA_BLOCKED), Int(NGTCP2_ERR_STREAM_NOT_FOUND):
                sendOrder.removeFirst()
            case Int(NGTCP2_ERR_STREAM_SHUT_WR):
                sendOrder.removeFirst()
                stream.abandonSending()
                stoppedStreams.append(stream)
            default:
                if accepted >= 0 {
                    stream.sent(accepted, finished: isEnd)
                    if stream.hasUnsent { sendOrder.rotate() } else { sendOrder.removeFirst() }
                }
                if length != Int(NGTCP2_ERR_WRITE_MORE) { return length }
            }
        }
        var accepted: ngtcp2_ssize = -1
        return write(
            -1, UnsafeBufferPointer(start: nil, count: 0), NGTCP2_WRITE_STREAM_FLAG_NONE, into: space, &information,
            &accepted)
    }

    private func write(
        _ stream: Int64, _ vectors: UnsafeBufferPointer<iovec>, _ flags: UInt32,
        into space: UnsafeMutableRawBufferPointer, _ information: inout ngtcp2_pkt_info,
        _ accepted: inout ngtcp2_ssize
    ) -> Int {
        // ngtcp2_vec has the layout of iovec: a pointer and a length.
        vectors.withMemoryRebound(to: ngtcp2_vec.self) { vectors in
            ngtcp2_conn_writev_stream_versioned(
                handle, writePath.pointerForWriting, NGTCP2_PKT_INFO_VERSION, &information,
                space.baseAddress?.assumingMemoryBound(to: UInt8.self), space.count, &accepted, flags, stream,
                vectors.baseAddress, vectors.count, now.nanoseconds)
        }
    }

    /// Writes the CONNECTION_CLOSE and returns its length, 0 when there is nobody to tell.
    private func writeClose(_ cause: CloseCause, into space: UnsafeMutableRawBufferPointer) -> Int {
        var frame = ngtcp2_connection_close_error()
        ngtcp2_connection_close_error_default(&frame)
        switch cause {
        case .application(let code):
            ngtcp2_connection_close_error_set_application_error(&frame, code.rawValue, nil, 0)
        case .library(let result):
            ngtcp2_connection_close_error_set_transport_error_liberr(&frame, result, nil, 0)
        case .alert(let alert):
            ngtcp2_connection_close_error_set_transport_error_tls_alert(&frame, alert, nil, 0)
        }
        var information = ngtcp2_pkt_info()
        let length = ngtcp2_conn_write_connection_close_versioned(
            handle, writePath.pointerForWriting, NGTCP2_PKT_INFO_VERSION, &information,
            space.baseAddress?.assumingMemoryBound(to: UInt8.self), space.count, &frame, now.nanoseconds)
        return max(length, 0)
    }
}
