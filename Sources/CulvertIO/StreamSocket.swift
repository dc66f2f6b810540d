import CLinux
import CulvertCore
import Glibc

/// A connected TCP or Unix stream socket.
///
/// It is registered once, edge-triggered, for both directions; the data path makes no further epoll calls.
///
/// **Who reads on.** `socketReadable()` comes when ``isReadable`` turns true, and not again while it stays true. So the
/// handler reads until it gets `.wouldBlock`, `.end` or `.failed` or `isReadable` is false. It may stop earlier, for
/// want of room or because its budget is spent; then it is the handler's turn: it calls `read` itself once there is
/// room, or asks by ``readAgainLater()`` to be called in the next iteration. Suspending is just not reading; the
/// kernel's window then stops the peer.
///
/// **Who writes on.** ``isWritable`` turns false when a write was not taken completely; `socketWritable()` comes when it
/// turns true again.
///
/// **How it ends.** A peer's FIN comes in order, as `.end`. A reset is told by `socketFailed()` at once, also to a
/// handler that does not read. Confined to its loop, which keeps the socket until ``close()`` or ``reset()``.
package final class StreamSocket {
    private enum Phase {
        case connecting, open, closed
    }

    /// The loop to which the socket belongs.
    package let loop: EventLoop
    /// Who hears about readiness.
    package weak var handler: (any StreamSocketHandler)?
    /// The peer's address; nil for Unix sockets.
    package let peerAddress: SocketAddress?
    /// Whether the last read left, or may have left, something.
    package private(set) var isReadable = false
    /// Whether the last write was taken completely.
    package private(set) var isWritable = false
    /// Whether the peer's end has arrived, maybe behind bytes that are still to be read.
    package private(set) var isPeerFinished = false
    /// Why the connection attempt or the connection failed.
    package private(set) var failure: StreamFailure?
    private var descriptor: FileDescriptor
    private var registration: Registration?
    private var phase: Phase
    private var hasReadEnd = false
    /// Whether bytes that arrived before the failure may still be read.
    private var hasRemainder = false
    private var hasRepeatPending = false

    /// Starts connecting; `socketConnected()` or `socketFailed()` tells how it ended, never before this returns.
    ///
    /// Throws `.unavailable` when the system refuses the attempt at once (nobody listens on the Unix socket, no route)
    /// and `.limit` when it has no more descriptors.
    package static func connect(to address: StreamAddress, loop: EventLoop) throws(TransportError) -> StreamSocket {
        let fd: Int32
        let peer: SocketAddress?
        switch address {
        case .tcp(let target):
            fd = clinux_tcp_socket(clinux_address(target).family == 6)
            peer = target
        case .unix:
            fd = clinux_unix_socket()
            peer = nil
        }
        guard fd >= 0 else { throw BindFailure(fd).transportError }
        let socket = StreamSocket(owning: fd, peer: peer, phase: .connecting, loop: loop)
        let result: Int32
        switch address {
        case .tcp(let target):
            var raw = clinux_address(target)
            result = clinux_connect(fd, &raw)
        case .unix(let path):
            result = clinux_connect_unix(fd, path)
        }
        guard result == 0 || result == -EINPROGRESS else {
            switch -result {
            case ENAMETOOLONG:
                throw TransportError(.unavailable, "the path of the Unix socket is longer than 107 bytes")
            case EAGAIN:
                throw TransportError(.unavailable, "the server has too many waiting connections; try again later")
            default:
                throw TransportError(
                    .unavailable, "the server does not accept connections; start it or check its address")
            }
        }
        try socket.register()
        return socket
    }

    /// Takes over the connected, non-blocking descriptor `fd`.
    package convenience init(accepted fd: Int32, peer: SocketAddress?, loop: EventLoop) throws(TransportError) {
        self.init(owning: fd, peer: peer, phase: .open, loop: loop)
        isWritable = true
        try register()
    }

    private init(owning fd: Int32, peer: SocketAddress?, phase: Phase, loop: EventLoop) {
        descriptor = FileDescriptor(owning: fd)
        peerAddress = peer?.unmapped
        self.phase = phase
        self.loop = loop
    }

    private func register() throws(TransportError) {
        // Small writes are whole HTTP heads and frames: nothing waits for more. Fails for Unix sockets, harmlessly.
        if peerAddress != nil { _ = clinux_set_no_delay(descriptor.number) }
        registration = try loop.register(
            descriptor.number, mode: .edge, interest: [.readable, .writable, .peerFinished], handler: self)
    }

    // MARK: Data

    /// Reads once, at most `limit` bytes and 256 KiB, and appends to `queue`. After a failure it gives what had arrived
    /// before, then `.failed`: a server may answer and reset the connection in one breath.
    package func read(into queue: ByteQueue, limit: Int) -> StreamRead {
        guard phase != .closed, failure == nil || hasRemainder else { return .failed }
        guard isReadable else { return hasReadEnd ? .end : .wouldBlock }
        guard limit > 0 else { return .bytes(0) }
        var offered = 0
        let result = queue.withFreeVectors(max: limit) { vectors in
            for vector in vectors { offered += vector.iov_len }
            return clinux_readv(descriptor.number, vectors.baseAddress, Int32(vectors.count))
        }
        return interpret(result, of: offered)
    }

    /// Reads once and drops what came; for what nobody wants any more.
    package func discard() -> StreamRead {
        guard phase != .closed, failure == nil || hasRemainder else { return .failed }
        guard isReadable else { return hasReadEnd ? .end : .wouldBlock }
        return withUnsafeTemporaryAllocation(byteCount: IOLimits.discardBytes, alignment: 16) { space in
            var vector = iovec(iov_base: space.baseAddress, iov_len: space.count)
            return interpret(clinux_readv(descriptor.number, &vector, 1), of: space.count)
        }
    }

    private func interpret(_ result: Int, of offered: Int) -> StreamRead {
        if failure != nil {
            if result > 0 { return .bytes(result) }
            hasRemainder = false
            isReadable = false
            return .failed
        }
        switch result {
        case 1...:
            // A short read has emptied a TCP socket, and what comes later makes a new edge. Not so when the end has
            // been reported already, and not for Unix sockets, which stop at passed descriptors.
            if result < offered, !isPeerFinished, peerAddress != nil { isReadable = false }
            return .bytes(result)
        case 0:
            isReadable = false
            isPeerFinished = true
            hasReadEnd = true
            return .end
        case -Int(EAGAIN):
            isReadable = false
            return .wouldBlock
        default:
            failure = StreamFailure(Int32(-result))
            return .failed
        }
    }

    /// Delivers `socketReadable()` in the next iteration if the socket is readable then: for a handler whose budget
    /// is spent.
    package func readAgainLater() {
        guard isReadable, !hasRepeatPending, let registration else { return }
        hasRepeatPending = true
        loop.deliverAgain([], to: registration)
    }

    /// Writes once, as much as the socket takes.
    package func write(_ bytes: UnsafeRawBufferPointer) -> StreamWrite {
        guard phase != .closed, failure == nil else { return .failed }
        guard isWritable else { return .wouldBlock }
        guard !bytes.isEmpty else { return .wrote(0) }
        return wrote(clinux_send(descriptor.number, bytes.baseAddress, bytes.count), of: bytes.count)
    }

    /// Writes from the front of `queue` until it is empty or the socket is full, and consumes what was taken.
    package func write(from queue: ByteQueue) -> StreamWrite {
        var total = 0
        while true {
            guard phase != .closed, failure == nil else { return total > 0 ? .wrote(total) : .failed }
            guard isWritable else { return total > 0 ? .wrote(total) : .wouldBlock }
            guard !queue.isEmpty else { return .wrote(total) }
            let vectors = queue.vectors(from: 0, maxBytes: .max, maxVectors: IOLimits.vectors)
            let offered = min(queue.count, vectors.reduce(0) { $0 + $1.iov_len })
            let result = clinux_sendv(descriptor.number, vectors.baseAddress, vectors.count)
            guard case .wrote(let count) = wrote(result, of: offered) else { continue }
            queue.consume(count)
            total += count
        }
    }

    private func wrote(_ result: Int, of offered: Int) -> StreamWrite {
        if result >= 0 {
            if result < offered { isWritable = false }
            return .wrote(result)
        }
        if result == -Int(EAGAIN) {
            isWritable = false
            return .wouldBlock
        }
        fail(Int32(-result))
        return .failed
    }

    private func fail(_ error: Int32) {
        failure = StreamFailure(error)
        isWritable = false
        hasRemainder = true
        isReadable = true
    }

    // MARK: Ends

    /// Ends our direction (FIN) behind what was written; the other direction stays open.
    package func shutdownWrite() {
        guard phase == .open else { return }
        _ = clinux_shutdown_write(descriptor.number)
    }

    /// Closes both directions. TCP sends FIN behind what was written, or RST when received bytes were not read.
    package func close() {
        guard phase != .closed else { return }
        phase = .closed
        isReadable = false
        isWritable = false
        handler = nil
        if let registration { loop.deregister(registration) }
        registration = nil
        descriptor.close()
    }

    /// Cuts the connection off: TCP drops what is unsent and sends RST, so that the peer cannot take it for an orderly
    /// end. A Unix socket has no reset; its peer sees an end, or an error if it sends on.
    package func reset() {
        guard phase != .closed else { return }
        if peerAddress != nil { _ = clinux_set_linger_zero(descriptor.number) }
        close()
    }

    // MARK: Who is there

    /// Our address; nil for Unix sockets and once closed.
    package var localAddress: SocketAddress? {
        var raw = clinux_address.none
        guard descriptor.isOpen, clinux_local_address(descriptor.number, &raw) == 0 else { return nil }
        return raw.socketAddress
    }

    /// The user of the process at the other end of a Unix socket, or of a TCP connection within this machine; nil when
    /// it cannot be told.
    package var peerUserID: uid_t? {
        if let peerAddress { return localAddress.flatMap { PeerUser.userID(ofTCPPeerAt: peerAddress, local: $0) } }
        var user = uid_t()
        guard descriptor.isOpen, clinux_peer_uid(descriptor.number, &user) == 0 else { return nil }
        return user
    }
}

