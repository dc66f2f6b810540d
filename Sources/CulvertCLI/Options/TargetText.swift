import Culvert

/// What people write for the server that they want to share.
enum TargetText {
    /// The target that a text without a scheme stands for: a port, `HOST:PORT`, or a socket's path; nil when it is
    /// none of these.
    static func meant(by text: String) -> HTTPTarget? {
        if text.hasPrefix("/") { return try? HTTPTarget("unix:\(text)") }
        if Digits.parse(text) != nil { return try? HTTPTarget("http://localhost:\(text)") }
        guard !text.contains("://"), let colon = text.lastIndex(of: ":"),
            Digits.parse(text[text.index(after: colon)...]) != nil
        else { return nil }
        return try? HTTPTarget("http://\(text)")
    }
}
