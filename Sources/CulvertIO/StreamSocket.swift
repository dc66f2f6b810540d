import CLinux
import CulvertCore
import Glibc

/// Where a stream socket connects to.
package enum StreamAddress: Hashable, Sendable {
    /// TCP.
    case tcp(SocketAddress)
    /// A Unix socket's path.
    case unix(String)
}

/// Who is told about a stream socket, on the loop.
package protocol StreamSocketHandler: AnyObject {
    /// The connection attempt succeeded.
    func socketConnected()
    /// There is something to read; ``StreamSocket/isReadable`` stays true until a read has taken all.
    func socketReadable()
    /// There is room to write; ``StreamSocket/isWritable`` stays true until a write has filled it.
    func socketWritable()
    /// The connection attempt failed, or the peer reset the connection.
    func socketFailed()
}

/// A non-blocking TCP or Unix stream socket, confined to its loop.
///
/// It is registered once, edge-triggered, so moving bytes costs no further calls. The handler is told of changes only:
/// who stops reading although ``isReadable`` is true has to come back by himself, and holds the peer up until then.
package final class StreamSocket {
    /// What came of reading.
    package enum ReadOutcome: Hashable {
        case bytes(Int)
        /// There is nothing now.
        case wouldBlock
        /// The peer has ended its direction.
        case end
        /// The connection is broken.
        case failed
    }

    /// What came of writing.
    package enum WriteOutcome: Hashable {
        /// How many bytes the socket took; perhaps fewer than offered.
        case wrote(Int)
        /// There is no room now.
        case wouldBlock
        /// The connection is broken.
        case failed
    }

    /// Who is told.
    package weak var handler: (any StreamSocketHandler)?
    /// Whether a read may give something.
    package private(set) var isReadable = false
    /// Whether a write may take something.
    package private(set) var isWritable = false

    private let loop: EventLoop
    private var fd: FileDescriptor?
    private var registration: EventLoop.Registration?
    private var isConnecting: Bool
    private var peerHasFinished = false
    private let isTCP: Bool
    /// Where bytes that nobody wants are read to.
    private static let discardSize = 64 * 1024

    /// Begins to connect; the handler hears of the outcome. Throws `unavailable` when that is impossible from the start.
    package static func connect(to address: StreamAddress, loop: EventLoop) throws(TransportError) -> StreamSocket {
        let descriptor: Int32
        let result: Int32
        let isTCP: Bool
        switch address {
        case .tcp(let address):
            isTCP = true
            descriptor = clinux_tcp_socket(address.ip.isIPv6)
            guard descriptor >= 0 else { throw exhausted }
            _ = clinux_set_no_delay(descriptor)
            var target = clinux_address(address)
            result = clinux_connect(descriptor, &target)
        case .unix(let path):
            isTCP = false
            descriptor = clinux_unix_socket()
            guard descriptor >= 0 else { throw exhausted }
            result = clinux_connect_unix(descriptor, path)
        }
        let fd = FileDescriptor(descriptor)
        guard result == 0 || result == -EINPROGRESS else {
            throw TransportError(.unavailable, "nobody listens at the address")
        }
        return try StreamSocket(fd, loop: loop, isTCP: isTCP, isConnecting: true)
    }

    private static let exhausted = TransportError(.limit, "the process has no file descriptors left")

    /// Takes over a connected socket.
    convenience init(accepted fd: consuming FileDescriptor, isTCP: Bool, loop: EventLoop) throws(TransportError) {
        if isTCP { _ = clinux_set_no_delay(fd.number) }
        try self.init(fd, loop: loop, isTCP: isTCP, isConnecting: false)
    }

    private init(_ fd: consuming FileDescriptor, loop: EventLoop, isTCP: Bool, isConnecting: Bool) throws(TransportError) {
        let number = fd.number
        self.fd = consume fd
        self.loop = loop
        self.isTCP = isTCP
        self.isConnecting = isConnecting
        isReadable = !isConnecting
        isWritable = !isConnecting
        registration = try loop.register(
            number, [.readable, .writable, .peerFinished, .onChange], handler: Forwarder(self))
    }

    /// What the loop holds, so that a socket that nobody holds is closed.
    private final class Forwarder: ReadinessHandler {
        weak var socket: StreamSocket?

        init(_ socket: StreamSocket) {
            self.socket = socket
        }

        func ready(_ readiness: Readiness) {
            socket?.ready(readiness)
        }
    }

    deinit {
        if let registration, loop.isOnLoop { loop.deregister(registration) }
    }

    private var number: Int32 { fd?.number ?? -1 }

    // MARK: Bytes

    /// Reads up to `limit` bytes to the end of `queue`.
    package func read(into queue: ByteQueue, limit: Int) -> ReadOutcome {
        var capacity = 0
        let result = queue.withFreeVectors(limit: limit) { vectors, count in
            for index in 0..<count { capacity += vectors[index].iov_len }
            return clinux_readv(number, vectors, Int32(count))
        }
        return interpretRead(result, capacity: capacity)
    }

    /// Reads and drops what has arrived.
    package func discard() -> ReadOutcome {
        withUnsafeTemporaryAllocation(byteCount: Self.discardSize, alignment: 16) { space in
            var vector = iovec(iov_base: space.baseAddress, iov_len: space.count)
            return interpretRead(clinux_readv(number, &vector, 1), capacity: space.count)
        }
    }

    private func interpretRead(_ result: Int, capacity: Int) -> ReadOutcome {
        if result > 0 {
            // Fewer bytes than there was room for: all is taken, and the next arrival is an edge (epoll(7)). Unless
            // the peer's end, which came with them, is still to be read.
            if result < capacity, !peerHasFinished { isReadable = false }
            return .bytes(result)
        }
        isReadable = false
        switch Int32(-result) {
        case 0: return .end
        case EAGAIN: return .wouldBlock
        default: return .failed
        }
    }

    /// Writes as much of `bytes` as the socket takes.
    package func write(_ bytes: UnsafeRawBufferPointer) -> WriteOutcome {
        interpretWrite(clinux_send(number, bytes.baseAddress, bytes.count), offered: bytes.count)
    }

    /// Writes from the front of `queue` and consumes what the socket took.
    package func write(from queue: ByteQueue) -> WriteOutcome {
        let (result, offered) = queue.withVectors(from: 0, maxBytes: queue.count, maxVectors: IOLimits.vectors) {
            vectors, bytes in (clinux_sendv(number, vectors.baseAddress, vectors.count), bytes)
        }
        if result > 0 { queue.consume(result) }
        return interpretWrite(result, offered: offered)
    }

    private func interpretWrite(_ result: Int, offered: Int) -> WriteOutcome {
        if result >= 0 {
            if result < offered { isWritable = false }
            return .wrote(result)
        }
        isWritable = false
        return Int32(-result) == EAGAIN ? .wouldBlock : .failed
    }

    // MARK: Ends

    /// Ends this side's direction (FIN).
    package func shutdownWrite() {
        if fd != nil { _ = clinux_shutdown_write(number) }
    }

    /// Closes in order: what was written is still delivered.
    package func close() {
        if let registration { loop.deregister(registration) }
        registration = nil
        fd = nil
        isReadable = false
        isWritable = false
    }

    /// Closes hard: the peer sees a reset (RST).
    package func reset() {
        if fd != nil, isTCP { _ = clinux_set_linger_zero(number) }
        close()
    }

    // MARK: The peer

    /// The Unix user at the other end: of a Unix socket by the kernel's credentials, of a local TCP connection by
    /// asking the kernel who owns the other socket. Nil when it cannot be told.
    package var peerUserID: UInt32? {
        var user = uid_t()
        if !isTCP { return clinux_peer_uid(number, &user) == 0 ? user : nil }
        var local = clinux_address()
        var peer = clinux_address()
        guard clinux_local_address(number, &local) == 0, clinux_peer_address(number, &peer) == 0 else { return nil }
        return clinux_tcp_user(&peer, &local, &user) == 0 ? user : nil
    }

    private func ready(_ readiness: Readiness) {
        if isConnecting {
            guard !readiness.isDisjoint(with: [.writable, .failed]) else { return }
            isConnecting = false
            guard clinux_take_error(number) == 0 else {
                handler?.socketFailed()
                return
            }
            isWritable = true
            isReadable = !readiness.isDisjoint(with: [.readable, .peerFinished])
            handler?.socketConnected()
            return
        }
        if readiness.contains(.peerFinished) { peerHasFinished = true }
        if readiness.contains(Readiness(rawValue: CLINUX_ERROR)) {
            handler?.socketFailed()
            return
        }
        if !readiness.isDisjoint(with: [.readable, .peerFinished, .failed]) {
            isReadable = true
            handler?.socketReadable()
        }
        if readiness.contains(.writable), !isWritable, fd != nil {
            isWritable = true
            handler?.socketWritable()
        }
    }
}
