import CulvertCore
import CulvertTestSupport
import Glibc

@testable import CulvertTunnel

extension Instant {
    /// An instant some seconds after the tests' start of time.
    static func at(_ seconds: Double) -> Instant { Instant(nanoseconds: UInt64(seconds * 1e9)) }

    /// The instant one nanosecond earlier.
    var justBefore: Instant { Instant(nanoseconds: nanoseconds - 1) }
}

/// 32 bytes that begin with `byte`, as a hash or a node ID.
func hash(_ byte: UInt8) -> [UInt8] { (0..<32).map { byte &+ 7 * $0 } }

/// A directory that is there for one test.
final class TemporaryDirectory {
    let path: String

    init() throws {
        var template = Array("/tmp/culvert-tunnel-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure() }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        for name in names { unlink(self / name) }
        rmdir(path)
    }

    struct Failure: Error {}

    static func / (directory: TemporaryDirectory, name: String) -> String { directory.path + "/" + name }

    var names: [String] {
        guard let handle = opendir(path) else { return [] }
        defer { closedir(handle) }
        var names: [String] = []
        while let entry = readdir(handle) {
            let name = withUnsafePointer(to: entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}

func readFile(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { return [] }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return bytes
}

func writeFile(_ path: String, _ bytes: [UInt8], mode: mode_t = 0o600) {
    guard let file = fopen(path, "w") else { return }
    _ = bytes.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, file) }
    fclose(file)
    chmod(path, mode)
}
