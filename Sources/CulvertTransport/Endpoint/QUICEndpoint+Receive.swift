import CNgtcp2
import CNgtcp2Crypto
import CulvertCore

extension QUICEndpoint {
    /// Takes a datagram that arrived on `path` at `now`, with the two ECN bits of its IP header.
    package func receive(_ datagram: UnsafeRawBufferPointer, on path: NetworkPath, ecn: UInt8, now: Instant) {
        guard let first = datagram.first else { return }
        var header = ngtcp2_version_cid()
        let result = ngtcp2_pkt_decode_version_cid(
            &header, datagram.baseAddress?.assumingMemoryBound(to: UInt8.self), datagram.count,
            TransportLimits.connectionIDLength)
        guard result == 0 else {
            if result == NGTCP2_ERR_VERSION_NEGOTIATION, acceptor != nil {
                answers.add(.versionNegotiation(header), entropy: surroundings.entropy, to: path, now: now)
                wantsAttention()
            }
            return
        }
        let id = ConnectionID(UnsafeRawBufferPointer(start: header.dcid, count: header.dcidlen))
        if let connection = routes[id] {
            deliver(datagram, to: connection, on: path, ecn: ecn, now: now)
            return
        }
        switch ended.verdict(for: id, now: now) {
        case .ignore: break
        case .answer(let packet): answer(.packet(packet), to: path, now: now)
        case .unknown where first & 0x80 != 0: accept(datagram, id: id, on: path, ecn: ecn, now: now)
        case .unknown: receiveUnroutable(datagram, id: id, on: path, now: now)
        }
    }

    private func deliver(
        _ datagram: UnsafeRawBufferPointer, to connection: QUICConnection, on path: NetworkPath, ecn: UInt8,
        now: Instant
    ) {
        _ = connection.receive(datagram, on: pathBuffer.pointer(to: path), ecn: ecn, now: now)
    }

    /// A short-header packet with an ID that we never issued: a stateless reset, or a packet from before a restart.
    ///
    /// Such packets never reach ngtcp2: it would also honour the token of an ID that it has retired already, and a
    /// peer that answers a late packet with such a token would end a connection that has moved on.
    private func receiveUnroutable(
        _ datagram: UnsafeRawBufferPointer, id: ConnectionID, on path: NetworkPath, now: Instant
    ) {
        // RFC 9000 section 10.3: at least 21 bytes, the last 16 of which are the token.
        guard datagram.count >= 21, let base = datagram.baseAddress else { return }
        let token = ResetToken(base + datagram.count - 16)
        if let connection = resetTokens[token] {
            connection.receiveStatelessReset()
        } else {
            answer(.reset(id, key: surroundings.resetKey, answering: datagram.count), to: path, now: now)
        }
    }

    private func accept(
        _ datagram: UnsafeRawBufferPointer, id: ConnectionID, on path: NetworkPath, ecn: UInt8, now: Instant
    ) {
        // Within connections ngtcp2 greases the fixed bit (RFC 9287); what begins one must have it (RFC 9443).
        guard let acceptor, datagram[0] & 0x40 != 0, handshakes < TransportLimits.handshakes else { return }
        var header = ngtcp2_pkt_hd()
        guard
            ngtcp2_accept(&header, datagram.baseAddress?.assumingMemoryBound(to: UInt8.self), datagram.count) == 0
        else { return }
        guard accepted < TransportLimits.connections else {
            answer(.refusal(header, code: UInt64(NGTCP2_CONNECTION_REFUSED)), to: path, now: now)
            return
        }
        var originalID: ngtcp2_cid?
        if header.token.len > 0, header.token.base[0] == UInt8(NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY) {
            guard let verified = verifyRetryToken(header, from: path, now: now) else {
                answer(.refusal(header, code: UInt64(NGTCP2_INVALID_TOKEN)), to: path, now: now)
                return
            }
            originalID = verified
        } else if handshakes >= TransportLimits.handshakesBeforeRetry {
            sendRetry(header, to: path, now: now)
            return
        }
        guard
            let connection = try? QUICConnection(
                .server(header: header, originalID: originalID), path: path, alpns: alpns, in: surroundings, now: now)
        else { return }
        add(connection)
        route(id, to: connection)
        acceptor.endpoint(self, accepted: connection)
        let outcome = connection.receive(datagram, on: pathBuffer.pointer(to: path), ecn: ecn, now: now)
        if case .needsRetry = outcome {
            connection.finish(
                .failed(TransportError(.unavailable, "the client has to prove its address")), closePacket: nil)
            ended.forget(id)
            sendRetry(header, to: path, now: now)
        }
    }

    private func answer(_ answer: StatelessAnswers.Kind, to path: NetworkPath, now: Instant) {
        answers.add(answer, entropy: surroundings.entropy, to: path, now: now)
        wantsAttention()
    }

    // MARK: Address validation (RFC 9000 section 8.1)

    private func sendRetry(_ header: ngtcp2_pkt_hd, to path: NetworkPath, now: Instant) {
        var token = [UInt8](repeating: 0, count: Int(NGTCP2_CRYPTO_TOKEN_RAND_DATALEN) + 64)
        var retryID = ConnectionHandle.freshID(surroundings.entropy)
        var original = header.dcid
        let remote = pathBuffer.pointer(to: path).pointee.remote
        let length = ngtcp2_crypto_generate_retry_token(
            &token, retryKey, retryKey.count, header.version, remote.addr, remote.addrlen, &retryID, &original,
            now.nanoseconds)
        guard length > 0 else { return }
        answer(.retry(header, sourceID: retryID, token: Array(token.prefix(length))), to: path, now: now)
    }

    private func verifyRetryToken(_ header: ngtcp2_pkt_hd, from path: NetworkPath, now: Instant) -> ngtcp2_cid? {
        var original = ngtcp2_cid()
        var destination = header.dcid
        let remote = pathBuffer.pointer(to: path).pointee.remote
        let result = ngtcp2_crypto_verify_retry_token(
            &original, header.token.base, header.token.len, retryKey, retryKey.count, header.version, remote.addr,
            remote.addrlen, &destination, UInt64(TransportLimits.retryTokenLifetime.nanoseconds), now.nanoseconds)
        return result == 0 ? original : nil
    }
}
