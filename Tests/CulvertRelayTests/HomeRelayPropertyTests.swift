import CulvertCore
import CulvertIdentity
import CulvertTestSupport
import Testing

@testable import CulvertRelay

/// A host's relays and network, as random as a seed makes them, with a shell around the selection under test.
private struct HomeSimulation {
    private enum Event {
        case answer(RelayURL, Duration?)
        case link(RelayURL, isUp: Bool)
        /// The world changes.
        case change
    }

    private var random: SplitMix64
    private let names: [RelayURL]
    /// The time that each relay takes; none for one that does not answer.
    private var latencies: [RelayURL: Duration] = [:]
    /// The relays to which no link holds, though they may answer.
    private var linkless: Set<RelayURL> = []
    private var events: [(at: Instant, event: Event)] = []
    private(set) var selection = HomeRelaySelection()
    private(set) var now = Instant.at(1)

    // What the selection was told, kept apart from it.
    private var lastAnswer: [RelayURL: Duration?] = [:]
    private var answersInRounds: [[RelayURL: Duration]] = [[:], [:], [:]]
    private var home: RelayURL?
    private var linkDownSince: Instant?
    private var chosenAt: Instant?
    private var roundAt: Instant?
    private var hasNewSet = false
    /// When the home relay last became another one.
    private(set) var lastChange = Instant.at(0)

    init(seed: UInt64) throws {
        random = SplitMix64(seed: seed)
        names = try "abcdef".prefix(Int.random(in: 1...6, using: &random)).map(homeRelay)
        for name in names { latencies[name] = latency() }
        changeSet()
    }

    /// Lets the world change for some time, then stay as it is for some more.
    mutating func run(changing: Duration, quiet: Duration) {
        let quietAt = now + changing
        var next = now
        while next < quietAt {
            events.append((next, .change))
            next = next + .milliseconds(Int.random(in: 1...60_000, using: &random))
        }
        step(until: quietAt)
        linkless = Set(names.filter { latencies[$0] == nil })
        if let home = selection.home { reportLink(isUp: !linkless.contains(home)) }
        step(until: now + quiet)
    }

    /// Whether the present home relay is one that a person would accept.
    var isContent: Bool {
        let works = selection.relays.filter { latencies[$0] != nil }
        guard selection.relays.count > 1 else { return selection.home == selection.relays.first }
        guard !works.isEmpty else { return true }
        guard let home = selection.home, let latency = latencies[home] else { return false }
        return works.allSatisfy { (latencies[$0] ?? .zero) * 3 >= latency * 2 }
    }

    private mutating func step(until end: Instant) {
        while true {
            let next = min(selection.deadline, events.map(\.at).min() ?? .never)
            guard next <= end else { break }
            now = max(now, next)
            if let index = events.indices.filter({ events[$0].at <= now }).min(by: { events[$0].at < events[$1].at }) {
                perform(events.remove(at: index).event)
            } else {
                selection.timePassed(at: now)
                if selection.measureAt <= now { beginRound() }
                #expect(selection.deadline > now, "the shell would spin")
            }
            check()
        }
        now = end
    }

    private mutating func perform(_ event: Event) {
        switch event {
        case .change: change()
        case .answer(let relay, let roundTrip):
            if selection.relays.contains(relay) {
                lastAnswer[relay] = .some(roundTrip)
                answersInRounds[0][relay] = roundTrip
            }
            selection.measured(relay, roundTrip, at: now)
        case .link(let relay, let isUp):
            guard relay == selection.home else { return }
            reportLink(isUp: isUp && !linkless.contains(relay))
        }
    }

    private mutating func reportLink(isUp: Bool) {
        guard let home = selection.home else { return }
        if isUp {
            linkDownSince = nil
            selection.linkUp(home, at: now)
        } else {
            if linkDownSince == nil { linkDownSince = now }
            selection.linkDown(home, at: now)
        }
        check()
    }

    private mutating func beginRound() {
        if let roundAt, !hasNewSet { #expect(now - roundAt >= .seconds(5), "rounds are too close") }
        roundAt = now
        hasNewSet = false
        answersInRounds = [[:]] + answersInRounds.dropLast()
        for relay in selection.beginRound(random: random.next(), at: now) {
            if let latency = latencies[relay] {
                events.append((now + latency, .answer(relay, latency)))
            } else if random.chance(0.9) {
                events.append((now + .milliseconds(Int.random(in: 1...4000, using: &random)), .answer(relay, nil)))
            }
        }
    }

    private mutating func change() {
        guard let relay = names.randomElement(using: &random) else { return }
        switch Int.random(in: 0..<8, using: &random) {
        case 0: changeSet()
        case 1: latencies[relay] = nil
        case 2: latencies = [:]
        case 3: for name in names { latencies[name] = latency() }
        case 4, 5: latencies[relay] = latency()
        default:
            if random.chance(0.7) { linkless.remove(relay) } else { linkless.insert(relay) }
            if let home = selection.home { reportLink(isUp: !linkless.contains(home)) }
        }
    }

    private mutating func changeSet() {
        var set: [RelayURL] = []
        for name in names where random.chance(0.8) { set.append(name) }
        for name in names where !set.contains(name) {
            lastAnswer[name] = nil
            for index in answersInRounds.indices { answersInRounds[index][name] = nil }
        }
        hasNewSet = true
        selection.setRelays(set, at: now)
        check(isNewSet: true)
    }

    private mutating func latency() -> Duration? {
        random.chance(0.8) ? .microseconds(Int.random(in: 300...300_000, using: &random)) : nil
    }

    /// Judges a step, and follows the home relay with a link.
    private mutating func check(isNewSet: Bool = false) {
        let before = home
        home = selection.home
        let relays = selection.relays
        #expect(selection.home.map(relays.contains) ?? (relays.count != 1))
        guard home != before else { return }
        if let home, relays.count > 1 {
            #expect(lastAnswer[home] != .some(nil), "a relay that failed was chosen")
            if let before, !isNewSet {
                #expect(chosenAt.map { now - $0 >= .seconds(5) } ?? true, "two changes in five seconds")
                let isDown = linkDownSince.map { now - $0 >= .seconds(10) } ?? false
                if !isDown, lastAnswer[before] != .some(nil) {
                    let rounds = answersInRounds.filter { round in
                        guard let new = round[home], let old = round[before] else { return false }
                        return new * 3 < old * 2
                    }
                    #expect(rounds.count >= 2, "a relay that works was left for one that is not much faster")
                }
            }
        }
        chosenAt = now
        lastChange = now
        linkDownSince = now
        if let home {
            let delay = Duration.milliseconds(Int.random(in: 1...3000, using: &random))
            events.append((now + delay, .link(home, isUp: true)))
        }
    }
}

@Suite("Home relay, random worlds")
struct HomeRelayPropertyTests {
    @Test("every choice is of the set, justified and kept; when the world is quiet it settles", arguments: 0..<400)
    func worlds(seed: UInt64) throws {
        var simulation = try HomeSimulation(seed: seed)
        simulation.run(changing: .seconds(1800), quiet: .seconds(7200))
        #expect(simulation.now - simulation.lastChange >= .seconds(300))
        let isContent = simulation.isContent
        #expect(isContent)
    }
}
