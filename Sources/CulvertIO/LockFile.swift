import CLinux
import CulvertCore
import Glibc

/// Keeps a second process from using the same state directory, until it is let go or the process ends.
package struct LockFile: ~Copyable {
    private let descriptor: FileDescriptor

    /// Takes the lock at `path`, making the file (0600) if it is missing; it stays there afterwards.
    ///
    /// Throws `.state` at once when another holder has the lock or the file cannot be made.
    package init(_ path: String) throws(TransportError) {
        // Made before anything can throw: an owner of a noncopyable value is either whole or not there.
        descriptor = FileDescriptor(owning: open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600))
        guard descriptor.isOpen else {
            throw StateFile.fault(errno, "the lock of the state directory cannot be opened")
        }
        switch -clinux_try_lock(descriptor.number) {
        case 0: break
        case EWOULDBLOCK:
            throw TransportError(
                .state, "another culvert process uses this state directory; stop it or choose another --state-dir")
        case let code: throw StateFile.fault(code, "the state directory cannot be locked")
        }
    }
}
