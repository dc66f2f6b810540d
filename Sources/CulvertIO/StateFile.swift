import CLinux
import CulvertCore
import Glibc

/// Reads and replaces small files of the state directory, so that a crash or a full disk leaves the old or the new
/// content and never a part. Blocking, callable from any thread. All errors are of kind `.state`.
package enum StateFile {
    /// Who may read a file or enter a directory.
    package enum Access: Sendable {
        /// Only the owner (0600, directories 0700); refused when group or others have any right.
        case ownerOnly
        /// Anyone may read (0644, directories 0755).
        case worldReadable

        var fileMode: mode_t { self == .ownerOnly ? 0o600 : 0o644 }
        var directoryMode: mode_t { self == .ownerOnly ? 0o700 : 0o755 }
    }

    // MARK: Reading

    /// The content of the file at `path`; nil when there is none.
    ///
    /// Refuses what is not a regular file (a symbolic link too: it would let another user choose the file), what is
    /// larger than `maxBytes`, and, for `.ownerOnly`, a file of another user or one that others may read or write.
    /// `openToOthers` is the message for the latter, which may name the file.
    package static func read(
        _ path: String, maxBytes: Int = IOLimits.stateFileBytes, access: Access = .ownerOnly,
        openToOthers: StaticString = "a private state file is open to other users; run chmod 600 on it"
    ) throws(TransportError) -> [UInt8]? {
        let fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if fd < 0, errno == ENOENT { return nil }
        let file = FileDescriptor(owning: fd)
        guard file.isOpen else {
            throw errno == ELOOP
                ? TransportError(.state, "a state file is a symbolic link; replace it by the file itself")
                : fault(errno, "a state file cannot be opened; check its owner and its mode")
        }
        var status = stat()
        guard fstat(fd, &status) == 0 else { throw fault(errno, "a state file cannot be examined") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw TransportError(.state, "a state file is not a regular file; move it away")
        }
        if access == .ownerOnly {
            guard status.st_uid == geteuid() else {
                throw TransportError(
                    .state, "a private state file belongs to another user; run as that user or change its owner")
            }
            guard status.st_mode & 0o077 == 0 else {
                throw TransportError(.state, openToOthers)
            }
        }
        return try readAll(fd, maxBytes: maxBytes)
    }

    /// The content of any readable file, with no demands on its kind; for /proc.
    static func contents(_ path: String, maxBytes: Int) throws(TransportError) -> [UInt8] {
        let file = FileDescriptor(owning: open(path, O_RDONLY | O_CLOEXEC))
        guard file.isOpen else { throw fault(errno, "a file cannot be opened") }
        return try readAll(file.number, maxBytes: maxBytes)
    }

    private static func readAll(_ fd: Int32, maxBytes: Int) throws(TransportError) -> [UInt8] {
        var content: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let count = Glibc.read(fd, &part, part.count)
            if count < 0, errno == EINTR { continue }
            if count < 0 { throw fault(errno, "a state file cannot be read") }
            if count == 0 { return content }
            guard content.count + count <= maxBytes else {
                throw TransportError(.state, "a state file is larger than this program writes; move it away")
            }
            content.append(contentsOf: part[..<count])
        }
    }

    // MARK: Writing

    /// Replaces the file at `path` by one with `bytes`, all or nothing, also across a power failure.
    ///
    /// The content goes to a temporary file in the same directory, which is synced and renamed. On failure it is
    /// removed, and the old file is as it was. A symbolic link at `path` is replaced, not followed.
    package static func writeAtomically(
        _ path: String, _ bytes: [UInt8], access: Access = .ownerOnly
    ) throws(TransportError) {
        _ = try place(bytes, at: path, access: access) { rename($0, path) }
    }

    /// Makes the file at `path` with `bytes`, all or nothing; false when there is one already, which stays as it is.
    package static func createAtomically(_ path: String, _ bytes: [UInt8]) throws(TransportError) -> Bool {
        try place(bytes, at: path, access: .ownerOnly) { temporary in
            guard link(temporary, path) == 0 else { return -1 }
            return unlink(temporary)
        }
    }

    /// Writes a temporary file next to `path` and has `move` give it its name; false when that is taken.
    private static func place(
        _ bytes: [UInt8], at path: String, access: Access, move: ([CChar]) -> Int32
    ) throws(TransportError) -> Bool {
        let directory = parent(of: path)
        var temporary = Array("\(path).XXXXXX".utf8CString)
        var file = FileDescriptor(owning: clinux_make_temporary(&temporary))
        guard file.isOpen else { throw fault(-file.number, "a state file cannot be created") }
        do throws(TransportError) {
            if access != .ownerOnly, fchmod(file.number, access.fileMode) != 0 {
                throw fault(errno, "the mode of a state file cannot be set")
            }
            try writeAll(file.number, bytes)
            guard fsync(file.number) == 0 else { throw fault(errno, "a state file cannot be written") }
            file.close()
            guard move(temporary) == 0 else {
                let code = errno
                guard code == EEXIST else { throw fault(code, "a state file cannot be replaced") }
                _ = unlink(temporary)
                return false
            }
        } catch {
            _ = unlink(temporary)
            throw error
        }
        // The rename is done; the sync only settles when it lasts. Some file systems cannot sync directories.
        let parent = FileDescriptor(owning: open(directory, O_RDONLY | O_CLOEXEC | O_DIRECTORY))
        if parent.isOpen { _ = fsync(parent.number) }
        return true
    }

    static func writeAll(_ fd: Int32, _ bytes: [UInt8]) throws(TransportError) {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes { write(fd, $0.baseAddress.map { $0 + offset }, $0.count - offset) }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { throw fault(errno, "a state file cannot be written") }
            offset += count
        }
    }

    /// Removes the file at `path`; does nothing when there is none.
    package static func remove(_ path: String) throws(TransportError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw fault(errno, "a state file cannot be removed") }
    }

    // MARK: Directories

    /// The names in the directory at `path`, sorted; none when there is no such directory.
    package static func names(in path: String) throws(TransportError) -> [String] {
        guard let stream = opendir(path) else {
            if errno == ENOENT { return [] }
            throw fault(errno, "the state directory cannot be read")
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Makes the directory at `path` and those above it if they are missing (these with mode 0700 as well).
    ///
    /// Refuses one that is not a directory, belongs to another user or, for `.ownerOnly`, is open to others.
    package static func makeDirectory(_ path: String, access: Access = .ownerOnly) throws(TransportError) {
        if mkdir(path, access.directoryMode) != 0 {
            switch errno {
            case EEXIST: break
            case ENOENT:
                let above = parent(of: path)
                guard above != path else { throw fault(ENOENT, "the state directory cannot be made") }
                try makeParents(above)
                guard mkdir(path, access.directoryMode) == 0 || errno == EEXIST else {
                    throw fault(errno, "the state directory cannot be made")
                }
            default: throw fault(errno, "the state directory cannot be made")
            }
        }
        var status = stat()
        guard stat(path, &status) == 0 else { throw fault(errno, "the state directory cannot be examined") }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw TransportError(.state, "the path of the state directory is taken by a file; choose another one")
        }
        guard access == .ownerOnly else { return }
        guard status.st_uid == geteuid() else {
            throw TransportError(
                .state, "the state directory belongs to another user; choose another one or change its owner")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw TransportError(.state, "the state directory is open to other users; run chmod 700 on it")
        }
    }

    private static func makeParents(_ path: String) throws(TransportError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        let above = parent(of: path)
        guard errno == ENOENT, above != path else { throw fault(errno, "the state directory cannot be made") }
        try makeParents(above)
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw fault(errno, "the state directory cannot be made")
        }
    }

    private static func parent(of path: String) -> String {
        var text = Substring(path)
        while text.count > 1, text.hasSuffix("/") { text = text.dropLast() }
        guard let slash = text.lastIndex(of: "/") else { return "." }
        return slash == text.startIndex ? "/" : String(text[..<slash])
    }

    // MARK: Errors

    /// The error for `code`, in words that say what to do where they can.
    static func fault(_ code: Int32, _ otherwise: StaticString) -> TransportError {
        switch code {
        case ENOSPC, EDQUOT:
            TransportError(
                .state, "the disk is full or the quota used up, nothing was changed; free some space and try again")
        case EROFS: TransportError(.state, "the state directory is on a read-only file system; choose another one")
        case EACCES, EPERM:
            TransportError(
                .state, "the state directory may not be read or written by this user; check owners and modes")
        case EMFILE, ENFILE:
            TransportError(.limit, "no more files can be opened; raise the limit on open files")
        default: TransportError(.state, otherwise)
        }
    }
}
