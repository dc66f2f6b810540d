/// Everything that is known about a command's use. Parsing, help, completions and the manual page derive from it.
struct CommandDescription: Sendable {
    /// The word after `culvert`.
    let name: String
    /// One line for the list of commands, without a full stop.
    let summary: String
    /// A paragraph each, for help and the manual page.
    var discussion: [String] = []
    /// What stands on the command line without a name, in order.
    var operands: [OperandDescription] = []
    /// The named options, besides `--help`.
    var options: [OptionDescription] = []
    /// Command lines that work as they are, and what they do.
    var examples: [Example] = []

    /// A command line and what it is for.
    struct Example: Sendable {
        let purpose: String
        let line: String
    }

    /// The options with `--help`, which every command has.
    var allOptions: [OptionDescription] { options + [OptionDescription.help] }

    /// How the command is called, in one line.
    var usage: String {
        let required = options.filter(\.isRequired).map(\.synopsis)
        let rest = ["[OPTIONS]"]
        let operands = operands.map { $0.isOptional ? "[\($0.metavar)]" : $0.metavar }
        return (["culvert", name] + required + rest + operands).joined(separator: " ")
    }
}

/// An argument without a name.
struct OperandDescription: Sendable {
    /// What help calls it.
    let metavar: String
    /// One sentence, without a full stop.
    let help: String
    /// Whether it may be left out; only the last one can.
    var isOptional = false
    /// What a shell offers for it.
    var completion = Completion.nothing
}

/// An argument with a name.
struct OptionDescription: Sendable {
    /// The long name, without dashes.
    let name: String
    /// The letter of the short form.
    var letter: Character?
    /// What help calls the value; nil for a switch.
    var metavar: String?
    /// One sentence, without a full stop.
    let help: String
    /// What holds when the option is not given, for people.
    var defaultText: String?
    /// Whether the command cannot do without it.
    var isRequired = false
    /// Whether every value counts when it is given more than once; otherwise the last one does.
    var isRepeatable = false
    /// What a shell offers for the value.
    var completion = Completion.nothing

    /// `--name METAVAR`.
    var synopsis: String { metavar.map { "--\(name) \($0)" } ?? "--\(name)" }

    /// The help text with the default.
    var helpWithDefault: String { defaultText.map { "\(help) (default: \($0))" } ?? help }

    /// `--help`, which every command has.
    static let help = OptionDescription(name: "help", letter: "h", help: "Show this help")
}

/// What a shell offers for a value.
enum Completion: Sendable, Equatable {
    /// Nothing: the value is the user's own.
    case nothing
    /// One of these words.
    case words([String])
    /// A file.
    case file
    /// A directory.
    case directory
    /// One of the program's commands.
    case command
    /// The name of a paired server.
    case serverName
    /// The name of a device that is paired with the running host.
    case deviceName
}
