/// A JSON value whose keys keep their order, so that a line reads `event` first and is the same in every run.
indirect enum JSON: Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    /// A number with up to three decimals, without the noise of binary fractions.
    case thousandths(Int64)
    case string(String)
    case array([JSON])
    case object([(key: String, value: JSON)])

    /// A duration in milliseconds, to the microsecond.
    static func milliseconds(_ duration: Duration) -> JSON {
        let (seconds, attoseconds) = duration.components
        return .thousandths(seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
    }

    /// The value in one line.
    var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .integer(let value): "\(value)"
        case .thousandths(let value): JSON.decimal(value)
        case .string(let value): JSON.quoted(value)
        case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { "\(JSON.quoted($0.key)):\($0.value.text)" }.joined(separator: ",") + "}"
        }
    }

    /// An array with one element a line: as easy to read by people and line tools as by a parser.
    static func lines(_ values: [JSON]) -> [String] {
        guard let last = values.last else { return ["[]"] }
        return ["["] + values.dropLast().map { "  \($0.text)," } + ["  \(last.text)", "]"]
    }

    private static func decimal(_ thousandths: Int64) -> String {
        let sign = thousandths < 0 ? "-" : ""
        let (whole, rest) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1000)
        if rest == 0 { return "\(sign)\(whole)" }
        var digits = String(String(1000 + rest).dropFirst())
        while digits.hasSuffix("0") { digits.removeLast() }
        return "\(sign)\(whole).\(digits)"
    }

    /// RFC 8259 section 7. The C1 controls are escaped too: some terminals obey them.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case "\u{0}"..<" ", "\u{7f}"..<"\u{a0}":
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
