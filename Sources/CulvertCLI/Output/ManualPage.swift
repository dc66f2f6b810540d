/// The manual page culvert(1), in man(7) macros.
enum ManualPage {
    /// The page's lines.
    static func lines(_ commands: [CommandDescription]) -> [String] {
        var page = [
            ".TH CULVERT 1 \"\" \"culvert \(Program.version)\" \"User Commands\"", ".SH NAME",
            "culvert \\- reach an HTTP server that has no public name, port or certificate", ".SH SYNOPSIS",
            ".B culvert", ".I COMMAND", "[OPTIONS] [ARGUMENTS]", ".SH DESCRIPTION", escape(Program.summary),
            ".SH COMMANDS",
        ]
        for command in commands { page += section(command) }
        page += [".SH EXIT STATUS"]
        for code in ExitCode.allCases { page += [".TP", ".B \(code.rawValue)", escape(code.meaning)] }
        let files = """
            Identity, paired servers and devices. Without XDG_STATE_HOME it is ~/.local/state/culvert; --state-dir \
            names another directory
            """
        return page + [".SH FILES"] + definition("$XDG_STATE_HOME/culvert", files)
    }

    private static func section(_ command: CommandDescription) -> [String] {
        var lines = [".SS \(escape(command.usage))", escape(command.summary + ".")]
        for paragraph in command.discussion { lines += [".PP", escape(paragraph)] }
        for operand in command.operands { lines += definition(operand.metavar, operand.help) }
        for option in command.allOptions {
            let label = option.letter.map { "-\($0), \(option.synopsis)" } ?? option.synopsis
            lines += definition(label, option.helpWithDefault)
        }
        for example in command.examples {
            lines += [".PP", escape(example.purpose + ":"), ".PP", ".EX", escape("    " + example.line), ".EE"]
        }
        return lines
    }

    private static func definition(_ label: String, _ text: String) -> [String] {
        [".TP", "\\fB\(escape(label))\\fR", escape(text) + "."]
    }

    /// Keeps text from being taken for requests, and dashes from becoming hyphens, which cannot be pasted.
    private static func escape(_ text: String) -> String {
        let escaped = text.reduce(into: "") { line, character in
            switch character {
            case "\\": line += "\\e"
            case "-": line += "\\-"
            case "'": line += "\\(aq"
            case "~": line += "\\(ti"
            default: line.append(character)
            }
        }
        return escaped.hasPrefix(".") ? "\\&" + escaped : escaped
    }
}