extension StreamSocket: ReadinessHandler {
    /// Called by the loop.
    package func ready(_ events: Readiness) {
        if hasRepeatPending, events.isEmpty {
            hasRepeatPending = false
            if isReadable { handler?.socketReadable() }
            return
        }
        if phase == .connecting, !finishConnecting(events) { return }
        if events.contains(.error), breakOff() { return }
        guard phase == .open, failure == nil else { return }
        if events.contains(.peerFinished) || events.contains(.hangup) { isPeerFinished = true }
        let becomesReadable =
            !isReadable && !hasReadEnd && (isPeerFinished || events.contains(.readable))
        let becomesWritable = !isWritable && events.contains(.writable)
        if becomesReadable { isReadable = true }
        if becomesWritable { isWritable = true }
        if becomesReadable { handler?.socketReadable() }
        if becomesWritable, phase == .open, failure == nil { handler?.socketWritable() }
    }

    /// Whether the socket is open now.
    private func finishConnecting(_ events: Readiness) -> Bool {
        if events.contains(.error) {
            _ = breakOff()
            return false
        }
        guard events.contains(.writable) else { return false }
        phase = .open
        isWritable = true
        handler?.socketConnected()
        return phase == .open
    }

    /// Takes the pending error; false when there was none left.
    private func breakOff() -> Bool {
        guard phase != .closed, failure == nil else { return true }
        let error = clinux_take_error(descriptor.number)
        guard error != 0 else { return false }
        fail(error)
        handler?.socketFailed()
        return true
    }
}
