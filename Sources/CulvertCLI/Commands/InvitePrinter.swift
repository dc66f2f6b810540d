/// How an invite is shown to people.
struct InvitePrinter {
    /// When the QR code is drawn.
    let mode: QRMode
    /// What stands above the code.
    var heading: [String] = []
    /// What stands below it, with the link.
    let text: [String]

    /// What goes to standard output, and what remains to be said after it.
    struct Page: Equatable {
        let lines: [String]
        var note: String?
    }

    /// When the QR code is drawn; JSON leaves no room for it.
    static func mode(_ arguments: Arguments, asJSON: Bool) throws(UsageError) -> QRMode {
        let mode = try arguments.value(CommonOptions.qr)
        if asJSON, mode == .always { throw arguments.usageError("--qr always does not go with --json") }
        return asJSON ? .never : mode ?? .auto
    }

    /// Shows the invite `link` on `console`.
    func print(_ link: String, on console: Console) {
        let isWanted = mode == .always || (mode == .auto && console.outputIsTerminal)
        let page = page(isWanted ? QRCode(link) : nil, size: console.outputSize, coloured: console.allowsColour)
        console.lines(page.lines)
        if let note = page.note { console.note(note) }
    }

    /// The page for a terminal of this size; nil when that is not known, and there is room for everything.
    func page(_ code: QRCode?, size: Console.Size?, coloured: Bool) -> Page {
        let rest = (heading.isEmpty ? [] : [""]) + text
        guard let code else { return Page(lines: heading + rest) }
        if mode == .auto, let size {
            let needed = Console.Size(columns: code.columns, lines: linesNeeded(code, columns: size.columns))
            if size.columns < needed.columns || size.lines < needed.lines {
                return Page(
                    lines: heading + rest,
                    note: """
                        No QR code: it needs a terminal of \(needed.columns) columns and \(needed.lines) lines, and this \
                        one has \(size.columns) and \(size.lines); --qr always draws it all the same
                        """)
            }
        }
        return Page(lines: heading + [""] + code.lines(coloured: coloured) + [""] + text)
    }

    /// The lines that the code and what follows it take: a code whose top has scrolled away cannot be scanned.
    private func linesNeeded(_ code: QRCode, columns: Int) -> Int {
        let below = text.map { max(1, (PrintableText.columns($0) + columns - 1) / columns) }.reduce(0, +)
        return code.lineCount + 1 + below + Self.linesAfterwards
    }

    /// A note, and the line on which the cursor then stands.
    private static let linesAfterwards = 2
}
