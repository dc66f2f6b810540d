import CLinux
import CulvertCore
import Glibc

/// Files of the state directory: readable by their owner only, replaced as a whole or not at all.
package enum StateFile {
    /// Makes `path` a directory of mode 0700, its parents too; one that exists is left as it is. Throws `state`.
    package static func prepareDirectory(_ path: String) throws(TransportError) {
        var partial = path.hasPrefix("/") ? "/" : ""
        for part in path.split(separator: "/") {
            partial += part
            if mkdir(partial, 0o700) != 0, errno != EEXIST { throw directoryError(errno) }
            partial += "/"
        }
        var information = stat()
        guard stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFDIR else {
            throw TransportError(.state, "the state directory's path is not a directory; choose another --state-dir")
        }
        guard information.st_mode & 0o022 == 0 else {
            throw TransportError(.state, "other users can write to the state directory; run chmod 700 on it")
        }
    }

    /// The bytes of a file, at most `limit`; nil when there is none. Refuses symbolic links and files that others can
    /// read. Throws `state`.
    package static func read(_ path: String, limit: Int) throws(TransportError) -> [UInt8]? {
        let number = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard number >= 0 else {
            switch errno {
            case ENOENT: return nil
            case ELOOP: throw TransportError(.state, "a file in the state directory is a symbolic link; remove it")
            default: throw TransportError(.state, "a file in the state directory cannot be read; check its permissions")
            }
        }
        let fd = FileDescriptor(number)
        var information = stat()
        guard fstat(fd.number, &information) == 0, information.st_mode & S_IFMT == S_IFREG else {
            throw TransportError(.state, "something in the state directory is not a plain file; remove it")
        }
        guard information.st_mode & 0o077 == 0 else {
            throw TransportError(.state, "other users can read a secret file in the state directory; run chmod 600 on it")
        }
        guard information.st_size <= limit else {
            throw TransportError(.state, "a file in the state directory is too large to be what it should be")
        }
        return try readAll(fd.number, count: Int(information.st_size))
    }

    private static func readAll(_ fd: Int32, count: Int) throws(TransportError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let got = bytes.withUnsafeMutableBytes { Glibc.read(fd, $0.baseAddress.map { $0 + filled }, count - filled) }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw TransportError(.state, "a file in the state directory cannot be read") }
            if got == 0 { break }
            filled += got
        }
        return Array(bytes.prefix(filled))
    }

    /// Replaces the file with `bytes`, mode 0600: whoever reads it, even after a power cut, sees the old or the new
    /// content. On failure nothing has changed. Throws `state`.
    package static func write(_ path: String, _ bytes: [UInt8]) throws(TransportError) {
        _ = try place(bytes, at: path) { rename($0, $1) }
    }

    /// Makes the file with `bytes`, mode 0600, as a whole; false when there is one already, which stays. Throws `state`.
    package static func create(_ path: String, _ bytes: [UInt8]) throws(TransportError) -> Bool {
        try place(bytes, at: path) { temporary, path in
            let result = link(temporary, path)
            let code = errno
            unlink(temporary)
            errno = code
            return result
        }
    }

    /// Writes a temporary file and has `move` give it its name; false when that is taken.
    private static func place(_ bytes: [UInt8], at path: String, move: (String, String) -> Int32) throws(TransportError)
        -> Bool
    {
        var template = Array((path + ".XXXXXX").utf8CString)
        let number = clinux_make_temporary(&template)
        guard number >= 0 else { throw writeError(-number) }
        let temporary = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        var isDone = false
        defer { if !isDone { unlink(temporary) } }
        let fd = FileDescriptor(number)
        try writeAll(fd.number, bytes)
        guard fsync(fd.number) == 0 else { throw writeError(errno) }
        guard move(temporary, path) == 0 else {
            if errno == EEXIST { return false }
            throw writeError(errno)
        }
        isDone = true
        syncDirectory(of: path)
        return true
    }

    private static func writeAll(_ fd: Int32, _ bytes: [UInt8]) throws(TransportError) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(fd, $0.baseAddress.map { $0 + written }, $0.count - written) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw writeError(errno) }
            written += count
        }
    }

    /// Removes the file; true when there was one. Throws `state`.
    package static func remove(_ path: String) throws(TransportError) -> Bool {
        guard unlink(path) == 0 else {
            if errno == ENOENT { return false }
            throw TransportError(.state, "a file in the state directory cannot be removed; check its permissions")
        }
        syncDirectory(of: path)
        return true
    }

    /// The names in a directory; empty when there is none.
    package static func list(_ directory: String) -> [String] {
        guard let stream = opendir(directory) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Makes a change of names durable. A failure costs durability in a power cut, not consistency.
    private static func syncDirectory(of path: String) {
        let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let number = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { return }
        fsync(number)
        Glibc.close(number)
    }

    private static func directoryError(_ code: Int32) -> TransportError {
        switch code {
        case EROFS, EACCES, EPERM:
            TransportError(.state, "the state directory cannot be made there; choose another one with --state-dir")
        case ENOSPC, EDQUOT: TransportError(.state, "the disk is full; make room and try again")
        default: TransportError(.state, "the state directory cannot be made; choose another one with --state-dir")
        }
    }

    private static func writeError(_ code: Int32) -> TransportError {
        switch code {
        case ENOSPC, EDQUOT, EFBIG: TransportError(.state, "the disk is full; nothing was changed; make room and try again")
        case EROFS: TransportError(.state, "the state directory is on a read-only file system; choose another --state-dir")
        case EACCES, EPERM:
            TransportError(.state, "the state directory cannot be written; check its permissions or choose --state-dir")
        default: TransportError(.state, "a file could not be written to the state directory; nothing was changed")
        }
    }
}

/// An exclusive lock on a file, held until the object goes away or the process ends.
package final class StateLock: Sendable {
    private let fd: Int32

    /// Takes the lock; nil when another process holds it. Throws `state` when the file cannot be made.
    package init?(_ path: String) throws(TransportError) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard fd >= 0 else {
            throw TransportError(.state, "the state directory cannot be written; check its permissions or choose --state-dir")
        }
        guard clinux_try_lock(fd) == 0 else {
            Glibc.close(fd)
            return nil
        }
    }

    deinit {
        Glibc.close(fd)
    }
}
