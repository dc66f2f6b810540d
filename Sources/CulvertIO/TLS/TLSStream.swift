import CGnuTLS
import CulvertCore
import Glibc

/// TLS 1.3 or 1.2 (RFC 8446, RFC 5246) over a ``StreamSocket``, by GnuTLS. Confined to the socket's loop.
///
/// The handshake begins with ``begin()``; its end is told by `socketConnected()`, after which the stream is used like a
/// socket. `socketFailed()` tells that it failed, see ``failure``. Bytes go from the socket through GnuTLS's own record
/// buffers; an idle stream holds none of ours.
package final class TLSStream: ByteStream {
    /// Which end of the connection this is.
    package enum Role {
        /// Shows this identity.
        case server(TLSIdentity)
        /// Believes these authorities, and only in a certificate for this host name or address.
        case client(TLSTrust, host: String)
    }

    private enum Phase {
        case handshake, open, failed
    }

    /// Who hears about readiness.
    package weak var handler: (any StreamSocketHandler)?
    /// Why the handshake failed; nil while it has not, or when the socket did.
    package private(set) var failure: TransportError?
    private let socket: StreamSocket
    let session: gnutls_session_t
    // Keeps the credentials alive that the session points to.
    private let role: Role
    /// The name to be verified, for as long as the session lives.
    private var hostText: UnsafeMutablePointer<CChar>?
    /// What the socket gave and GnuTLS has not taken yet.
    private let ciphertext: ByteQueue
    private var phase = Phase.handshake
    /// Bytes that GnuTLS has taken from the queue's front but not written yet.
    private var unwritten = 0
    private var again: LoopTimer?

    /// A stream over `socket`, whose handler it becomes. Throws `limit` when GnuTLS has no memory.
    package init(over socket: StreamSocket, as role: Role, pool: ChunkPool) throws(TransportError) {
        var allocated: gnutls_session_t?
        let side: gnutls_init_flags_t = if case .server = role { GNUTLS_SERVER } else { GNUTLS_CLIENT }
        let flags: [gnutls_init_flags_t] = [side, GNUTLS_NONBLOCK, GNUTLS_NO_SIGNAL]
        let result = gnutls_init(&allocated, flags.reduce(0) { $0 | $1.rawValue })
        guard result == GNUTLS_E_SUCCESS, let session = allocated else {
            throw TransportError(.limit, "there is not enough memory for TLS")
        }
        self.session = session
        self.socket = socket
        self.role = role
        ciphertext = ByteQueue(pool: pool)
        guard configure() else {
            throw TransportError(.state, "GnuTLS refuses TLS 1.2 and 1.3; check the crypto policy")
        }
        socket.handler = self
    }

    deinit {
        gnutls_deinit(session)
        free(hostText)
    }

    private func configure() -> Bool {
        guard gnutls_priority_set_direct(session, Self.priorities, nil) == GNUTLS_E_SUCCESS else { return false }
        let credentials: gnutls_certificate_credentials_t
        switch role {
        case .server(let identity): credentials = identity.handle
        case .client(let trust, let host):
            credentials = trust.handle
            // An address is not named (RFC 6066 section 3), but checked all the same.
            if IPAddress(host) == nil {
                guard gnutls_server_name_set(session, GNUTLS_NAME_DNS, host, host.utf8.count) == GNUTLS_E_SUCCESS else {
                    return false
                }
            }
            // GnuTLS keeps the pointer.
            hostText = strdup(host)
            // Without a name GnuTLS would take any certificate.
            guard hostText != nil else { return false }
            gnutls_session_set_verify_cert(session, hostText, 0)
        }
        // Neither call takes ownership; `self` outlives the session.
        gnutls_transport_set_ptr(session, Unmanaged.passUnretained(self).toOpaque())
        gnutls_transport_set_pull_function(session) { pointer, target, count in
            TLSStream.from(pointer)?.pull(UnsafeMutableRawBufferPointer(start: target, count: count)) ?? -1
        }
        gnutls_transport_set_push_function(session) { pointer, source, count in
            TLSStream.from(pointer)?.push(UnsafeRawBufferPointer(start: source, count: count)) ?? -1
        }
        return gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(credentials))
            == GNUTLS_E_SUCCESS
    }

    private static let priorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

    private static func from(_ pointer: gnutls_transport_ptr_t?) -> TLSStream? {
        pointer.map { Unmanaged<TLSStream>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: Handshake

    /// Begins the handshake.
    package func begin() { shakeHands() }

    private func shakeHands() {
        while phase == .handshake {
            let result = gnutls_handshake(session)
            if result == GNUTLS_E_SUCCESS {
                phase = .open
                handler?.socketConnected()
                if isReadable { handler?.socketReadable() }
                return
            }
            if result == GNUTLS_E_AGAIN { return }
            if gnutls_error_is_fatal(result) != 0 { fail(result) }
        }
    }

    private func fail(_ result: Int32) {
        phase = .failed
        _ = gnutls_alert_send_appropriate(session, result)
        failure =
            switch result {
            case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR, GNUTLS_E_CERTIFICATE_ERROR:
                TransportError(.tlsIdentity, "the TLS certificate is not valid for that name, or nobody here trusts it")
            default: TransportError(.unavailable, "TLS could not be agreed on")
            }
        handler?.socketFailed()
    }

    /// Whether the handshake is over and the connection stands.
    package var isOpen: Bool { phase == .open }

    // MARK: ByteStream

    package var peerAddress: SocketAddress? { socket.peerAddress }

    package var isReadable: Bool { isOpen && (hasBuffered || socket.isReadable) }

    private var hasBuffered: Bool { !ciphertext.isEmpty || gnutls_record_check_pending(session) > 0 }

    package func read(into queue: ByteQueue, limit: Int) -> StreamRead {
        guard isOpen else { return .failed }
        guard limit > 0 else { return .bytes(0) }
        var end = StreamRead.wouldBlock
        let count = queue.withFreeVectors(max: limit) { vectors in
            var total = 0
            for vector in vectors {
                var filled = 0
                while filled < vector.iov_len {
                    let result = gnutls_record_recv(session, vector.iov_base + filled, vector.iov_len - filled)
                    guard result > 0 else {
                        if let verdict = Self.verdict(Int32(result)) {
                            end = verdict
                            return total
                        }
                        continue
                    }
                    filled += result
                    total += result
                }
            }
            return total
        }
        // An end comes again at the next call.
        return count > 0 ? .bytes(count) : end
    }

    /// What a result of GnuTLS that is not a number of bytes means; nil to try again.
    private static func verdict(_ result: Int32) -> StreamRead? {
        switch result {
        case 0, GNUTLS_E_PREMATURE_TERMINATION: .end
        case GNUTLS_E_AGAIN: .wouldBlock
        // Renegotiation (TLS 1.2): there is nothing that it could be needed for.
        case GNUTLS_E_REHANDSHAKE: .failed
        default: gnutls_error_is_fatal(result) != 0 ? .failed : nil
        }
    }

    package func write(from queue: ByteQueue) -> StreamWrite {
        guard isOpen else { return .failed }
        var total = 0
        while !queue.isEmpty {
            let result: Int
            if unwritten > 0 {
                // GnuTLS has its own copy of what it could not write.
                result = gnutls_record_send(session, nil, 0)
            } else {
                let vectors = queue.vectors(from: 0, maxBytes: IOLimits.chunkBytes, maxVectors: 1)
                result = gnutls_record_send(session, vectors[0].iov_base, vectors[0].iov_len)
                if result == GNUTLS_E_AGAIN { unwritten = vectors[0].iov_len }
            }
            if result > 0 {
                unwritten = 0
                queue.consume(result)
                total += result
            } else if result == GNUTLS_E_AGAIN {
                return total > 0 ? .wrote(total) : .wouldBlock
            } else if result == 0 || gnutls_error_is_fatal(Int32(result)) != 0 {
                return .failed
            }
        }
        return .wrote(total)
    }

    package func readAgainLater() {
        guard isOpen else { return }
        guard hasBuffered else { return socket.readAgainLater() }
        let timer = again ?? LoopTimer(loop: socket.loop) { [weak self] in self?.handler?.socketReadable() }
        again = timer
        timer.arm(at: socket.loop.now)
    }

    package func shutdownWrite() {
        if isOpen { _ = gnutls_bye(session, GNUTLS_SHUT_WR) }
        socket.shutdownWrite()
    }

    package func close() {
        forget()
        socket.close()
    }

    package func reset() {
        forget()
        socket.reset()
    }

    private func forget() {
        again?.disarm()
        phase = .failed
        handler = nil
        ciphertext.removeAll()
    }

    // MARK: For GnuTLS

    private func pull(_ target: UnsafeMutableRawBufferPointer) -> Int {
        if ciphertext.isEmpty {
            switch socket.read(into: ciphertext, limit: IOLimits.chunkBytes * 2) {
            case .bytes: break
            case .wouldBlock: return fault(EAGAIN)
            case .end: return 0
            case .failed: return fault(ECONNRESET)
            }
        }
        var copied = 0
        for vector in ciphertext.vectors(from: 0, maxBytes: target.count, maxVectors: IOLimits.vectors) {
            UnsafeMutableRawBufferPointer(rebasing: target[copied...])
                .copyMemory(from: UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
            copied += vector.iov_len
        }
        ciphertext.consume(copied)
        return copied
    }

    private func push(_ bytes: UnsafeRawBufferPointer) -> Int {
        switch socket.write(bytes) {
        case .wrote(let count): count
        case .wouldBlock: fault(EAGAIN)
        case .failed: fault(EPIPE)
        }
    }

    private func fault(_ code: Int32) -> Int {
        gnutls_transport_set_errno(session, code)
        return -1
    }
}

extension TLSStream: StreamSocketHandler {
    /// Called by the socket.
    package func socketConnected() { shakeHands() }

    /// Called by the socket.
    package func socketReadable() {
        if phase == .handshake { shakeHands() } else { handler?.socketReadable() }
    }

    /// Called by the socket.
    package func socketWritable() {
        if phase == .handshake { shakeHands() } else { handler?.socketWritable() }
    }

    /// Called by the socket.
    package func socketFailed() {
        phase = .failed
        handler?.socketFailed()
    }
}
