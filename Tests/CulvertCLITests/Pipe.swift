import Glibc

/// A pipe whose ends are closed with it.
final class Pipe {
    let reader: Int32
    private(set) var writer: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        precondition(pipe(&ends) == 0)
        reader = ends[0]
        writer = ends[1]
    }

    deinit {
        close(reader)
        closeWriter()
    }

    func closeWriter() {
        if writer >= 0 { close(writer) }
        writer = -1
    }

    func write(_ text: String) {
        let bytes = Array(text.utf8)
        precondition(Glibc.write(writer, bytes, bytes.count) == bytes.count)
    }

    /// Everything up to the end; the writer must be closed.
    func readAll() -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case let count = read(reader, &buffer, buffer.count), count > 0 { bytes += buffer.prefix(count) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
