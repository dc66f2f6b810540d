/// Columns of text, aligned, two spaces apart.
struct Table {
    /// The headings, in capitals by custom.
    let headings: [String]
    /// One row per thing; each has as many cells as there are headings.
    var rows: [[String]] = []

    /// The heading and the rows, without trailing spaces. Cells are cleaned: they may hold what a peer chose.
    var lines: [String] {
        let table = ([headings] + rows).map { $0.map(PrintableText.clean) }
        let widths = headings.indices.map { column in
            table.map { PrintableText.columns($0[column]) }.max() ?? 0
        }
        return table.map { row in
            let padded = zip(row, widths).map { cell, width in
                cell + String(repeating: " ", count: width - PrintableText.columns(cell))
            }
            let line = padded.joined(separator: "  ")
            return String(line.prefix(line.count - line.reversed().prefix { $0 == " " }.count))
        }
    }
}
