import CulvertCore
import CulvertIdentity

/// Which relay of its set a host keeps a connection to, and when it measures them again.
///
/// Time passes only through the arguments. The shell reports what happens, calls ``timePassed(at:)`` at ``deadline``,
/// begins a round of measurements when ``measureAt`` has come, and keeps its link to ``home``, whatever that is.
///
/// The fastest relay is chosen first. A chosen one stays until another has taken less than two thirds of its time in
/// two rounds in a row, or until it fails: its last measurement did, or its link has been down for 10 s. A relay that
/// was left because of its link answers pings and is no use; while another works it is not gone back to for 5 minutes,
/// and for twice as long each time that this happens in a row.
package struct HomeRelaySelection: Sendable {
    private struct Round {
        let startedAt: Instant
        var firstAnswerAt: Instant?
        var isOver = false
    }

    /// The relay to be connected to; nil while none is known to work.
    package private(set) var home: RelayURL?
    /// When the next round of measurements is due; ``Instant/never`` with fewer than two relays.
    package private(set) var measureAt = Instant.never
    private(set) var decideAt = Instant.never
    private var records: [RelayURL: RelayRecord] = [:]
    private var round: Round?
    /// When the home relay was chosen.
    private var chosenAt: Instant?
    /// Since when there is no link to the home relay; nil while there is one.
    private var downSince: Instant?
    /// How many rounds in a row have ended without a home relay that works.
    private var vainRounds = 0

    /// A selection of no relay.
    package init() {}

    /// The set, in the order of the text.
    package var relays: [RelayURL] { records.keys.sorted { $0.text < $1.text } }

    /// When ``timePassed(at:)`` is to be called next, or a round to be begun.
    package var deadline: Instant { min(measureAt, decideAt) }

    // MARK: What happens

    /// Makes `relays` the set. What is known of those that stay is kept; new ones are measured at once.
    package mutating func setRelays(_ relays: some Sequence<RelayURL>, at now: Instant) {
        let set = Set(relays)
        let added = set.subtracting(records.keys)
        records = records.filter { set.contains($0.key) }
        for relay in added { records[relay] = RelayRecord() }
        if let home, !set.contains(home) { self.home = nil }
        if set.count < 2 {
            measureAt = .never
            round = nil
        } else if !added.isEmpty {
            measureAt = now
        }
        endRoundIfComplete(at: now)
    }

    /// Begins a round and returns the relays to measure, each once; an earlier round is over. `random` are eight random
    /// bytes, which spread the rounds of many hosts.
    package mutating func beginRound(random: UInt64, at now: Instant) -> [RelayURL] {
        endRound(at: now)
        guard records.count > 1 else { return [] }
        round = Round(startedAt: now)
        for relay in records.keys { records[relay]?.roundBegins() }
        measureAt = now + RelayLimits.measuringPeriod + RelayLimits.measuringSpread.fraction(random)
        decide(at: now)
        return relays
    }

    /// A relay has answered after `roundTrip`, or not at all: nil.
    package mutating func measured(_ relay: RelayURL, _ roundTrip: Duration?, at now: Instant) {
        guard records[relay] != nil else { return }
        records[relay]?.measured(roundTrip, at: now)
        if roundTrip != nil, round?.firstAnswerAt == nil { round?.firstAnswerAt = now }
        endRoundIfComplete(at: now)
    }

    /// The link to `relay` is there. Only the home relay's matters.
    package mutating func linkUp(_ relay: RelayURL, at now: Instant) {
        guard relay == home else { return }
        downSince = nil
        records[relay]?.linkHolds()
        decide(at: now)
    }

    /// The link to `relay` is lost. Only the home relay's matters.
    package mutating func linkDown(_ relay: RelayURL, at now: Instant) {
        guard relay == home, downSince == nil else { return }
        downSince = now
        vainRounds = 0
        measure(at: now)
        decide(at: now)
    }

    /// ``deadline`` has come. A round that is due is not begun by this.
    package mutating func timePassed(at now: Instant) {
        decide(at: now)
    }

    // MARK: Rounds

    private mutating func endRoundIfComplete(at now: Instant) {
        if records.values.allSatisfy(\.isMeasuredInRound) { endRound(at: now) }
        decide(at: now)
    }

    private mutating func endRound(at now: Instant) {
        guard round?.isOver == false else { return }
        round?.isOver = true
        let homeTime = home.flatMap { records[$0]?.roundTripInRound }
        for relay in records.keys where relay != home { records[relay]?.roundEnds(homeTime: homeTime) }
        replaceFailedHome(at: now)
        if mayChange(at: now), let faster = best(at: now, where: { $0.isFaster && !$0.isShunned(at: now) }) {
            choose(faster, at: now)
        }
        vainRounds = isWithoutHome(at: now) ? vainRounds + 1 : 0
    }

    /// Whether a decision needs not wait for the round under way: everybody has been heard, or the first answer is long
    /// enough ago.
    private var settlesAt: Instant {
        guard let round, !round.isOver else { return Instant(nanoseconds: 0) }
        return round.firstAnswerAt.map { $0 + RelayLimits.firstAnswerWait } ?? .never
    }

    private mutating func measure(at instant: Instant) {
        guard records.count > 1 else { return }
        let earliest = round.map { $0.startedAt + RelayLimits.measuringFloor } ?? instant
        measureAt = min(measureAt, max(instant, earliest))
    }

    // MARK: Decisions

    private mutating func decide(at now: Instant) {
        replaceFailedHome(at: now)
        if isWithoutHome(at: now), round?.isOver == true, let startedAt = round?.startedAt {
            let doublings = min(max(vainRounds - 1, 0), RelayLimits.measuringDoublings)
            measure(at: max(now, startedAt + RelayLimits.measuringFloor * (1 << doublings)))
        }
        let next = home == nil ? settlesAt : max(failsAt, settlesAt, mayChangeAt)
        decideAt = next > now && records.count > 1 ? next : .never
    }

    private mutating func replaceFailedHome(at now: Instant) {
        if records.count == 1, let only = records.keys.first {
            if home != only { choose(only, at: now) }
            return
        }
        guard now >= settlesAt else { return }
        if home == nil, let best = best(at: now, where: { _ in true }) { return choose(best, at: now) }
        guard let home, failsAt <= now, mayChange(at: now) else { return }
        // Of two relays whose links fail, the one is as good as the other: only a dead one is left for such a relay.
        let isDead = records[home]?.hasFailed == true
        let other = best(at: now, where: { isDead || !$0.isShunned(at: now) }, except: home)
        guard let other else { return }
        if !isDead { records[home]?.shun(at: now) }
        choose(other, at: now)
    }

    private mutating func choose(_ relay: RelayURL, at now: Instant) {
        home = relay
        chosenAt = now
        downSince = now
        for relay in records.keys { records[relay]?.fasterRounds = 0 }
    }

    private func isWithoutHome(at now: Instant) -> Bool { home == nil || failsAt <= now }

    /// When the home relay counts as failing if nothing else happens.
    private var failsAt: Instant {
        if let home, records[home]?.hasFailed == true { return Instant(nanoseconds: 0) }
        return downSince.map { $0 + RelayLimits.homeLinkPatience } ?? .never
    }

    /// Until when the home relay stays, whatever happens to it.
    private var mayChangeAt: Instant { chosenAt.map { $0 + RelayLimits.homeHold } ?? Instant(nanoseconds: 0) }

    private func mayChange(at now: Instant) -> Bool { now >= mayChangeAt }

    /// The fastest relay that answered when it was asked last, by the best of its recent answers.
    private func best(
        at now: Instant, where isGood: (RelayRecord) -> Bool, except excluded: RelayURL? = nil
    ) -> RelayURL? {
        let isUnderWay = round?.isOver == false
        let candidates = records.compactMap { relay, record -> (roundTrip: Duration, text: String, relay: RelayURL)? in
            guard relay != excluded, !record.hasFailed, isGood(record), !isUnderWay || record.isMeasuredInRound,
                let roundTrip = record.best(at: now)
            else { return nil }
            return (roundTrip, relay.text, relay)
        }
        return candidates.min { ($0.roundTrip, $0.text) < ($1.roundTrip, $1.text) }?.relay
    }
}
