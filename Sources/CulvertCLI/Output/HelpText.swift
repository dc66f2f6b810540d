/// Help for a terminal, from the descriptions of the commands.
enum HelpText {
    /// The help of one command, or of the program.
    static func lines(about topic: CommandDescription?) -> [String] {
        topic.map(command) ?? program(Program.descriptions)
    }

    /// The help of the program: what there is.
    static func program(_ commands: [CommandDescription]) -> [String] {
        let entries = commands.map { (label: $0.name, text: $0.summary) }
        return ["usage: culvert COMMAND [OPTIONS] [ARGUMENTS]", ""]
            + wrap(Program.summary) + ["", "Commands:"] + definitions(entries)
            + ["", "culvert help COMMAND tells more about one of them.", "", "Exit codes:"]
            + definitions(ExitCode.allCases.map { ("\($0.rawValue)", $0.meaning) })
    }

    /// The help of one command.
    static func command(_ command: CommandDescription) -> [String] {
        var lines = wrap("usage: \(command.usage)", following: 7) + [""] + wrap(command.summary + ".")
        for paragraph in command.discussion { lines += [""] + wrap(paragraph) }
        if !command.operands.isEmpty {
            lines += ["", "Arguments:"] + definitions(command.operands.map { ($0.metavar, $0.help) })
        }
        lines += ["", "Options:"] + definitions(command.allOptions.map { (label($0), $0.helpWithDefault) })
        if !command.examples.isEmpty {
            lines += ["", "Examples:"]
            for example in command.examples { lines += wrap("# \(example.purpose)", indent: 2) + ["  \(example.line)"] }
        }
        return lines
    }

    private static func label(_ option: OptionDescription) -> String {
        option.letter.map { "-\($0), \(option.synopsis)" } ?? option.synopsis
    }

    /// Labels on the left, their texts in a column beside them.
    private static func definitions(_ entries: [(label: String, text: String)]) -> [String] {
        let column = 4 + (entries.map(\.label.count).max() ?? 0)
        return entries.flatMap { label, text in
            let lines = wrap(text, indent: column)
            let first = "  \(label)" + String(repeating: " ", count: column - 2 - label.count)
            return [first + (lines.first ?? "").dropFirst(column)] + lines.dropFirst()
        }
    }

    /// The text in lines of at most 80 columns, broken at spaces.
    static func wrap(_ text: String, indent: Int = 0, following: Int? = nil) -> [String] {
        var lines: [String] = []
        var line = String(repeating: " ", count: indent)
        var isEmpty = true
        for word in text.split(separator: " ") {
            if !isEmpty, line.count + 1 + word.count > Limits.helpColumns {
                lines.append(line)
                line = String(repeating: " ", count: following ?? indent)
                isEmpty = true
            }
            line += isEmpty ? "\(word)" : " \(word)"
            isEmpty = false
        }
        return lines + [line]
    }
}
