/// How an invite is shown to people.
enum InvitePrinter {
    /// When the QR code is drawn; JSON leaves no room for it.
    static func mode(_ arguments: Arguments, asJSON: Bool) throws(UsageError) -> QRMode {
        let mode = try arguments.value(CommonOptions.qr)
        if asJSON, mode == .always { throw arguments.usageError("--qr always does not go with --json") }
        return asJSON ? .never : mode ?? .auto
    }

    /// The QR code's lines with an empty line on either side, or an empty line when there is none.
    static func code(_ link: String, _ mode: QRMode, _ console: Console) -> [String] {
        let isWanted = mode == .always || (mode == .auto && console.outputIsTerminal)
        guard isWanted, let code = QRCode(link) else { return [""] }
        if mode == .auto, let columns = console.outputColumns, columns < code.columns {
            console.note("The QR code needs a terminal of \(code.columns) columns; this one has \(columns)")
            return [""]
        }
        return [""] + code.lines(coloured: console.allowsColour) + [""]
    }
}
