import CLinux
import CulvertCore
import Glibc

/// Hears about the connections of a ``StreamListener``. Confined to the loop.
package protocol StreamListenerHandler: AnyObject {
    /// A connection came; who does not keep and use `socket` closes it.
    func accepted(_ socket: StreamSocket)
    /// The process is out of descriptors; accepting goes on after ``IOLimits/acceptPause``. Waiting connections stay in
    /// the kernel's queue.
    func acceptingPaused()
}

/// Accepts TCP or Unix connections. Confined to its loop, which keeps it until ``close()``.
package final class StreamListener {
    /// The bound TCP address with the real port; nil for Unix sockets.
    package let localAddress: SocketAddress?
    private let loop: EventLoop
    private let unixPath: String?
    private var descriptor: FileDescriptor
    private var registration: Registration?
    private weak var handler: (any StreamListenerHandler)?
    private var pause: LoopTimer?

    /// Listens at `address` and reports to `handler`, which is held weakly.
    ///
    /// A Unix socket gets mode 0600; a socket file at which nobody answers is replaced. Throws `.localListener` when
    /// the address cannot be had, `.limit` when the process is out of descriptors.
    package init(
        at address: StreamAddress, loop: EventLoop, handler: any StreamListenerHandler
    ) throws(TransportError) {
        self.loop = loop
        self.handler = handler
        let bound: Int32
        switch address {
        case .tcp(let target):
            var raw = clinux_address(target)
            descriptor = FileDescriptor(owning: clinux_tcp_socket(raw.family == 6))
            unixPath = nil
            guard descriptor.isOpen else { throw BindFailure(descriptor.number).transportError }
            // Without this the port of a listener that has just ended stays taken for a minute.
            _ = clinux_set_reuse_address(descriptor.number)
            if raw.family == 6 { _ = clinux_set_v6_only(descriptor.number, !target.ip.isUnspecified) }
            bound = clinux_bind(descriptor.number, &raw)
        case .unix(let path):
            descriptor = FileDescriptor(owning: clinux_unix_socket())
            unixPath = path
            guard descriptor.isOpen else { throw BindFailure(descriptor.number).transportError }
            bound = try Self.bindUnix(descriptor.number, path)
        }
        guard bound == 0 else { throw BindFailure(bound).transportError }
        let listening = clinux_listen(descriptor.number, IOLimits.listenBacklog)
        guard listening == 0 else { throw BindFailure(listening).transportError }
        var raw = clinux_address.none
        _ = clinux_local_address(descriptor.number, &raw)
        localAddress = raw.socketAddress
        registration = try loop.register(descriptor.number, mode: .level, interest: .readable, handler: self)
    }

    /// Stops accepting; waiting connections are reset, the file of a Unix socket is removed. A second call does nothing.
    package func close() {
        guard descriptor.isOpen else { return }
        pause?.disarm()
        if let registration { loop.deregister(registration) }
        registration = nil
        if let unixPath { _ = unlink(unixPath) }
        descriptor.close()
    }

    private static func bindUnix(_ fd: Int32, _ path: String) throws(TransportError) -> Int32 {
        let first = clinux_bind_unix(fd, path)
        if first == -ENAMETOOLONG {
            throw TransportError(
                .localListener, "the path of the Unix socket is longer than 107 bytes; choose a shorter one")
        }
        if first == -ENOENT || first == -ENOTDIR || first == -EACCES || first == -EROFS {
            throw TransportError(
                .localListener, "the directory of the Unix socket is missing or may not be written to")
        }
        guard first == -EADDRINUSE else { return first }
        guard isSocket(path) else {
            throw TransportError(
                .localListener, "the path of the Unix socket is taken by another file; remove that file")
        }
        let probe = FileDescriptor(owning: clinux_unix_socket())
        guard probe.isOpen else { throw BindFailure(probe.number).transportError }
        guard clinux_connect_unix(probe.number, path) == -ECONNREFUSED else {
            throw TransportError(.localListener, "another program listens on the Unix socket; stop it first")
        }
        _ = unlink(path)
        return clinux_bind_unix(fd, path)
    }

    private static func isSocket(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }
}

extension StreamListener: ReadinessHandler {
    /// Called by the loop.
    package func ready(_ events: Readiness) {
        for _ in 0..<IOLimits.acceptsPerTurn {
            guard descriptor.isOpen else { return }
            var peer = clinux_address.none
            let fd = clinux_accept(descriptor.number, &peer)
            if fd >= 0 {
                deliver(fd, peer)
                continue
            }
            switch -fd {
            case EAGAIN: return
            case EMFILE, ENFILE, ENOMEM, ENOBUFS: return rest()
            // The connection broke before it was accepted; the next one may be fine.
            default: continue
            }
        }
    }

    private func deliver(_ fd: Int32, _ peer: clinux_address) {
        // Registering fails only when the system is out of watches: then this connection is closed, the next may pass.
        guard let socket = try? StreamSocket(accepted: fd, peer: peer.socketAddress, loop: loop) else { return }
        if let handler { handler.accepted(socket) } else { socket.close() }
    }

    private func rest() {
        guard let registration else { return }
        loop.modify(registration, interest: [])
        let timer = pause ?? LoopTimer(loop: loop) { [weak self] in self?.resume() }
        pause = timer
        timer.arm(at: loop.now + IOLimits.acceptPause)
        handler?.acceptingPaused()
    }

    private func resume() {
        guard let registration else { return }
        loop.modify(registration, interest: .readable)
    }
}
