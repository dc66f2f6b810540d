import CulvertCore
import CulvertTestSupport
import Glibc

@testable import CulvertTunnel

extension SplitMix64 {
    /// `bytes` cut at random places, empty pieces included.
    mutating func chunks(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var pieces: [ArraySlice<UInt8>] = []
        var rest = bytes[...]
        let longest = Int.random(in: 1...max(1, min(bytes.count, 300)), using: &self)
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 0...longest, using: &self))
            pieces.append(piece)
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }

    /// `bytes` with one thing wrong: cut short, a bit flipped, a byte changed, removed, doubled or put in.
    mutating func damaged(_ bytes: [UInt8]) -> [UInt8] {
        guard !bytes.isEmpty else { return self.bytes(8) }
        var bytes = bytes
        let index = Int.random(in: bytes.indices, using: &self)
        switch Int.random(in: 0..<6, using: &self) {
        case 0: bytes.removeSubrange(index...)
        case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &self)
        case 2: bytes[index] = UInt8.random(in: 0...255, using: &self)
        case 3: bytes.remove(at: index)
        case 4: bytes.insert(bytes[index], at: index)
        default: bytes.insert(UInt8.random(in: 0...255, using: &self), at: index)
        }
        return bytes
    }

}

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
