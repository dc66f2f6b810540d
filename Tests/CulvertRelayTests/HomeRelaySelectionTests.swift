import CulvertCore
import CulvertIdentity
import Testing

@testable import CulvertRelay

func homeRelay(_ name: Character) throws -> RelayURL {
    try RelayURL("https://\(name).example", allowInsecure: false)
}

/// Something that happens to a selection, or what is to hold then. Relays are letters, answers milliseconds, times
/// seconds.
enum HomeStep: Sendable {
    case set(String)
    case begin
    /// nil is none.
    case answer(Character, Double?)
    /// A round with all its answers.
    case round([Character: Double?])
    case up(Character)
    case down(Character)
    /// Lets time pass, with the calls that are due; rounds are not begun.
    case wait(Double)
    case home(Character?)
    /// In what time the next round is due; nil is never.
    case measureIn(Double?)
}

private struct Script {
    var selection = HomeRelaySelection()
    var now = Instant.at(1000)

    mutating func run(_ steps: [HomeStep]) throws {
        for (index, step) in steps.enumerated() { try perform(step, "step \(index), \(step)") }
    }

    private mutating func perform(_ step: HomeStep, _ comment: Comment) throws {
        switch step {
        case .set(let names): selection.setRelays(try names.map(homeRelay), at: now)
        case .begin: #expect(selection.beginRound(random: 0, at: now) == selection.relays, comment)
        case .answer(let relay, let milliseconds):
            selection.measured(try homeRelay(relay), milliseconds.map { .microseconds(Int($0 * 1000)) }, at: now)
        case .round(let answers):
            try perform(.begin, comment)
            for (relay, milliseconds) in answers.sorted(by: { $0.key < $1.key }) {
                try perform(.answer(relay, milliseconds), comment)
            }
        case .up(let relay): selection.linkUp(try homeRelay(relay), at: now)
        case .down(let relay): selection.linkDown(try homeRelay(relay), at: now)
        case .wait(let seconds):
            let end = now + .microseconds(Int(seconds * 1_000_000))
            while selection.decideAt <= end {
                now = selection.decideAt
                selection.timePassed(at: now)
            }
            now = end
        case .home(let relay): #expect(selection.home == (try relay.map(homeRelay)), comment)
        case .measureIn(let seconds):
            let due = seconds.map { now + .microseconds(Int($0 * 1_000_000)) } ?? .never
            #expect(selection.measureAt == due, comment)
        }
    }
}

@Suite("Home relay")
struct HomeRelaySelectionTests {
    /// `a` with 10 ms was preferred to `b` with 20 ms and `c` with 30 ms, and its link is up; that was a minute ago.
    private static let homeIsA: [HomeStep] = [
        .set("abc"), .round(["a": 10, "b": 20, "c": 30]), .home("a"), .up("a"), .wait(60),
    ]

    @Test(
        "the first choice",
        arguments: [
            // No relay, no home; the only relay is the home, and is not measured.
            [
                .home(nil), .measureIn(nil), .set("a"), .home("a"), .measureIn(nil), .set(""), .home(nil),
                .measureIn(nil),
            ],
            // The fastest, as soon as all have answered or failed.
            [
                .set("abc"), .home(nil), .measureIn(0), .begin, .measureIn(60), .answer("c", 30), .home(nil),
                .answer("a", 10), .home(nil), .answer("b", nil), .home("a"),
            ],
            // One second after the first answer the others are waited for no longer; a failure is no answer.
            [
                .set("abc"), .begin, .answer("a", nil), .wait(2), .home(nil), .answer("b", 900), .wait(0.999),
                .home(nil), .wait(0.001), .home("b"), .answer("c", 5), .home("b"),
            ],
            // The best of the answers in the second counts, not the first.
            [.set("abc"), .begin, .answer("b", 900), .wait(0.5), .answer("c", 600), .wait(0.5), .home("c")],
            // Of equals the first by name.
            [.set("ba"), .round(["a": 10, "b": 10]), .home("a")],
            // None answers: again soon, then less and less often. The next one that answers is taken.
            [
                .set("ab"), .round(["a": nil, "b": nil]), .home(nil), .measureIn(5), .wait(5),
                .round(["a": nil, "b": nil]), .measureIn(10), .wait(10), .round(["a": nil, "b": nil]), .measureIn(20),
                .wait(20), .round(["a": nil, "b": nil]), .measureIn(40), .wait(40), .round(["a": nil, "b": nil]),
                .measureIn(40), .wait(40), .round(["a": nil, "b": 7]), .home("b"), .up("b"), .measureIn(60),
            ],
            // Reports about others are ignored.
            [.set("ab"), .begin, .answer("c", 1), .up("c"), .down("c"), .answer("a", 2), .answer("b", 3), .home("a")],
        ] as [[HomeStep]])
    func firstChoice(steps: [HomeStep]) throws {
        var script = Script()
        try script.run(steps)
    }

