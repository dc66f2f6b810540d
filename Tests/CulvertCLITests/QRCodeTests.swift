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

    @Test(arguments: [(QRMode.auto, false), (.never, false), (.always, true)])
    func modesOfDrawing(_ mode: QRMode, _ isDrawn: Bool) {
        let pipe = Pipe()
        let console = Console(output: pipe.writer, error: pipe.writer)
        InvitePrinter(mode: mode, heading: ["h"], text: ["t"]).print("a", on: console)
        pipe.closeWriter()
        let lines = pipe.readAll().split(separator: "\n", omittingEmptySubsequences: false)
        #expect((lines.count > 10) == isDrawn)
        #expect(lines.first == "h" && lines.suffix(3) == ["", "t", ""])
    }

    @Test func drawsOnlyWhereAllOfItFits() throws {
        let code = try #require(QRCode("a"))
        // On 30 columns the text takes 1 + 1 + 2 lines; an empty line stands above it, a note and the cursor below.
        let printer = InvitePrinter(mode: .auto, text: ["link", "", String(repeating: "x", count: 31)])
        let needed = code.lineCount + 1 + 4 + 2
        func isDrawn(_ columns: Int, _ lines: Int) -> Bool {
            let page = printer.page(code, size: .init(columns: columns, lines: lines), coloured: false)
            #expect(page.lines.suffix(3) == printer.text[...])
            #expect((page.note == nil) == (page.lines.count > 3))
            return page.note == nil
        }
        #expect(code.columns == 29)
        #expect(isDrawn(30, needed) && !isDrawn(30, needed - 1))
        // 31 columns spare a line of the text, and 28 are too few for the code itself.
        #expect(isDrawn(31, needed - 1) && !isDrawn(28, 1000))
    }

    @Test func saysWhyThereIsNoCode() throws {
        let code = try #require(QRCode("a"))
        let printer = InvitePrinter(mode: .auto, text: ["link"])
        let page = printer.page(code, size: .init(columns: 20, lines: 24), coloured: false)
        #expect(page.lines == ["link"])
        #expect(
            page.note == """
                No QR code: it needs a terminal of 29 columns and 19 lines, and this one has 20 and 24; --qr always draws \
                it all the same
                """)
    }

    @Test func alwaysMeansAlways() throws {
        let code = try #require(QRCode("a"))
        let page = InvitePrinter(mode: .always, text: ["t"]).page(
            code, size: .init(columns: 1, lines: 1), coloured: false)
        #expect(page.lines.count > 10 && page.note == nil)
    }
}
