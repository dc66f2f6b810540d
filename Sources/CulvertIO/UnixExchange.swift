import CLinux
import CulvertCore
import Glibc

/// One request and its answer over a Unix socket, blocking; for command-line tools that talk to a daemon.
package enum UnixExchange {
    /// Sends `request` and gives what comes back until the other side closes, at most `answerLimit` bytes within
    /// `timeLimit`. Throws `unavailable` when nobody listens, `timedOut`, and `limit`.
    package static func exchange(_ request: [UInt8], path: String, answerLimit: Int, timeLimit: Duration)
        throws(TransportError) -> [UInt8]
    {
        let fd = FileDescriptor(owning: clinux_unix_socket())
        switch fd.isOpen ? -clinux_connect_unix(fd.number, path) : EMFILE {
        case 0: break
        case EACCES, EPERM: throw StateFile.fault(EACCES, "")
        default:
            throw TransportError(.unavailable, "no host runs with this state directory; start one with culvert host")
        }
        let deadline = SystemClock.monotonic() + timeLimit
        var sent = 0
        while sent < request.count {
            try wait(fd.number, Int16(POLLOUT), until: deadline)
            let count = request.withUnsafeBytes {
                clinux_send(fd.number, $0.baseAddress.map { $0 + sent }, $0.count - sent)
            }
            guard count > 0 || count == -Int(EAGAIN) else { throw gone }
            sent += max(0, count)
        }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            try wait(fd.number, Int16(POLLIN), until: deadline)
            let count = read(fd.number, &buffer, buffer.count)
            if count == 0 { return answer }
            if count < 0, errno == EAGAIN || errno == EINTR { continue }
            guard count > 0 else { throw gone }
            answer += buffer.prefix(count)
            guard answer.count <= answerLimit else { throw TransportError(.limit, "the host's answer is too long") }
        }
    }

    private static let gone = TransportError(.unavailable, "the host ended in the middle of the request")

    private static func wait(_ fd: Int32, _ events: Int16, until deadline: Instant) throws(TransportError) {
        var entry = pollfd(fd: fd, events: events, revents: 0)
        while true {
            let left = (deadline - SystemClock.monotonic()).milliseconds
            guard left > 0 else { throw TransportError(.timedOut, "the host does not answer; is it suspended?") }
            let result = poll(&entry, 1, Int32(left.rounded(.up)))
            if result > 0 { return }
            if result < 0, errno != EINTR { throw gone }
        }
    }
}
