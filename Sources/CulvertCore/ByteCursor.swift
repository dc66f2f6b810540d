/// Reads a byte sequence from front to back; every read past the end gives nil and consumes nothing.
package struct ByteReader {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    /// A reader over all of `bytes`.
    package init(_ bytes: some Collection<UInt8>) {
        self.bytes = ArraySlice(bytes)
        position = self.bytes.startIndex
    }

    /// How many bytes are left.
    package var remaining: Int { bytes.endIndex - position }

    /// The next byte.
    package mutating func byte() -> UInt8? {
        guard position < bytes.endIndex else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    /// The next `count` bytes.
    package mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= remaining else { return nil }
        defer { position += count }
        return bytes[position..<position + count]
    }

    /// The next unsigned LEB128 number, at most 10 bytes and 64 bits, as postcard writes it.
    package mutating func leb128() -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        let start = position
        while let byte = byte() {
            if shift == 63, byte > 1 { break }
            value |= UInt64(byte & 0x7f) << shift
            if byte & 0x80 == 0 { return value }
            shift += 7
            if shift > 63 { break }
        }
        position = start
        return nil
    }
}

/// Appends numbers and bytes in wire form.
package struct ByteWriter {
    /// What has been written.
    package private(set) var bytes: [UInt8] = []

    /// An empty writer.
    package init() {}

    /// Appends one byte.
    package mutating func byte(_ value: UInt8) { bytes.append(value) }

    /// Appends bytes as they are.
    package mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

    /// Appends `value` as unsigned LEB128.
    package mutating func leb128(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}
