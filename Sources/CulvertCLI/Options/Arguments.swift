import CLinux
import Glibc
import Synchronization

/// The command line of one command, split into options and operands by getopt_long(3).
///
/// Options and operands may be mixed; `--` ends the options. An option given twice counts with its last value, unless all
/// of them are asked for.
struct Arguments: Sendable {
    /// The command that the line is for.
    let command: CommandDescription
    /// What was given without a name, in order.
    private(set) var operands: [String] = []
    private var texts: [String: [String]] = [:]

    /// Splits `words`, which follow the command's name, and checks them against `command`, but for the values.
    init(_ words: [String], for command: CommandDescription) throws(UsageError) {
        self.command = command
        switch Arguments.scan(words, options: command.allOptions) {
        case .success(let scanned):
            texts = scanned.texts
            operands = scanned.operands
        case .failure(let fault):
            throw UsageError(fault.message(for: command), command: command.name)
        }
        if isSet(.help) { return }
        let required = command.operands.filter { !$0.isOptional }
        if operands.count < required.count {
            throw usageError("\(required[operands.count].metavar) is missing")
        }
        if operands.count > command.operands.count {
            throw usageError("there is one argument too many, \(UsageError.quote(operands[command.operands.count]))")
        }
    }

    /// Whether the option was given.
    func isSet(_ option: OptionDescription) -> Bool { texts[option.name] != nil }

    /// The option's value; nil when it was not given.
    func value<Value>(_ option: Option<Value>) throws(UsageError) -> Value? {
        try texts[option.description.name]?.last.map { text throws(UsageError) in try parse(text, option) }
    }

    /// All values of an option that may be repeated, in order.
    func values<Value>(_ option: Option<Value>) throws(UsageError) -> [Value] {
        try (texts[option.description.name] ?? []).map { text throws(UsageError) in try parse(text, option) }
    }

    private func parse<Value>(_ text: String, _ option: Option<Value>) throws(UsageError) -> Value {
        guard let value = option.parse(text) else {
            throw usageError("--\(option.description.name) takes \(option.expectation), not \(UsageError.quote(text))")
        }
        return value
    }

    /// The value of an option that must be given.
    func required<Value>(_ option: Option<Value>) throws(UsageError) -> Value {
        guard let value = try value(option) else { throw usageError("\(option.description.synopsis) is missing") }
        return value
    }

    /// An error in the use of this command.
    func usageError(_ message: String) -> UsageError { UsageError(message, command: command.name) }
}

/// What the scanner refuses.
private enum ScanFault: Error {
    case unknownOption(String)
    case unknownLetter(Character)
    case missingValue(OptionDescription)
    case unexpectedValue(OptionDescription)

    func message(for command: CommandDescription) -> String {
        switch self {
        case .unknownOption(let name):
            let known = command.allOptions.map(\.name)
            let hint = Suggestion.closest(to: name, among: known).map { " (did you mean --\($0)?)" } ?? ""
            let quoted = UsageError.quote("--\(name)")
            return "there is no option \(quoted)\(hint)"
        case .unknownLetter(let letter): return "there is no option \(UsageError.quote("-\(letter)"))"
        case .missingValue(let option): return "--\(option.name) needs a value, \(option.metavar ?? "")"
        case .unexpectedValue(let option): return "--\(option.name) takes no value"
        }
    }
}

extension Arguments {
    /// getopt_long's state is global to the process, so scans take turns.
    private static let turn = Mutex(())

    private struct Scanned {
        var texts: [String: [String]] = [:]
        var operands: [String] = []
    }

    private static func scan(_ words: [String], options: [OptionDescription]) -> Result<Scanned, ScanFault> {
        turn.withLock { _ in
            let arguments = CStringArray(["culvert"] + words)
            let names = CStringArray(options.map(\.name))
            var longOptions = options.enumerated().map { index, option in
                let needsValue = option.metavar == nil ? no_argument : required_argument
                return CLinux.option(
                    name: names[index], has_arg: needsValue, flag: nil, val: firstOptionCode + Int32(index))
            }
            longOptions.append(CLinux.option())
            // "-": operands come in order, so that argv[next] is always the word about to be scanned.
            // ":": a missing value is told apart from an unknown option.
            let letters = "-:" + options.compactMap { $0.letter.map { "\($0)" } }.joined()
            return scan(arguments, letters: letters, longOptions: longOptions, options: options)
        }
    }

    private static func scan(
        _ arguments: borrowing CStringArray, letters: String, longOptions: [CLinux.option], options: [OptionDescription]
    ) -> Result<Scanned, ScanFault> {
        var scanned = Scanned()
        var next = 1
        var isFirst = true
        while true {
            let word = next < arguments.count ? arguments.text(next) : ""
            let step = clinux_getopt_next(
                Int32(arguments.count), arguments.pointers, letters, longOptions, isFirst ? 1 : 0)
            isFirst = false
            next = Int(step.next)
            let argument = step.argument.map { String(cString: $0) } ?? ""
            switch step.code {
            case -1:
                for index in next..<max(next, arguments.count) { scanned.operands.append(arguments.text(index)) }
                return .success(scanned)
            case operandCode:
                scanned.operands.append(argument)
            case questionMark, colon:
                return .failure(fault(step, word: word, options: options))
            case firstOptionCode..<(firstOptionCode + Int32(options.count)):
                let option = options[Int(step.code - firstOptionCode)]
                // getopt_long takes any unambiguous beginning of a name; a later option would change what it means.
                guard longName(word) == option.name else { return .failure(.unknownOption(longName(word))) }
                scanned.texts[option.name, default: []].append(argument)
            default:
                guard let option = options.first(where: { $0.letter == letter(step.code) }) else { continue }
                scanned.texts[option.name, default: []].append(argument)
            }
        }
    }

    private static func fault(
        _ step: clinux_getopt_step, word: String, options: [OptionDescription]
    ) -> ScanFault {
        let index = Int(step.offender - firstOptionCode)
        guard options.indices.contains(index) else {
            return step.offender == 0 ? .unknownOption(longName(word)) : .unknownLetter(letter(step.offender))
        }
        guard longName(word) == options[index].name else { return .unknownOption(longName(word)) }
        return step.code == colon ? .missingValue(options[index]) : .unexpectedValue(options[index])
    }

    /// The name in `--name` and `--name=value`.
    private static func longName(_ word: String) -> String {
        String(word.drop { $0 == "-" }.prefix { $0 != "=" })
    }

    private static func letter(_ code: Int32) -> Character {
        Character(Unicode.Scalar(UInt8(truncatingIfNeeded: code)))
    }

    /// Above every letter, so that long options without one have a code of their own.
    private static let firstOptionCode: Int32 = 256
    private static let operandCode: Int32 = 1
    private static let questionMark: Int32 = 0x3f
    private static let colon: Int32 = 0x3a
}

/// A NULL-terminated array of C strings, freed with its owner.
private struct CStringArray: ~Copyable {
    let count: Int
    let pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

    init(_ texts: [String]) {
        count = texts.count
        pointers = .allocate(capacity: texts.count + 1)
        for (index, text) in texts.enumerated() { (pointers + index).initialize(to: strdup(text)) }
        (pointers + texts.count).initialize(to: nil)
    }

    deinit {
        for index in 0..<count { free(pointers[index]) }
        pointers.deallocate()
    }

    subscript(index: Int) -> UnsafePointer<CChar>? { pointers[index].map { UnsafePointer($0) } }

    func text(_ index: Int) -> String { self[index].map { String(cString: $0) } ?? "" }
}
