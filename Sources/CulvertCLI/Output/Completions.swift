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

    /// Prints the names of the paired servers, one a line. A name that JSON has to escape is left out.
    ///
    /// Names come from whoever made the invite, so each shell must quote what it inserts and expand nothing.
    static let serverNames =
        #"culvert servers --json 2>/dev/null | sed -n 's/^ *{"name":"\([^"\\]*\)".*/\1/p'"#

    /// Prints the names of the devices that are not revoked, in the same way.
    static let deviceNames =
        #"culvert devices --json 2>/dev/null | sed -n '/"revoked":false/s/^ *{"id":"[^"]*","name":"\([^"\\]*\)".*/\1/p'"#
}

private enum BashCompletions {
    static func lines(_ commands: [CommandDescription]) -> [String] {
        let names = commands.map(\.name).joined(separator: " ")
        return [
            "# bash completion for culvert", "_culvert_servers() {", "    \(Shell.serverNames)", "}",
            "_culvert_devices() {", "    \(Shell.deviceNames)", "}",
        ] + replyWithNames + [
            "_culvert() {", "    local commands='\(names)'",
            "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}", "    COMPREPLY=()",
            "    if ((COMP_CWORD == 1)); then",
            "        COMPREPLY=($(compgen -W \"$commands --help --version\" -- \"$cur\"))",
            "        return", "    fi", "    case ${COMP_WORDS[1]} in",
        ] + commands.flatMap(branch) + ["    esac", "}", "complete -F _culvert culvert"]
    }

    /// Names may hold spaces and what bash would expand, so `compgen -W` is not for them. In an open quote bash inserts
    /// a name as it is, so only names that need no more than that quote are offered there.
    private static let replyWithNames = #"""
        _culvert_names() {
            local name typed=$cur
            case $cur in [\"\']*) typed=${cur:1} ;; *\\*) typed=${cur//\\/} ;; esac
            while IFS= read -r name; do
                [[ $name == "$typed"* ]] || continue
                case $cur in
                \"*) [[ $name == *[\$\`!]* ]] || COMPREPLY+=("$name") ;;
                \'*) [[ $name == *\'* ]] || COMPREPLY+=("$name") ;;
                *) COMPREPLY+=("$(printf %q "$name")") ;;
                esac
            done
        }
        """#.split(separator: "\n").map(String.init)

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
        case .file: "COMPREPLY=($(compgen -f -- \"$cur\")); compopt -o filenames;"
        case .directory: "COMPREPLY=($(compgen -d -- \"$cur\")); compopt -o filenames;"
        case .command: "COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"));"
        case .serverName: "_culvert_names < <(_culvert_servers);"
        case .deviceName: "_culvert_names < <(_culvert_devices);"
        }
    }
}

private enum ZshCompletions {
    static func lines(_ commands: [CommandDescription]) -> [String] {
        [
            "#compdef culvert", "_culvert_servers() {", "    local -a names",
            "    names=(${(f)\"$(\(Shell.serverNames))\"})",
            "    compadd -a names", "}", "_culvert_devices() {", "    local -a names",
            "    names=(${(f)\"$(\(Shell.deviceNames))\"})",
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
            let times = option.isRepeatable ? "*" : ""
            return "            '\(times)--\(option.name)\(value ?? "[\(escape(option.help))]")' \\"
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
        case .file: "_files"
        case .directory: "_directories"
        case .command: "(\(Program.descriptions.map(\.name).joined(separator: " ")))"
        case .serverName: "_culvert_servers"
        case .deviceName: "_culvert_devices"
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
            // Files are off for the whole command, so that the option has to turn them on again.
            let argument = option.completion == .file ? " -r -F" : " -x\(argument(option.completion))"
            let value = option.metavar == nil ? "" : argument
            return "\(condition) -l \(option.name)\(letter)\(value) -d '\(escape(option.help))'"
        }
        let operand = argument(command.operands.first?.completion ?? .nothing)
        return options + (operand.isEmpty ? [] : [condition + operand])
    }

    private static func argument(_ completion: Completion) -> String {
        switch completion {
        case .nothing, .file: ""
        case .words(let words): " -a '\(words.joined(separator: " "))'"
        case .directory: " -a '(__fish_complete_directories)'"
        case .command: " -a '\(Program.descriptions.map(\.name).joined(separator: " "))'"
        case .serverName: " -a '(\(escape(Shell.serverNames)))'"
        case .deviceName: " -a '(\(escape(Shell.deviceNames)))'"
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
