import CulvertCore
import Glibc

@testable import CulvertIO

/// Runs code on a loop's thread.
actor OnLoop {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    var value = 0

    init(_ loop: EventLoop) { self.loop = loop }

    func run<T: Sendable>(_ body: @Sendable () throws -> T) rethrows -> T { try body() }

    func increment() { value += 1 }
}

/// Runs `body` on a fresh loop and ends the loop afterwards.
func withLoop<T>(_ body: (OnLoop) async throws -> T) async throws -> T {
    let loop = try EventLoop(name: "test")
    defer { loop.stop() }
    return try await body(OnLoop(loop))
}

/// Holds something confined to a loop while the test, which is elsewhere, decides what to do with it there.
// @unchecked: tests touch `value` only on its loop, by `OnLoop.run`.
final class Confined<T>: @unchecked Sendable {
    let value: T
    init(_ value: T) { self.value = value }
}

/// Events in order, for a test to wait for.
final class Events<T: Sendable>: Sendable {
    private let continuation: AsyncStream<T>.Continuation
    private let stream: AsyncStream<T>

    init() { (stream, continuation) = AsyncStream.makeStream(of: T.self) }

    func yield(_ event: T) { continuation.yield(event) }

    func next() async -> T? {
        var iterator = stream.makeAsyncIterator()
        return await iterator.next()
    }

    func next(_ count: Int) async -> [T] {
        var events: [T] = []
        for _ in 0..<count { if let event = await next() { events.append(event) } }
        return events
    }
}

/// A directory that is removed at the end.
struct TemporaryDirectory: ~Copyable {
    let path: String

    init() throws {
        var template = Array("/tmp/culvert-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TransportError(.state, "no temporary directory") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        for name in names { unlink("\(path)/\(name)") }
        chmod(path, 0o700)
        rmdir(path)
    }

    /// What is in the directory.
    var names: [String] { directoryNames(path) }
}

func directoryNames(_ path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
}

func mode(_ path: String) -> mode_t {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o777 : 0
}
