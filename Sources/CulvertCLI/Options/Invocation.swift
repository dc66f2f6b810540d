/// What a command line asks for.
enum Invocation {
    /// Help was asked for: about one command, or about the program.
    case help(CommandDescription?)
    /// A command is to run.
    case run(any Command)

    /// Understands the words after the program's name.
    init(_ words: [String]) throws(UsageError) {
        guard let first = words.first else { throw UsageError("a command is missing") }
        switch first {
        case "--help", "-h":
            self = .help(nil)
            return
        case "--version":
            self = .run(VersionCommand())
            return
        default: break
        }
        let command = try Invocation.command(named: first)
        let arguments = try Arguments(Array(words.dropFirst()), for: command.description)
        self = arguments.isSet(.help) ? .help(command.description) : .run(try command.init(arguments))
    }

    /// The command called `name`, or the error that helps to find it.
    static func command(named name: String) throws(UsageError) -> any Command.Type {
        if let command = Program.commands.first(where: { $0.description.name == name }) { return command }
        if name.hasPrefix("-") {
            throw UsageError("there is no option \(UsageError.quote(name)) before the command")
        }
        if InviteText.isLink(name) { throw UsageError("to use an invite, put the word connect before it") }
        let names = Program.descriptions.map(\.name)
        let hint = Suggestion.closest(to: name, among: names).map { " (did you mean \($0)?)" } ?? ""
        throw UsageError("there is no command \(UsageError.quote(name))\(hint)")
    }
}
