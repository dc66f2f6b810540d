import CQRencode

/// A QR code (ISO/IEC 18004) of a text, drawn with half-block characters.
struct QRCode: Sendable {
    /// Modules a side, without the quiet zone.
    let size: Int
    private let modules: [Bool]

    /// The light border that the standard asks for, in modules.
    static let quietZone = 4

    /// The smallest code for `text`; nil when it is longer than a code can hold (2,953 bytes).
    init?(_ text: String) {
        // The lowest error correction: a screen has no scratches, and fewer modules are easier to scan.
        guard let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_L) else { return nil }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        guard let data = code.pointee.data else { return nil }
        size = width
        modules = (0..<(width * width)).map { data[$0] & 1 == 1 }
    }

    /// The columns that the drawing takes.
    var columns: Int { size + 2 * QRCode.quietZone }

    /// The lines that the drawing takes.
    var lineCount: Int { (columns + 1) / 2 }

    /// Whether the module is dark; outside the code everything is light.
    func isDark(_ x: Int, _ y: Int) -> Bool {
        (0..<size).contains(x) && (0..<size).contains(y) && modules[y * size + x]
    }

    /// Two rows of modules a line. The light modules are drawn, as most terminals are dark; with `coloured`, white on
    /// black is set, so that the code has the right polarity on any terminal.
    func lines(coloured: Bool) -> [String] {
        let range = -QRCode.quietZone..<(size + QRCode.quietZone)
        return stride(from: range.lowerBound, to: range.upperBound, by: 2).map { y in
            let drawn = range.map { x in
                switch (isDark(x, y), isDark(x, y + 1)) {
                case (false, false): "█"
                case (false, true): "▀"
                case (true, false): "▄"
                case (true, true): " "
                }
            }.joined()
            return coloured ? "\u{1b}[38;5;231;48;5;16m\(drawn)\u{1b}[0m" : drawn
        }
    }
}

/// When a QR code is drawn.
enum QRMode: String, CaseIterable, Sendable {
    /// When standard output is a terminal on which it fits as a whole.
    case auto
    case always
    case never
}