    @Test(
        "a home relay that works stays until another has been much faster twice in a row",
        arguments: [
            // Two thirds exactly is not less.
            [.round(["a": 30, "b": 20, "c": 30]), .wait(60), .round(["a": 30, "b": 20, "c": 30]), .home("a")],
            [
                .round(["a": 30, "b": 19.9, "c": 30]), .home("a"), .wait(60), .round(["a": 30, "b": 19.9, "c": 30]),
                .home("b"),
            ],
            // Not in a row: slower in between, not heard of in between, or the home relay not.
            [
                .round(["a": 30, "b": 10, "c": 30]), .wait(60), .round(["a": 30, "b": 20, "c": 30]), .wait(60),
                .round(["a": 30, "b": 10, "c": 30]), .home("a"),
            ],
            [
                .round(["a": 30, "b": 10, "c": 30]), .wait(60), .round(["a": 30, "b": nil, "c": 30]), .wait(60),
                .round(["a": 30, "b": 10, "c": 30]), .home("a"),
            ],
            [
                .round(["a": 30, "b": 10, "c": 30]), .wait(60), .begin, .answer("a", 30), .answer("c", 30), .wait(60),
                .round(["a": 30, "b": 10, "c": 30]), .home("a"),
            ],
            [
                .round(["a": 30, "b": 10, "c": 30]), .wait(60), .begin, .answer("b", 10), .answer("c", 30), .wait(60),
                .round(["a": 30, "b": 10, "c": 30]), .home("a"),
            ],
            // A round that a slow relay never ends is ended by the next one.
            [
                .begin, .answer("a", 30), .answer("b", 10), .wait(60), .begin, .answer("a", 30), .answer("b", 10),
                .home("a"), .wait(60), .home("a"), .begin, .home("b"),
            ],
            // Two are faster: the one with the best answer of the last five minutes.
            [
                .round(["a": 90, "b": 9, "c": 10]), .wait(60), .round(["a": 90, "b": 30, "c": 10]), .home("b"),
            ],
            [
                .round(["a": 90, "b": 9, "c": 50]), .wait(301), .round(["a": 90, "b": 30, "c": 20]), .home("c"),
            ],
            // After a change, rounds are counted anew.
            [
                .round(["a": 90, "b": 30, "c": 19]), .wait(60), .round(["a": 90, "b": 30, "c": 19]), .home("c"),
                .up("c"), .wait(60), .round(["a": 9, "b": 5, "c": 19]), .home("c"), .wait(60),
                .round(["a": 9, "b": 5, "c": 19]), .home("b"),
            ],
        ] as [[HomeStep]])
    func hysteresis(steps: [HomeStep]) throws {
        var script = Script()
        try script.run(Self.homeIsA + steps)
    }

    @Test(
        "a home relay that fails is replaced by the fastest that answers",
        arguments: [
            // Its measurement fails: as soon as the round is heard, or one second after its first answer.
            [.round(["a": nil, "b": 20, "c": 15]), .home("c"), .up("c"), .measureIn(60)],
            [
                .begin, .answer("a", nil), .home("a"), .answer("c", 30), .wait(0.999), .home("a"), .wait(0.001),
                .home("c"),
            ],
            // While the network is away nobody answers, and nothing changes.
            [
                .round(["a": nil, "b": nil, "c": nil]), .home("a"), .measureIn(5), .wait(5), .home("a"),
                .round(["a": 10, "b": 20, "c": 30]), .home("a"), .measureIn(60),
            ],
            // It fails and is measured well again before anybody else answers.
            [.begin, .answer("a", nil), .answer("a", 10), .answer("b", 20), .wait(1), .home("a")],
            // Its link is down: measured at once, left after ten seconds.
            [
                .down("a"), .measureIn(0), .round(["a": 10, "b": 20, "c": 30]), .wait(9.999), .home("a"), .wait(0.001),
                .home("b"),
            ],
            [.down("a"), .wait(9), .up("a"), .wait(60), .home("a")],
            [.down("a"), .wait(9), .down("a"), .wait(1), .home("b")],
            // Not to a relay that failed when it was asked last.
            [.down("a"), .round(["a": 10, "b": nil, "c": 30]), .wait(10), .home("c")],
            // No other works: it stays and all are measured again soon.
            [
                .down("a"), .round(["a": 10, "b": nil, "c": nil]), .wait(10), .home("a"), .measureIn(0),
                .round(["a": 10, "b": nil, "c": nil]), .measureIn(5), .wait(5), .round(["a": 10, "b": nil, "c": 9]),
                .home("c"),
            ],
            // A link that never comes up counts as lost when the relay was chosen.
            [.round(["a": nil, "b": 20, "c": 30]), .home("b"), .wait(10), .home("c")],
            // A new home relay stays for five seconds at least.
            [
                .round(["a": nil, "b": 20, "c": 30]), .home("b"), .wait(1), .round(["a": nil, "b": nil, "c": 30]),
                .home("b"), .wait(3.999), .home("b"), .wait(0.001), .home("c"),
            ],
        ] as [[HomeStep]])
    func failure(steps: [HomeStep]) throws {
        var script = Script()
        try script.run(Self.homeIsA + steps)
    }

