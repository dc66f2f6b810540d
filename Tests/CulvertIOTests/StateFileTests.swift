import CulvertCore
import Glibc
import Testing

@testable import CulvertIO

@Suite(.timeLimit(.minutes(1)))
struct StateFileTests {
    @Test func writesReplaceAllOrNothingWithTheRightMode() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/key"
        #expect(try StateFile.read(path) == nil)
        let old = umask(0)
        defer { umask(old) }
        try StateFile.writeAtomically(path, [1, 2, 3])
        #expect(mode(path) == 0o600)
        #expect(try StateFile.read(path) == [1, 2, 3])
        try StateFile.writeAtomically(path, [UInt8](repeating: 7, count: 100_000))
        #expect(try StateFile.read(path)?.count == 100_000)
        try StateFile.writeAtomically(path, [], access: .worldReadable)
        #expect(mode(path) == 0o644)
        #expect(try StateFile.read(path, access: .worldReadable) == [])
        #expect(directory.names == ["key"])
        try StateFile.remove(path)
        try StateFile.remove(path)
        #expect(directory.names == [])
    }

    @Test func privateFilesThatOthersCanReadAreRefused() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/key"
        try StateFile.writeAtomically(path, [1])
        for loose: mode_t in [0o644, 0o640, 0o601, 0o602] {
            chmod(path, loose)
            let error = #expect(throws: TransportError.self) { try StateFile.read(path) }
            #expect(error?.kind == .state && error?.reason.contains("chmod 600") == true)
        }
        chmod(path, 0o600)
        #expect(try StateFile.read(path) == [1])
    }

    @Test func linksDirectoriesAndHugeFilesAreRefused() throws {
        let directory = try TemporaryDirectory()
        let (path, link) = (directory.path + "/file", directory.path + "/link")
        try StateFile.writeAtomically(path, [1, 2, 3])
        symlink(path, link)
        #expect(throws: TransportError.self) { try StateFile.read(link) }
        #expect(throws: TransportError.self) { try StateFile.read(directory.path) }
        #expect(throws: TransportError.self) { try StateFile.read(path, maxBytes: 2) }
        #expect(try StateFile.read(path, maxBytes: 3) == [1, 2, 3])
        mkfifo(directory.path + "/fifo", 0o600)
        #expect(throws: TransportError.self) { try StateFile.read(directory.path + "/fifo") }
        // Writing replaces a link and leaves what it pointed to.
        try StateFile.writeAtomically(link, [9])
        #expect(try StateFile.read(path) == [1, 2, 3])
        #expect(try StateFile.read(link) == [9])
        #expect(throws: TransportError.self) { _ = try LockFile(directory.path + "/dangling/lock") }
    }

    @Test func failedWritesLeaveNothingBehind() throws {
        let directory = try TemporaryDirectory()
        mkdir(directory.path + "/taken", 0o700)
        defer { rmdir(directory.path + "/taken") }
        #expect(throws: TransportError.self) { try StateFile.writeAtomically(directory.path + "/taken", [1]) }
        #expect(throws: TransportError.self) { try StateFile.writeAtomically(directory.path + "/none/file", [1]) }
        #expect(directory.names == ["taken"])
        // The device answers every write with ENOSPC.
        let full = open("/dev/full", O_WRONLY)
        defer { close(full) }
        let error = #expect(throws: TransportError.self) { try StateFile.writeAll(full, [1, 2, 3]) }
        #expect(error?.kind == .state && error?.reason.contains("disk is full") == true)
    }

    @Test func aFullDiskLeavesTheOldContent() async throws {
        let directory = try TemporaryDirectory()
        let script = """
            unshare -rm sh -c 'mount -t tmpfs -o size=64k none "$0" && cd "$0" && exec "$@"' \(directory.path) "$@" >&2
            """
        #expect(try await Isolated.run("fullDisk", script) == 0)
    }

    @Test(.enabled(if: Isolated.isInside("fullDisk"))) func fullDisk() throws {
        let content = [UInt8](repeating: 3, count: 20_000)
        try StateFile.writeAtomically("./state", content)
        let error = #expect(throws: TransportError.self) {
            try StateFile.writeAtomically("./state", [UInt8](repeating: 4, count: 100_000))
        }
        #expect(error?.kind == .state && error?.reason.contains("disk is full") == true)
        #expect(try StateFile.read("./state") == content)
        #expect(directoryNames(".") == ["state"])
    }

    @Test func aReadOnlyFileSystemIsNamed() async throws {
        let directory = try TemporaryDirectory()
        let script = """
            unshare -rm sh -c 'mount -t tmpfs -o ro none "$0" && cd "$0" && exec "$@"' \(directory.path) "$@" >&2
            """
        #expect(try await Isolated.run("readOnlyDisk", script) == 0)
    }

    @Test(.enabled(if: Isolated.isInside("readOnlyDisk"))) func readOnlyDisk() throws {
        func isNamed(_ error: TransportError?) -> Bool {
            error?.kind == .state && error?.reason.contains("read-only") == true
        }
        #expect(isNamed(#expect(throws: TransportError.self) { try StateFile.writeAtomically("./state", [1]) }))
        #expect(isNamed(#expect(throws: TransportError.self) { try StateFile.makeDirectory("./a/b") }))
        #expect(isNamed(#expect(throws: TransportError.self) { _ = try LockFile("./lock") }))
    }

    @Test func directoriesArePrivateAndCheckedForIt() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/a/b/"
        try StateFile.makeDirectory(path)
        try StateFile.makeDirectory(path)
        #expect(mode(directory.path + "/a") == 0o700)
        #expect(mode(path) == 0o700)
        chmod(path, 0o750)
        let error = #expect(throws: TransportError.self) { try StateFile.makeDirectory(path) }
        #expect(error?.reason.contains("chmod 700") == true)
        try StateFile.makeDirectory(path, access: .worldReadable)
        try StateFile.writeAtomically(directory.path + "/file", [])
        #expect(throws: TransportError.self) { try StateFile.makeDirectory(directory.path + "/file") }
        #expect(throws: TransportError.self) { try StateFile.makeDirectory(directory.path + "/file/below") }
        rmdir(path)
        rmdir(directory.path + "/a")
    }

    @Test func theLockHasOneHolder() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/lock"
        do {
            let held = try LockFile(path)
            let error = #expect(throws: TransportError.self) { _ = try LockFile(path) }
            #expect(error?.kind == .state && error?.reason.contains("another culvert") == true)
            _ = consume held
        }
        // Programs that other tests start share the open file until they have replaced themselves: a moment later.
        while true {
            do {
                _ = try LockFile(path)
                break
            } catch {
                await Task.yield()
            }
        }
        #expect(mode(path) == 0o600)
    }
}
