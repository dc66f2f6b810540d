/// A command line that cannot be understood: exit code 2 and one line that says where to look.
struct UsageError: Error, Equatable {
    /// What is wrong, without the program's name or a full stop.
    let message: String
    /// The command whose help explains it; nil for the program's own.
    let command: String?

    /// An error in the use of `command`.
    init(_ message: String, command: String? = nil) {
        self.message = message
        self.command = command
    }

    /// The line for standard error.
    var line: String {
        let name = command.map { "culvert \($0)" } ?? "culvert"
        return "\(name): \(message); see \(name) --help"
    }

    /// `word` in quotes when an error may repeat it. Links and tokens must not reach standard error, which ends up in
    /// logs, so what looks like one, or is too long to be a plain word, is only named.
    static func quote(_ word: String) -> String {
        let looksSecret = word.contains("://") || word.contains("invite=") || word.contains("dt_")
        guard !looksSecret, word.count <= Limits.quotedCharacters else { return "what was given" }
        return "'\(PrintableText.clean(word))'"
    }
}
