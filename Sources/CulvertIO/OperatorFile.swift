import CulvertCore
import Glibc

/// Reads files that an operator wrote, such as a configuration. Links are followed: `/etc` is full of them.
package enum OperatorFile {
    /// The content of the file at `path`, at most `maxBytes`.
    ///
    /// With `isSecret`, a file that everyone may read or write is refused; a group may, as service managers hand out
    /// secrets that way. All errors are of kind `.state`.
    package static func read(_ path: String, maxBytes: Int, isSecret: Bool = false) throws(TransportError) -> [UInt8] {
        let file = FileDescriptor(owning: open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK))
        guard file.isOpen else {
            throw errno == ENOENT
                ? TransportError(.state, "there is no such file")
                : TransportError(.state, "the file cannot be opened; check its owner and its mode")
        }
        var status = stat()
        guard fstat(file.number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw TransportError(.state, "it is not a regular file")
        }
        guard !isSecret || status.st_mode & 0o007 == 0 else {
            throw TransportError(.state, "the file is open to everyone on this machine; run chmod o= on it")
        }
        var content: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let count = Glibc.read(file.number, &part, part.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw TransportError(.state, "the file cannot be read") }
            if count == 0 { return content }
            guard content.count + count <= maxBytes else { throw TransportError(.state, "the file is too large") }
            content += part[..<count]
        }
    }
}
