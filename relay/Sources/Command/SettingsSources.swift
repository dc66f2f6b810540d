/// Values by name, in order, from wherever they came.
struct SettingsSource: Equatable, Sendable {
    struct Value: Equatable, Sendable {
        var name: String
        var text: String
        /// Where it was given, as an error begins: `--listen`, `relay.conf:12: listen`.
        var place: String
    }

    private(set) var values: [Value] = []

    /// `name = value` lines; `#` starts a comment at the beginning of a line. `path` is for errors.
    init(file text: String, path: String) throws(SettingsError) {
        for (index, line) in text.lines.enumerated() {
            let line = line.trimmed
            if line.isEmpty || line.hasPrefix("#") { continue }
            let place = "\(path):\(index + 1)"
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { throw SettingsError(message: "\(place): a line must be name = value") }
            let name = String(parts[0].trimmed)
            guard Setting.named(name) != nil else {
                throw SettingsError(message: "\(place): there is no setting '\(name.printable)'")
            }
            try add(Value(name: name, text: String(parts[1].trimmed), place: "\(place): \(name)"))
        }
    }

    /// `--name VALUE` or `--name=VALUE`. Stops at `--config`, `--help` and `--version` by handing them to `other`.
    init(
        words: [String], other: (_ name: String, _ value: () -> String?) throws(SettingsError) -> Bool
    ) throws(SettingsError) {
        var rest = words[...]
        while let word = rest.popFirst() {
            guard word.hasPrefix("--"), word.count > 2 else {
                throw SettingsError(message: "there is no use for '\(word.printable)' here")
            }
            let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            let value = { parts.count == 2 ? String(parts[1]) : rest.popFirst() }
            if try other(name, value) { continue }
            guard Setting.named(name) != nil else {
                throw SettingsError(message: "there is no option '--\(name.printable)'")
            }
            guard let text = value() else { throw SettingsError(message: "--\(name) needs a value") }
            try add(Value(name: name, text: text, place: "--\(name)"))
        }
    }

    private mutating func add(_ value: Value) throws(SettingsError) {
        let isRepeated = values.contains { $0.name == value.name }
        if isRepeated, Setting.named(value.name)?.isRepeatable == false {
            throw SettingsError(message: "\(value.place) is given twice")
        }
        values.append(value)
    }

    /// What the file says, and what the command line says instead.
    static func settings(file: SettingsSource?, flags: SettingsSource) throws(SettingsError) -> Settings {
        let given = Set(flags.values.map(\.name))
        let kept = file?.values.filter { !given.contains($0.name) } ?? []
        var settings = Settings()
        for value in kept + flags.values {
            guard let setting = Setting.named(value.name), setting.apply(&settings, value.text) else {
                let expectation = Setting.named(value.name)?.expectation ?? "something else"
                throw SettingsError(message: "\(value.place) takes \(expectation)")
            }
        }
        return settings
    }
}

extension StringProtocol {
    /// The lines, empty ones included; CR LF is one character and ends a line too.
    var lines: [SubSequence] {
        split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    }

    /// Without white space around it.
    var trimmed: SubSequence {
        let isSpace = { (character: Character) in character == " " || character == "\t" || character == "\r" }
        let start = drop(while: isSpace)
        return start.prefix(start.count - start.reversed().prefix(while: isSpace).count)
    }

    /// A beginning that does no harm to a terminal or a log.
    var printable: String {
        String(unicodeScalars.prefix(60).map { (0x20..<0x7f).contains($0.value) ? Character($0) : "?" })
    }
}
