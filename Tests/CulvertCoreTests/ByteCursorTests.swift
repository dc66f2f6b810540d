import CulvertCore
import Testing

@Suite("Byte cursors")
struct ByteCursorTests {
    @Test(
        "LEB128 numbers are written as postcard writes them and read back",
        arguments: [
            (0, [0x00]), (1, [0x01]), (127, [0x7f]), (128, [0x80, 0x01]), (4433, [0xd1, 0x22]),
            (51820, [0xec, 0x94, 0x03]), (65535, [0xff, 0xff, 0x03]),
            (UInt64.max, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ] as [(UInt64, [UInt8])])
    func leb128(value: UInt64, bytes: [UInt8]) {
        var writer = ByteWriter()
        writer.leb128(value)
        #expect(writer.bytes == bytes)
        var reader = ByteReader(bytes)
        #expect(reader.leb128() == value)
        #expect(reader.remaining == 0)
    }

    @Test(
        "a LEB128 number that is cut short or exceeds 64 bits consumes nothing",
        arguments: [
            [], [0x80], [0xff, 0xff], Array(repeating: 0x80, count: 10) + [0x00],
            Array(repeating: 0xff, count: 9) + [0x02], Array(repeating: 0xff, count: 9) + [0x81, 0x00],
        ] as [[UInt8]])
    func malformedLEB128(bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        #expect(reader.leb128() == nil)
        #expect(reader.remaining == bytes.count)
    }

    @Test("reads past the end give nil and consume nothing")
    func bounds() {
        var reader = ByteReader([1, 2, 3, 4].dropFirst())
        #expect(reader.take(4) == nil)
        #expect(reader.take(-1) == nil)
        #expect(reader.take(Int.max) == nil)
        #expect(reader.remaining == 3)
        #expect(reader.byte() == 2)
        #expect(reader.take(2) == [3, 4])
        #expect(reader.byte() == nil)
        #expect(reader.take(0) == [])
    }
}