    @Test("a lost link asks for rounds, at most one in five seconds")
    func lostLinks() throws {
        var script = Script()
        try script.run(
            Self.homeIsA + [
                .down("a"), .measureIn(0), .round(["a": 10, "b": 20, "c": 30]), .measureIn(60), .up("a"), .wait(1),
                .down("a"), .measureIn(4), .wait(4), .measureIn(0), .begin, .measureIn(60), .up("a"), .wait(58),
                .down("a"), .measureIn(0),
            ])
    }

    @Test(
        "a relay is not gone back to when its link was what failed",
        arguments: [
            // Not because it answers quickly, for five minutes.
            [
                .wait(60), .round(["a": 1, "b": 20, "c": 30]), .wait(60), .round(["a": 1, "b": 20, "c": 30]),
                .home("b"), .wait(60), .round(["a": 1, "b": 20, "c": 30]), .home("b"), .wait(120),
                .round(["a": 1, "b": 20, "c": 30]), .home("a"),
            ],
            // Nor because the link to every other fails too: each is tried once.
            [.down("b"), .wait(60), .home("c"), .down("c"), .wait(60), .home("c")],
            // But a dead relay is worse.
            [.wait(60), .round(["a": 1, "b": nil, "c": nil]), .home("a")],
        ] as [[HomeStep]])
    func shunned(steps: [HomeStep]) throws {
        var script = Script()
        try script.run(
            Self.homeIsA + [
                .down("a"), .round(["a": 10, "b": 20, "c": 30]), .wait(10), .home("b"), .up("b"),
            ])
        try script.run(steps)
    }

    @Test("a relay to which no link holds is tried less and less often")
    func shunnedLonger() throws {
        var script = Script()
        try script.run(Self.homeIsA + [.set("ab"), .down("a"), .round(["a": 1, "b": 20]), .wait(10), .home("b")])
        for minutes in [5, 10, 20, 40, 80, 80] as [Double] {
            try script.run([
                .up("b"), .wait(minutes * 60 - 10), .round(["a": 1, "b": 20]), .wait(5), .round(["a": 1, "b": 20]),
                .home("b"), .wait(5), .round(["a": 1, "b": 20]), .home("a"), .wait(10), .home("b"),
            ])
        }
        // Until a link holds.
        let twice: [HomeStep] = [.round(["a": 1, "b": 20]), .wait(5), .round(["a": 1, "b": 20]), .home("a")]
        try script.run([.up("b"), .wait(4800)] + twice)
        try script.run([.up("a"), .wait(5), .down("a"), .wait(10), .home("b"), .up("b"), .wait(300)] + twice)
    }

    @Test(
        "the set may change",
        arguments: [
            // A new relay is measured at once, and judged like the others.
            [
                .set("abcd"), .home("a"), .measureIn(0), .round(["a": 10, "b": 20, "c": 30, "d": 1]), .home("a"),
                .wait(60), .round(["a": 10, "b": 20, "c": 30, "d": 1]), .home("d"),
            ],
            // The home relay is gone: the best of the others, at once.
            [.set("bc"), .home("b"), .set("c"), .home("c"), .measureIn(nil)],
            // Even right after a change.
            [.round(["a": nil, "b": 20, "c": 30]), .home("b"), .set("ac"), .home("c")],
            // All others are new: the first choice again.
            [.set("xy"), .home(nil), .measureIn(0), .round(["x": 2, "y": 1]), .home("y")],
            // A relay that is removed and comes back is a new one.
            [.set("ac"), .set("abc"), .down("a"), .wait(10), .home("c")],
            // A round does not wait for a relay that is gone.
            [.begin, .answer("a", nil), .answer("b", 20), .home("a"), .set("ab"), .home("b")],
            // From one relay to two and back.
            [
                .set("b"), .home("b"), .set("bd"), .home("b"), .measureIn(0), .set("d"), .home("d"), .measureIn(nil),
            ],
            // The same set again changes nothing.
            [
                .set("cba"), .home("a"), .measureIn(0), .round(["a": 10, "b": 20, "c": 30]), .set("abc"),
                .measureIn(60),
            ],
        ] as [[HomeStep]])
    func changes(steps: [HomeStep]) throws {
        var script = Script()
        try script.run(Self.homeIsA + steps)
    }

    @Test("rounds are spread over six seconds by what comes from outside")
    func spread() throws {
        var selection = HomeRelaySelection()
        selection.setRelays([try homeRelay("a"), try homeRelay("b")], at: .at(1))
        for (random, seconds) in [(0, 60), (UInt64.max / 2 + 1, 63), (.max, 66)] as [(UInt64, Double)] {
            _ = selection.beginRound(random: random, at: .at(1))
            #expect(selection.measureAt == .at(1 + seconds))
            #expect(selection.deadline == selection.measureAt)
        }
    }
}
