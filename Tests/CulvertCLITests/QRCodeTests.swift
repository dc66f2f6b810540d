import Testing

@testable import CulvertCLI

@Suite struct QRCodeTests {
    /// The modules that a drawing shows, dark ones true, two rows a line.
    private func modules(_ lines: [String]) -> [[Bool]] {
        lines.flatMap { line in
            [
                line.map { $0 == " " || $0 == "▄" },
                line.map { $0 == " " || $0 == "▀" },
            ]
        }
    }

    @Test(arguments: [1, 17, 100, 900, 2953])
    func drawingHasTheStandardsStructure(_ length: Int) throws {
        let code = try #require(QRCode(String(repeating: "a", count: length)))
        #expect((code.size - 17) % 4 == 0)
        let lines = code.lines(coloured: false)
        let drawn = modules(lines)
        #expect(lines.count == (code.size + 9) / 2)
        #expect(drawn.allSatisfy { $0.count == code.columns })

        let inside = 4..<(4 + code.size)
        for (y, row) in drawn.enumerated() {
            for (x, isDark) in row.enumerated() where !(inside.contains(x) && inside.contains(y)) {
                #expect(!isDark, "the quiet zone is light")
            }
        }
        for (left, top) in [(0, 0), (code.size - 7, 0), (0, code.size - 7)] {
            for y in 0..<7 {
                for x in 0..<7 {
                    let ring = max(abs(x - 3), abs(y - 3))
                    #expect(drawn[4 + top + y][4 + left + x] == (ring != 2), "finder pattern")
                }
            }
        }
        for position in 8..<(code.size - 8) {
            #expect(drawn[4 + 6][4 + position] == (position % 2 == 0), "timing pattern")
        }
    }

    @Test func tooLongForACode() {
        #expect(QRCode(String(repeating: "a", count: 2954)) == nil)
    }

    @Test func colourFixesThePolarity() throws {
        let code = try #require(QRCode("a"))
        let line = try #require(code.lines(coloured: true).first)
        #expect(line.hasPrefix("\u{1b}[38;5;231;48;5;16m█"))
        #expect(line.hasSuffix("\u{1b}[0m"))
    }

    @Test func modesOfDrawing() {
        let pipe = Pipe()
        let console = Console(output: pipe.writer, error: pipe.writer)
        #expect(InvitePrinter.code("a", .auto, console) == [""])
        #expect(InvitePrinter.code("a", .never, console) == [""])
        #expect(InvitePrinter.code("a", .always, console).count > 10)
    }
}
