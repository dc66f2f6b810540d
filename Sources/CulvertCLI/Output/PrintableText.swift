import CLinux
import Glibc

/// Text from peers and files, made harmless for a terminal.
enum PrintableText {
    /// The text with control characters and marks that reorder lines replaced: a device's name comes from its owner,
    /// and must not move the cursor, recolour the screen or hide what follows.
    static func clean(_ text: String) -> String {
        var cleaned = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { cleaned.append(isHarmful(scalar) ? "\u{fffd}" : scalar) }
        return String(cleaned)
    }

    /// The columns that the text takes on a terminal.
    static func columns(_ text: String) -> Int {
        text.unicodeScalars.reduce(0) { total, scalar in
            scalar.isASCII ? total + 1 : total + max(0, hasUnicodeWidths ? Int(clinux_column_width(scalar.value)) : 1)
        }
    }

    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7f..<0xa0, 0x2028, 0x2029, 0x200e, 0x200f, 0x202a...0x202e, 0x2066...0x2069: true
        default: false
        }
    }

    /// wcwidth(3) knows only ASCII until a UTF-8 locale is set; C.UTF-8 is part of glibc.
    private static let hasUnicodeWidths = setlocale(LC_CTYPE, "C.UTF-8") != nil
}
