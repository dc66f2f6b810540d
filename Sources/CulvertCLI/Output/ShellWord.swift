/// Words as a shell reads them, for hints that are pasted.
enum ShellWord {
    /// The word, in quotes when a shell would not take it as it is.
    static func quoted(_ word: String) -> String {
        let isPlain = !word.isEmpty && word.utf8.allSatisfy(isPlain)
        return isPlain
            ? word
            : "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
    }

    /// The word as an operand: one that begins with a dash comes after `--`.
    static func operand(_ word: String) -> String {
        (word.hasPrefix("-") ? "-- " : "") + quoted(word)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "-._+,:@%/".utf8.contains(byte)
        }
    }
}
