import CulvertCore
import CulvertIdentity
import Glibc
import Synchronization

@testable import Culvert

/// A directory that is there for one test, with what is in it.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/culvert-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure("mkdtemp") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { Self.remove(path) }

    /// A state directory inside.
    func state(_ name: String = "state") -> StateDirectory { StateDirectory(path: path + "/" + name) }

    static func names(in path: String) -> [String] {
        guard let handle = opendir(path) else { return [] }
        defer { closedir(handle) }
        var names: [String] = []
        while let entry = readdir(handle) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    private static func remove(_ path: String) {
        chmod(path, 0o700)
        for name in names(in: path) {
            let child = path + "/" + name
            if unlink(child) != 0 { remove(child) }
        }
        rmdir(path)
    }
}

/// Something that a test needs went wrong.
struct Failure: Error {
    let what: String
    init(_ what: String) { self.what = what }
}

func readFile(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { return [] }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return bytes
}

func writeFile(_ path: String, _ text: String, mode: mode_t = 0o600) {
    guard let file = fopen(path, "w") else { return }
    fputs(text, file)
    fclose(file)
    chmod(path, mode)
}

/// Runs blocking work on a thread of its own.
func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        detach { continuation.resume(with: Result(catching: body)) }
    }
}

/// Runs `body` on a thread of its own.
func detach(_ body: @escaping @Sendable () -> Void) {
    final class Start {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let result = pthread_create(
        &thread, nil,
        { argument in
            if let argument { Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body() }
            return nil
        }, Unmanaged.passRetained(Start(body)).toOpaque())
    precondition(result == 0)
    pthread_detach(thread)
}

/// The kind of the error that `body` throws; nil when it throws none.
func failure(_ body: () async throws -> some Any) async -> ErrorKind? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? TransportError)?.kind
    }
}

/// How many descriptors this process has open.
func openDescriptors() -> Int {
    TemporaryDirectory.names(in: "/proc/self/fd").count
}
