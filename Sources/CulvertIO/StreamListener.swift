import CLinux
import CulvertCore
import Glibc

/// Who takes accepted connections, on the loop.
package protocol StreamListenerHandler: AnyObject {
    /// A client connected.
    func accepted(_ socket: StreamSocket)
}

/// A listening TCP or Unix socket. When the process runs out of descriptors it pauses and goes on by itself. Confined
/// to its loop.
package final class StreamListener {
    /// Who takes connections.
    package weak var handler: (any StreamListenerHandler)?
    /// The bound TCP address; nil for a Unix socket.
    package let localAddress: SocketAddress?

    private let loop: EventLoop
    private let isTCP: Bool
    /// The path to remove on close.
    private let path: String?
    private var fd: FileDescriptor?
    private var registration: EventLoop.Registration?
    private var pause: LoopTimer?

    /// Binds and listens. A Unix socket's file gets mode 0600; one that a dead process left behind is replaced. Throws
    /// `localListener`.
    package static func bind(_ address: StreamAddress, loop: EventLoop) throws(TransportError) -> StreamListener {
        switch address {
        case .tcp(let address): try bindTCP(address, loop)
        case .unix(let path): try bindUnix(path, loop)
        }
    }

    private static func bindTCP(_ address: SocketAddress, _ loop: EventLoop) throws(TransportError) -> StreamListener {
        let fd = FileDescriptor(clinux_tcp_socket(address.ip.isIPv6))
        _ = clinux_set_reuse_address(fd.number)
        var wanted = clinux_address(address)
        switch -clinux_bind(fd.number, &wanted) {
        case 0: break
        case EADDRINUSE: throw TransportError(.localListener, "the port is in use; choose another one")
        case EACCES: throw TransportError(.localListener, "the port needs privileges; choose one above 1023")
        default: throw TransportError(.localListener, "the port cannot be opened")
        }
        guard clinux_listen(fd.number, IOLimits.backlog) == 0 else {
            throw TransportError(.localListener, "the port is in use; choose another one")
        }
        var bound = clinux_address()
        _ = clinux_local_address(fd.number, &bound)
        return try StreamListener(fd, loop: loop, localAddress: SocketAddress(bound), path: nil)
    }

    private static func bindUnix(_ path: String, _ loop: EventLoop) throws(TransportError) -> StreamListener {
        let fd = FileDescriptor(clinux_unix_socket())
        var result = -clinux_bind_unix(fd.number, path)
        if result == EADDRINUSE {
            let probe = FileDescriptor(clinux_unix_socket())
            guard clinux_connect_unix(probe.number, path) == -ECONNREFUSED else {
                throw TransportError(.localListener, "another process serves the control socket")
            }
            unlink(path)
            result = -clinux_bind_unix(fd.number, path)
        }
        switch result {
        case 0: break
        case ENAMETOOLONG:
            throw TransportError(.localListener, "the state directory's path is too long for a socket; use a shorter one")
        default: throw TransportError(.localListener, "the control socket cannot be made in the state directory")
        }
        guard clinux_listen(fd.number, IOLimits.backlog) == 0 else {
            throw TransportError(.localListener, "the control socket cannot be opened")
        }
        return try StreamListener(fd, loop: loop, localAddress: nil, path: path)
    }

    private init(_ fd: consuming FileDescriptor, loop: EventLoop, localAddress: SocketAddress?, path: String?)
        throws(TransportError)
    {
        let number = fd.number
        self.fd = consume fd
        self.loop = loop
        self.localAddress = localAddress
        self.path = path
        isTCP = path == nil
        registration = try loop.register(number, .readable, handler: Forwarder(self))
        pause = LoopTimer(loop: loop) { [unowned self] in self.resume() }
    }

    /// What the loop holds, so that a listener that nobody holds is closed.
    private final class Forwarder: ReadinessHandler {
        weak var listener: StreamListener?

        init(_ listener: StreamListener) {
            self.listener = listener
        }

        func ready(_ readiness: Readiness) {
            listener?.accept()
        }
    }

    deinit {
        if let registration, loop.isOnLoop { loop.deregister(registration) }
    }

    /// Stops listening; a Unix socket's file is removed.
    package func close() {
        if let registration { loop.deregister(registration) }
        registration = nil
        pause = nil
        guard fd != nil else { return }
        fd = nil
        if let path { unlink(path) }
    }

    private func accept() {
        for _ in 0..<IOLimits.acceptsPerTurn {
            guard let listening = fd?.number else { return }
            var peer = clinux_address()
            let accepted = clinux_accept(listening, &peer)
            guard accepted >= 0 else {
                switch -accepted {
                case EMFILE, ENFILE, ENOBUFS, ENOMEM: suspend()
                // The client is gone already; the next one may be there.
                case ECONNABORTED, EPROTO: continue
                default: break
                }
                return
            }
            guard let socket = try? StreamSocket(accepted: FileDescriptor(accepted), isTCP: isTCP, loop: loop) else {
                return suspend()
            }
            handler?.accepted(socket)
        }
    }

    private func suspend() {
        if let registration { loop.modify(registration, []) }
        pause?.arm(at: loop.now + IOLimits.acceptPause)
    }

    private func resume() {
        if let registration { loop.modify(registration, .readable) }
    }
}
