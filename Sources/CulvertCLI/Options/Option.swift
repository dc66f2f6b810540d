import CulvertCore

/// A named option and how its value is read.
struct Option<Value: Sendable>: Sendable {
    /// What help, completions and the scanner know.
    let description: OptionDescription
    /// What a good value is, as in "--port takes …".
    let expectation: String
    /// The value of the text; nil when it is malformed.
    let parse: @Sendable (String) -> Value?
}

extension Option where Value == String {
    /// Any text that is not empty.
    static func text(
        _ name: String, _ metavar: String, _ help: String, default: String? = nil, isRequired: Bool = false,
        isRepeatable: Bool = false, completion: Completion = .nothing
    ) -> Self {
        Option(
            description: OptionDescription(
                name: name, metavar: metavar, help: help, defaultText: `default`, isRequired: isRequired,
                isRepeatable: isRepeatable, completion: completion),
            expectation: "a text that is not empty",
            parse: { $0.isEmpty ? nil : $0 })
    }

    /// A name that a person gives a server or a device.
    static func name(_ name: String, _ help: String, default: String? = nil) -> Self {
        Option(
            description: OptionDescription(name: name, metavar: "NAME", help: help, defaultText: `default`),
            expectation: PersonalName.expectation,
            parse: PersonalName.parse)
    }
}

extension Option where Value == UInt16 {
    /// A TCP port.
    static func port(_ name: String, _ help: String, default: String) -> Self {
        Option(
            description: OptionDescription(name: name, metavar: "N", help: help, defaultText: `default`),
            expectation: "a port from 0 to 65535",
            parse: { text in Digits.parse(text).flatMap { UInt16(exactly: $0) } })
    }
}

extension Option where Value == Int {
    /// A number from 1 to `limit`.
    static func count(_ name: String, _ help: String, default: Int, upTo limit: Int) -> Self {
        Option(
            description: OptionDescription(name: name, metavar: "N", help: help, defaultText: "\(`default`)"),
            expectation: "a number from 1 to \(limit)",
            parse: { text in Digits.parse(text).flatMap { (1...limit).contains($0) ? $0 : nil } })
    }
}

extension Option where Value == Duration {
    /// A time from one second to `limit`.
    static func duration(_ name: String, _ help: String, default: String, upTo limit: Duration) -> Self {
        Option(
            description: OptionDescription(name: name, metavar: "TIME", help: help, defaultText: `default`),
            expectation: "a time such as 90s, 10m, 2h or 30d, at most \(Dates.duration(limit))",
            parse: { text in DurationText.parse(text).flatMap { $0 <= limit ? $0 : nil } })
    }
}

extension Option where Value == SocketAddress {
    /// An address and a port.
    static func address(_ name: String, _ help: String, default: String) -> Self {
        Option(
            description: OptionDescription(name: name, metavar: "ADDR:PORT", help: help, defaultText: `default`),
            expectation: "an address and a port such as 192.0.2.7:4433 or [::]:4433",
            parse: { SocketAddress($0) })
    }
}

extension Option where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// One word of a closed set.
    static func choice(_ name: String, _ metavar: String, _ help: String, default: Value) -> Self {
        let words = Value.allCases.map(\.rawValue)
        return Option(
            description: OptionDescription(
                name: name, metavar: metavar, help: help, defaultText: `default`.rawValue, completion: .words(words)),
            expectation: words.dropLast().joined(separator: ", ") + " or " + (words.last ?? ""),
            parse: { Value(rawValue: $0) })
    }
}

/// Whole numbers in decimal digits only: no sign, no space.
enum Digits {
    static func parse(_ text: some StringProtocol) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }
}

/// Times as people write them: `90s`, `10m`, `2h`, `30d`.
enum DurationText {
    /// The time; nil when it is malformed, zero, or has no unit (seconds and minutes are mixed up too easily).
    static func parse(_ text: String) -> Duration? {
        let seconds: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = text.last.flatMap({ seconds[$0] }), let count = Digits.parse(text.dropLast()), count > 0 else {
            return nil
        }
        let (total, overflow) = count.multipliedReportingOverflow(by: unit)
        return overflow ? nil : .seconds(total)
    }
}

/// What people call a server or a device.
enum PersonalName {
    static let expectation = "a name of 1 to \(Limits.nameCharacters) printable characters"

    /// The name; nil when it is empty, too long, or would disturb a terminal.
    static func parse(_ text: String) -> String? {
        let isGood = !text.isEmpty && text.count <= Limits.nameCharacters && PrintableText.clean(text) == text
        return isGood ? text : nil
    }
}
