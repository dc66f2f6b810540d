import CulvertCore
import Glibc

/// A TCP address or the path of a Unix socket.
package enum StreamAddress: Hashable, Sendable {
    /// TCP over IPv4 or IPv6.
    case tcp(SocketAddress)
    /// A Unix stream socket, at most 107 bytes of path.
    case unix(String)
}

/// Why a stream socket failed.
package enum StreamFailure: Hashable, Sendable {
    /// Nobody listens at the address.
    case refused
    /// The peer cut the connection off (RST), or closed it while we still sent.
    case reset
    /// There is no route, no such path or no permission.
    case unreachable
    /// The peer's machine did not answer.
    case timedOut
    /// Anything else.
    case other

    /// The meaning of a positive errno.
    init(_ error: Int32) {
        self =
            switch error {
            case ECONNREFUSED: .refused
            case ECONNRESET, EPIPE, ECONNABORTED: .reset
            case EHOSTUNREACH, ENETUNREACH, ENETDOWN, EADDRNOTAVAIL, EACCES, EPERM, ENOENT, ENOTDIR: .unreachable
            case ETIMEDOUT: .timedOut
            default: .other
            }
    }
}

/// Hears about the readiness of a ``StreamSocket``. Confined to the loop.
package protocol StreamSocketHandler: AnyObject {
    /// The connection is made; the socket is writable.
    func socketConnected()
    /// The socket has become readable: there are bytes or the end.
    func socketReadable()
    /// The socket has become writable after a write that it did not take completely.
    func socketWritable()
    /// The attempt to connect failed, or the connection broke; see ``StreamSocket/failure``. Told once, and not when
    /// `read` or `write` has returned `.failed`.
    func socketFailed()
}

/// What a read gave.
package enum StreamRead: Hashable, Sendable {
    /// So many bytes were appended; 0 only for a limit of 0.
    case bytes(Int)
    /// Nothing waits; `socketReadable()` will come.
    case wouldBlock
    /// The peer has finished sending; stays so.
    case end
    /// The connection is broken or closed.
    case failed
}

/// What a write took.
package enum StreamWrite: Hashable, Sendable {
    /// So many bytes; fewer than offered means that the socket is full and `socketWritable()` will come.
    case wrote(Int)
    /// Nothing; `socketWritable()` will come.
    case wouldBlock
    /// The connection is broken or closed.
    case failed
}
