import CulvertCore

/// What is known of one relay of the set.
struct RelayRecord: Sendable {
    private var answers: [(at: Instant, roundTrip: Duration)] = []
    /// Whether it did not answer when it was asked last.
    private(set) var hasFailed = false
    /// Whether it was heard of in the present round.
    private(set) var isMeasuredInRound = false
    /// Its answer in the present round.
    private(set) var roundTripInRound: Duration?
    /// In how many rounds in a row it was much faster than the home relay.
    var fasterRounds = 0
    /// How often it was left in a row because no link to it held.
    private var linkFailures = 0
    private var shunnedUntil: Instant?

    /// Whether it has been much faster than the home relay for long enough to replace it.
    var isFaster: Bool { fasterRounds >= RelayLimits.fasterRounds }

    /// Whether it was left not long ago because no link to it held.
    func isShunned(at now: Instant) -> Bool { shunnedUntil.map { now < $0 } ?? false }

    /// It is left because no link to it holds: the more often, the longer it is not gone back to.
    mutating func shun(at now: Instant) {
        shunnedUntil = now + RelayLimits.measurementLife * (1 << min(linkFailures, RelayLimits.shunDoublings))
        linkFailures += 1
    }

    /// There is a link to it.
    mutating func linkHolds() {
        linkFailures = 0
    }

    /// The best answer of the last five minutes.
    func best(at now: Instant) -> Duration? {
        answers.filter { now - $0.at <= RelayLimits.measurementLife }.map(\.roundTrip).min()
    }

    mutating func roundBegins() {
        isMeasuredInRound = false
        roundTripInRound = nil
    }

    mutating func measured(_ roundTrip: Duration?, at now: Instant) {
        isMeasuredInRound = true
        roundTripInRound = roundTrip
        hasFailed = roundTrip == nil
        answers.removeAll { now - $0.at > RelayLimits.measurementLife }
        if let roundTrip { answers.append((now, roundTrip)) }
    }

    /// Compares with the home relay's answer in the round that ends; nil when it did not answer.
    mutating func roundEnds(homeTime: Duration?) {
        let isFaster =
            if let roundTripInRound, let homeTime { roundTripInRound * 3 < homeTime * 2 } else { false }
        fasterRounds = isFaster ? fasterRounds + 1 : 0
    }
}
