/// `culvert help`: how commands are used.
struct HelpCommand: Command {
    static let description = CommandDescription(
        name: "help",
        summary: "Show how a command is used",
        operands: [
            OperandDescription(
                metavar: "COMMAND", help: "The command; all are listed without it", isOptional: true,
                completion: .command)
        ])

    private let topic: CommandDescription?

    init(_ arguments: Arguments) throws(UsageError) {
        if let name = arguments.operands.first {
            topic = try Invocation.command(named: name).description
        } else {
            topic = nil
        }
    }

    func run(_ context: Context) async throws { context.console.lines(HelpText.lines(about: topic)) }
}

/// `culvert version` and `culvert --version`.
struct VersionCommand: Command {
    static let description = CommandDescription(name: "version", summary: "Show the program's version")

    init() {}
    init(_ arguments: Arguments) throws(UsageError) {}

    func run(_ context: Context) async throws { context.console.line("culvert \(Program.version)") }
}

/// `culvert completions`: what a shell needs to complete commands and options.
struct CompletionsCommand: Command {
    static let description = CommandDescription(
        name: "completions",
        summary: "Print completions for a shell",
        operands: [
            OperandDescription(
                metavar: "SHELL", help: "bash, zsh or fish", completion: .words(Shell.allCases.map(\.rawValue)))
        ],
        examples: [
            .init(purpose: "bash, in this session", line: "source <(culvert completions bash)"),
            .init(purpose: "zsh, in a directory of $fpath", line: "culvert completions zsh > _culvert"),
            .init(purpose: "fish", line: "culvert completions fish | source"),
        ])

    private let shell: Shell

    init(_ arguments: Arguments) throws(UsageError) {
        guard let shell = Shell(rawValue: arguments.operands[0]) else {
            throw arguments.usageError("SHELL is bash, zsh or fish, not \(UsageError.quote(arguments.operands[0]))")
        }
        self.shell = shell
    }

    func run(_ context: Context) async throws { context.console.lines(shell.completions(Program.descriptions)) }
}

/// `culvert man`: the manual page.
struct ManCommand: Command {
    static let description = CommandDescription(
        name: "man",
        summary: "Print the manual page",
        examples: [.init(purpose: "read it", line: "culvert man | man -l -")])

    init(_ arguments: Arguments) throws(UsageError) {}

    func run(_ context: Context) async throws { context.console.lines(ManualPage.lines(Program.descriptions)) }
}
