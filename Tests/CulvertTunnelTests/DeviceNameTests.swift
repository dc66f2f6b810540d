import Testing

@testable import CulvertTunnel

@Suite struct DeviceNameTests {
    @Test(arguments: [
        ("laptop", "laptop"), ("  a b \n", "a b"), ("a\tb", "a b"), ("\u{1b}[31mred", "[31mred"), ("a\0b", "ab"),
        ("\u{202e}evil", "evil"), ("z\u{200b}w", "zw"), ("é日本\u{1f600}", "é日本\u{1f600}"), ("a\u{2028}b", "a b"),
        ("a\r\nb", "a  b"), ("\u{feff}x", "x"), ("\u{e000}x", "x"),
    ])
    func clean(name: String, expected: String) {
        #expect(DeviceName.sanitized(name) == expected)
    }

    @Test(arguments: ["", " ", "\u{0}\u{7f}\u{9b}", "\n\t", "\u{200b}\u{202e}"])
    func nothingLeft(name: String) {
        #expect(DeviceName.sanitized(name) == nil)
    }

    @Test func charactersAtTheirLimitAndOnePast() {
        let longest = String(repeating: "x", count: TunnelLimits.deviceNameCharacters)
        #expect(DeviceName.sanitized(longest) == longest)
        #expect(DeviceName.sanitized(longest + "x") == longest)
        #expect(DeviceName.sanitized(longest.dropLast() + " x") == String(longest.dropLast()))
    }

    @Test func bytesAtTheirLimitAndOnePast() {
        let longest = String(repeating: "\u{1f600}", count: TunnelLimits.deviceNameBytes / 4)
        #expect(DeviceName.sanitized(longest) == longest)
        // One character of 257 bytes: a base and 128 combining marks.
        let tower = "x" + String(repeating: "\u{301}", count: 128)
        #expect(tower.count == 1 && tower.utf8.count == 257)
        #expect(DeviceName.sanitized(tower) == nil)
        #expect(DeviceName.sanitized("ab" + tower) == "ab")
    }
}
