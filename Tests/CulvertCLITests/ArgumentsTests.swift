import Testing

@testable import CulvertCLI

/// A command with one option of each form.
private let sample = CommandDescription(
    name: "sample", summary: "For tests",
    operands: [
        OperandDescription(metavar: "FIRST", help: "One"),
        OperandDescription(metavar: "SECOND", help: "Two", isOptional: true),
    ],
    options: [
        OptionDescription(name: "port", metavar: "N", help: "A port"),
        OptionDescription(name: "portal", metavar: "TEXT", help: "Begins like the other"),
        OptionDescription(name: "json", help: "A switch"),
    ])

private let port = Option.port("port", "A port", default: "0")
private let portal = Option.text("portal", "TEXT", "Begins like the other")
private let json = OptionDescription(name: "json", help: "A switch")

@Suite struct ArgumentsTests {
    struct Good: Sendable {
        let words: [String]
        var operands = ["a"]
        var port: UInt16?
        var portal: String?
        var json = false
    }

    @Test(arguments: [
        Good(words: ["a"]),
        Good(words: ["a", "--port", "80"], port: 80),
        Good(words: ["a", "--port=80"], port: 80),
        Good(words: ["--port", "80", "a"], port: 80),
        Good(words: ["--json", "a", "b"], operands: ["a", "b"], json: true),
        Good(words: ["a", "--port", "1", "--port", "2"], port: 2),
        Good(words: ["--", "--json"], operands: ["--json"]),
        Good(words: ["a", "--", "-x"], operands: ["a", "-x"]),
        Good(words: ["--json", "--", "a"], json: true),
        Good(words: ["-"], operands: ["-"]),
        Good(words: ["a", "--portal", "--json"], portal: "--json"),
        Good(words: ["a", "--portal=x=y"], portal: "x=y"),
        Good(words: ["a", "--portal", "é ü"], portal: "é ü"),
        Good(words: ["", "--json"], operands: [""], json: true),
    ])
    func understands(_ good: Good) throws {
        let arguments = try Arguments(good.words, for: sample)
        #expect(arguments.operands == good.operands)
        #expect(try arguments.value(port) == good.port)
        #expect(try arguments.value(portal) == good.portal)
        #expect(arguments.isSet(json) == good.json)
    }

    @Test func allValuesOfAnOptionCanBeAskedFor() throws {
        let words = ["--portal", "x", "a", "--portal=y", "--port", "1", "--port=2", "--portal", "x"]
        let arguments = try Arguments(words, for: sample)
        #expect(try arguments.values(portal) == ["x", "y", "x"])
        #expect(try arguments.value(portal) == "x")
        #expect(try arguments.values(port) == [1, 2])
        #expect(try Arguments(["a"], for: sample).values(portal) == [])
        let malformed = try Arguments(["a", "--port", "x", "--port", "2"], for: sample)
        #expect(try malformed.value(port) == 2)
        #expect(throws: UsageError("--port takes a port from 0 to 65535, not 'x'", command: "sample")) {
            try malformed.values(port)
        }
    }

    private static let refusals: [([String], String)] = [
        ([], "FIRST is missing"),
        (["a", "b", "c"], "there is one argument too many, 'c'"),
        (["a", "--jsn"], "there is no option '--jsn' (did you mean --json?)"),
        // getopt_long would take it for --json, and this one for ambiguous.
        (["a", "--js"], "there is no option '--js' (did you mean --json?)"),
        (["a", "--por", "1"], "there is no option '--por' (did you mean --port?)"),
        (["a", "--js=1"], "there is no option '--js' (did you mean --json?)"),
        (["a", "--porta"], "there is no option '--porta' (did you mean --portal?)"),
        (["a", "--wholly-different"], "there is no option '--wholly-different'"),
        (["a", "-x"], "there is no option '-x'"),
        (["a", "--port"], "--port needs a value, N"),
        (["a", "--json=1"], "--json takes no value"),
    ]

    @Test(arguments: refusals)
    func refuses(_ words: [String], _ message: String) {
        #expect(throws: UsageError(message, command: "sample")) { try Arguments(words, for: sample) }
    }

    @Test(arguments: ["65536", "-1", "+1", "", " 80", "80x", "99999999999999999999"])
    func refusesPorts(_ text: String) throws {
        let arguments = try Arguments(["a", "--port=\(text)"], for: sample)
        #expect(throws: UsageError("--port takes a port from 0 to 65535, not '\(text)'", command: "sample")) {
            try arguments.value(port)
        }
    }

    @Test func helpNeedsNoOperands() throws {
        #expect(try Arguments(["--help"], for: sample).isSet(.help))
        #expect(try Arguments(["-h"], for: sample).isSet(.help))
    }

    @Test func errorsSayWhereToLook() {
        #expect(UsageError("x", command: "host").line == "culvert host: x; see culvert host --help")
        #expect(UsageError("x").line == "culvert: x; see culvert --help")
    }

    @Test(arguments: [
        "culvert://connect?v=4&invite=abc", "invite=abc", "dt_abc", String(repeating: "a", count: 41),
    ])
    func errorsRepeatNoSecrets(_ secret: String) throws {
        #expect(UsageError.quote(secret) == "what was given")
        let words = [["a", "b", secret], ["a", "--port", secret], ["a", "--\(secret)"]]
        for words in words {
            let error = #expect(throws: UsageError.self) { _ = try Arguments(words, for: sample).value(port) }
            #expect(error?.line.contains(secret) == false)
        }
    }

    @Test func errorsRepeatNoControlCharacters() {
        #expect(UsageError.quote("a\u{1b}[2J") == "'a\u{fffd}[2J'")
    }

    @Test func scansTakeTurns() async {
        // getopt_long's state is global: without turns, concurrent scans mix their words up.
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<64 {
                group.addTask {
                    let words = (0..<50).flatMap { _ in ["--portal", "\(number)"] } + ["\(number)"]
                    guard let arguments = try? Arguments(words, for: sample) else { return false }
                    return arguments.operands == ["\(number)"] && (try? arguments.value(portal)) == "\(number)"
                }
            }
            for await isRight in group { #expect(isRight) }
        }
    }
}
