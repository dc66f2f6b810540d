import CulvertCore
import Glibc
import Testing

@testable import CulvertCLI

@Suite struct ValueTests {
    @Test(arguments: [
        ("1s", 1), ("90s", 90), ("10m", 600), ("2h", 7200), ("30d", 2_592_000), ("031d", 2_678_400),
    ])
    func durations(_ text: String, _ seconds: Int) {
        #expect(DurationText.parse(text) == .seconds(seconds))
    }

    @Test(arguments: [
        "", "s", "90", "0s", "-1s", "+1s", "1.5h", "1h30m", "90 s", "1w", "1S", "9223372036854775807d", "١s",
    ])
    func malformedDurations(_ text: String) {
        #expect(DurationText.parse(text) == nil)
    }

    @Test func inviteLifetimeEndsAtThirtyDays() {
        let option = CommonOptions.inviteLifetime
        #expect(option.parse("30d") == .seconds(30 * 86_400))
        #expect(option.parse("2592001s") == nil)
        #expect(option.expectation == "a time such as 90s, 10m, 2h or 30d, at most 30 days")
    }

    @Test func countsHaveBounds() {
        let option = Option.count("n", "", default: 1, upTo: 10)
        #expect(option.parse("1") == 1)
        #expect(option.parse("10") == 10)
        #expect(option.parse("0") == nil)
        #expect(option.parse("11") == nil)
    }

    @Test func choicesAreWords() {
        let option = Option.choice("qr", "WHEN", "", default: QRMode.auto)
        #expect(option.parse("always") == .always)
        #expect(option.parse("Always") == nil)
        #expect(option.expectation == "auto, always or never")
        #expect(option.description.completion == .words(["auto", "always", "never"]))
    }

    @Test(arguments: ["", "a\u{1b}b", "a\nb", "\u{202e}abc", String(repeating: "n", count: 65)])
    func unfitNames(_ text: String) {
        #expect(PersonalName.parse(text) == nil)
    }

    @Test func fitNames() {
        #expect(PersonalName.parse("Ann's phone") == "Ann's phone")
        #expect(PersonalName.parse(String(repeating: "é", count: 64)) != nil)
    }

    @Test(arguments: [
        ("studio", "studio"), ("my studio", "'my studio'"), ("Ann's", #"'Ann'\''s'"#), ("$(x)", "'$(x)'"), ("", "''"),
        ("~x", "'~x'"), ("日本", "'日本'"), ("a.b-c_d:1", "a.b-c_d:1"),
    ])
    func shellWords(_ word: String, _ quoted: String) {
        #expect(ShellWord.quoted(word) == quoted)
        #expect(ShellWord.operand(word) == quoted)
    }

    @Test func operandsThatLookLikeOptions() {
        #expect(ShellWord.operand("-x") == "-- -x")
        #expect(ShellWord.operand("-x y") == "-- '-x y'")
    }

    @Test(arguments: [
        ("conect", "connect"), ("hots", "host"), ("serv", "servers"), ("devcies", "devices"), ("revok", "revoke"),
    ])
    func suggestions(_ word: String, _ meant: String) {
        #expect(Suggestion.closest(to: word, among: Program.descriptions.map(\.name)) == meant)
    }

    @Test(arguments: ["x", "", "status", "zzzzzz", "relay"])
    func noSuggestions(_ word: String) {
        #expect(Suggestion.closest(to: word, among: Program.descriptions.map(\.name)) == nil)
    }

    @Test(arguments: [("", "", 0), ("", "abc", 3), ("ab", "ba", 1), ("kitten", "sitting", 3), ("abc", "abc", 0)])
    func distances(_ from: String, _ to: String, _ distance: Int) {
        #expect(Suggestion.distance(from, to) == distance)
        #expect(Suggestion.distance(to, from) == distance)
    }
}

@Suite struct InviteTextTests {
    /// What is read when `text` is on standard input.
    private func read(_ text: String) -> String? {
        let pipe = Pipe()
        pipe.write(text)
        pipe.closeWriter()
        return InviteText.readLine(from: pipe.reader)
    }

    @Test func takesTheFirstWord() {
        #expect(read("culvert://x\n") == "culvert://x")
        #expect(read("culvert://x") == "culvert://x")
        #expect(read("\n\n  culvert://x \r\nmore\n") == "culvert://x")
        #expect(read("") == nil)
        #expect(read(" \n\n") == nil)
    }

    @Test func doesNotWaitForMoreThanALine() {
        let pipe = Pipe()
        pipe.write("culvert://x\n")
        #expect(InviteText.readLine(from: pipe.reader) == "culvert://x")
    }

    @Test func boundsWhatItReads() {
        // Fewer bytes than a pipe holds would not reach the limit, so the endless source is a device.
        let zero = open("/dev/zero", O_RDONLY)
        defer { close(zero) }
        #expect(InviteText.readLine(from: zero) == nil)
    }

    @Test func noticesALinkThatTheShellCut() {
        #expect(InviteText.fault(in: "culvert://connect?v=4")?.contains("cut off") == true)
        #expect(InviteText.fault(in: "https://connect?v=4&invite=abc")?.contains("not an invite") == true)
        #expect(InviteText.fault(in: "OPPI://connect?v=4&invite=abc") == nil)
        #expect(InviteText.fault(in: "culvert://connect?v=4&invite=abc") == nil)
    }

    @Test(arguments: [
        ("culvert://connect", true), ("oppi://connect", true), ("culvert:x", true), ("Culvert:x", true),
        ("studio", false),
    ])
    func tellsLinksFromNames(_ word: String, _ isLink: Bool) {
        #expect(InviteText.isLink(word) == isLink)
    }
}
