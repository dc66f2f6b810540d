import Glibc

/// Where an invite link comes from: an argument, or standard input for people who keep links out of their history.
enum InviteText {
    /// Whether the word is meant as an invite link rather than as a name.
    static func isLink(_ word: String) -> Bool {
        let lowercased = word.lowercased()
        return word.contains("://") || lowercased.hasPrefix("culvert:") || lowercased.hasPrefix("oppi:")
    }

    /// Why the link cannot be whole; nil when it may be.
    static func fault(in link: String) -> String? {
        let scheme = link.prefix { $0 != ":" }.lowercased()
        guard ["culvert", "oppi"].contains(scheme) else {
            return "this is not an invite link; one begins with culvert://connect"
        }
        // The shell ends a command at an unquoted "&", which stands right before the invite.
        return link.contains("invite=")
            ? nil : "the invite link is cut off; put it between quotes, or give - and paste it"
    }

    /// The first line with text on `descriptor`; nil when it ends without one or is too long.
    static func readLine(from descriptor: Int32) -> String? {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while text.count <= Limits.inviteInputBytes {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count > 0 { text += buffer.prefix(count) }
            if let line = firstLine(text, isComplete: count <= 0) { return line }
            if count <= 0 { return nil }
        }
        return nil
    }

    private static func firstLine(_ text: [UInt8], isComplete: Bool) -> String? {
        let start = text.drop { isSpace($0) }
        let line = start.prefix { !isSpace($0) }
        guard !line.isEmpty, isComplete || line.endIndex < text.endIndex else { return nil }
        return String(decoding: line, as: UTF8.self)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }
}
