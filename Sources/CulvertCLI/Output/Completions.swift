/// The shells that completions exist for.
enum Shell: String, CaseIterable, Sendable {
    case bash, zsh, fish

    /// The script that teaches the shell the commands and their options.
    func completions(_ commands: [CommandDescription]) -> [String] {
        switch self {
        case .bash: BashCompletions.lines(commands)
        case .zsh: ZshCompletions.lines(commands)
        case .fish: FishCompletions.lines(commands)
        }
    }

    /// Prints the names of the paired servers. Only names of plain characters: a name comes from whoever made the
    /// invite, and shells expand what completions give them.
    static let serverNames =
        #"culvert servers --json 2>/dev/null | sed -n 's/^ *{"name":"\([A-Za-z0-9._-]*\)".*/\1/p'"#
}

private enum BashCompletions {
    static func lines(_ commands: [CommandDescription]) -> [String] {
        let names = commands.map(\.name).joined(separator: " ")
        return [
            "# bash completion for culvert", "_culvert_servers() {", "    \(Shell.serverNames)", "}", "_culvert() {",
            "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}", "    COMPREPLY=()",
            "    if ((COMP_CWORD == 1)); then",
            "        COMPREPLY=($(compgen -W \"\(names) --help --version\" -- \"$cur\"))",
            "        return", "    fi", "    case ${COMP_WORDS[1]} in",
        ] + commands.flatMap(branch) + ["    esac", "}", "complete -F _culvert culvert"]
    }

    private static func branch(_ command: CommandDescription) -> [String] {
        let valued = command.options.filter { $0.metavar != nil }
        let options = command.allOptions.map { "--\($0.name)" }.joined(separator: " ")
        var lines = ["    \(command.name))"]
        if !valued.isEmpty {
            lines.append("        case $prev in")
            lines += valued.map { "        --\($0.name)) \(reply($0.completion)) return ;;" }
            lines.append("        esac")
        }
        let operand = reply(command.operands.first?.completion ?? .nothing)
        lines.append("        case $cur in")
        lines.append("        -*) COMPREPLY=($(compgen -W \"\(options)\" -- \"$cur\")) ;;")
        if !operand.isEmpty { lines.append("        *) \(operand) ;;") }
        return lines + ["        esac", "        ;;"]
    }

    private static func reply(_ completion: Completion) -> String {
        switch completion {
        case .nothing: ""
        case .words(let words):
            "COMPREPLY=($(compgen -W \"\(words.joined(separator: " "))\" -- \"$cur\"));"
        case .directory: "COMPREPLY=($(compgen -d -- \"$cur\")); compopt -o filenames;"
        case .serverName: "COMPREPLY=($(compgen -W \"$(_culvert_servers)\" -- \"$cur\"));"
        }
    }
}

private enum ZshCompletions {
    static func lines(_ commands: [CommandDescription]) -> [String] {
        [
            "#compdef culvert", "_culvert_servers() {", "    local -a names",
            "    names=(${(f)\"$(\(Shell.serverNames))\"})",
            "    compadd -a names", "}", "_culvert() {", "    local -a commands", "    commands=(",
        ] + commands.map { "        '\($0.name):\(escape($0.summary))'" } + [
            "    )", "    if ((CURRENT == 2)); then", "        _describe command commands", "        return", "    fi",
            "    local command=$words[2]", "    shift words", "    ((CURRENT--))", "    case $command in",
        ] + commands.flatMap(branch) + [
            "    esac", "}",
            "if [[ $funcstack[1] == _culvert ]]; then _culvert \"$@\"; else compdef _culvert culvert; fi",
        ]
    }

    private static func branch(_ command: CommandDescription) -> [String] {
        let options = command.allOptions.map { option in
            let value = option.metavar.map { "=[\(escape(option.help))]:\(escape($0)):\(action(option.completion))" }
            return "            '--\(option.name)\(value ?? "[\(escape(option.help))]")' \\"
        }
        let operands = command.operands.enumerated().map { index, operand in
            "            '\(index + 1):\(escape(operand.metavar)):\(action(operand.completion))' \\"
        }
        let end = ["            && return", "        ;;"]
        return ["    \(command.name))", "        _arguments \\"] + options + operands + end
    }

    private static func action(_ completion: Completion) -> String {
        switch completion {
        case .nothing: ""
        case .words(let words): "(\(words.joined(separator: " ")))"
        case .directory: "_directories"
        case .serverName: "_culvert_servers"
        }
    }

    /// For use in a single-quoted specification of `_arguments`.
    private static func escape(_ text: String) -> String {
        text.reduce(into: "") { escaped, character in
            switch character {
            case "'": escaped += "'\\''"
            case "[", "]", ":", "\\": escaped += "\\\(character)"
            default: escaped.append(character)
            }
        }
    }
}

private enum FishCompletions {
    static func lines(_ commands: [CommandDescription]) -> [String] {
        let listing = commands.map { command in
            "complete -c culvert -n __fish_use_subcommand -a \(command.name) -d '\(escape(command.summary))'"
        }
        return ["# fish completion for culvert", "complete -c culvert -f"] + listing + commands.flatMap(branch)
    }

    private static func branch(_ command: CommandDescription) -> [String] {
        let condition = "complete -c culvert -n '__fish_seen_subcommand_from \(command.name)'"
        let options = command.allOptions.map { option in
            let letter = option.letter.map { " -s \($0)" } ?? ""
            let value = option.metavar == nil ? "" : " -x\(argument(option.completion))"
            return "\(condition) -l \(option.name)\(letter)\(value) -d '\(escape(option.help))'"
        }
        let operand = argument(command.operands.first?.completion ?? .nothing)
        return options + (operand.isEmpty ? [] : [condition + operand])
    }

    private static func argument(_ completion: Completion) -> String {
        switch completion {
        case .nothing: ""
        case .words(let words): " -a '\(words.joined(separator: " "))'"
        case .directory: " -a '(__fish_complete_directories)'"
        case .serverName: " -a '(\(escape(Shell.serverNames)))'"
        }
    }

    /// For use between single quotes.
    private static func escape(_ text: String) -> String {
        text.reduce(into: "") { escaped, character in
            if character == "'" || character == "\\" { escaped += "\\" }
            escaped.append(character)
        }
    }
}
