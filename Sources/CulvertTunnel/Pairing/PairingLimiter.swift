import CulvertCore

/// Counts failed pairings by source and blocks a source that fails too often (docs/protocol.md, Pairing).
///
/// A source should be something that costs an attacker: an IP address, not a node ID, of which everyone can make any
/// number. Only failures are remembered, for a bounded number of sources; when it is reached the source whose last
/// failure is longest ago is forgotten, block and all. Tokens of 256 bits keep guessing hopeless even then.
package struct PairingLimiter<Source: Hashable & Sendable>: Sendable {
    private struct Entry {
        /// The last failures, oldest first; fewer than ``TunnelLimits/pairingFailures``.
        var failures: [Instant] = []
        var blockedUntil: Instant?
        /// Position in the order of last failures.
        var stamp: UInt64
    }

    private var entries: [Source: Entry] = [:]
    /// Sources in the order of their last failures; an element whose stamp is not its entry's is out of date.
    private var order: [(source: Source, stamp: UInt64)] = []
    private var nextStamp: UInt64 = 0
    private let capacity: Int

    /// A limiter that remembers at most `capacity` sources.
    package init(capacity: Int = TunnelLimits.pairingSources) {
        self.capacity = max(capacity, 1)
    }

    /// How many sources are remembered.
    package var count: Int { entries.count }

    /// Whether pairings from `source` are to be refused unheard.
    package func isBlocked(_ source: Source, at now: Instant) -> Bool {
        guard let until = entries[source]?.blockedUntil else { return false }
        return now < until
    }

    /// Counts `decision` if it is a failure of the source's.
    package mutating func record(_ decision: PairingDecision, from source: Source, at now: Instant) {
        if case .refused(let refusal) = decision, refusal.countsAsFailure { recordFailure(from: source, at: now) }
    }

    /// Counts a failure. The one that completes the number within the window blocks the source from then on; while it
    /// is blocked its attempts are not heard, so they neither count nor prolong the block.
    package mutating func recordFailure(from source: Source, at now: Instant) {
        guard !isBlocked(source, at: now) else { return }
        var entry = entries.removeValue(forKey: source) ?? Entry(stamp: 0)
        entry.blockedUntil = nil
        entry.failures.removeAll { now - $0 > TunnelLimits.pairingFailureWindow }
        entry.failures.append(now)
        if entry.failures.count >= TunnelLimits.pairingFailures {
            entry.failures = []
            entry.blockedUntil = now + TunnelLimits.pairingBlock
        }
        entry.stamp = nextStamp
        nextStamp += 1
        if entries.count == capacity { forgetOldest() }
        entries[source] = entry
        order.append((source, entry.stamp))
        if order.count > 2 * capacity { compactOrder() }
    }

    private mutating func forgetOldest() {
        compactOrder()
        guard let oldest = order.first else { return }
        entries[oldest.source] = nil
        order.removeFirst()
    }

    /// Drops elements out of date. Costs O(capacity), a few microseconds, on failures only.
    private mutating func compactOrder() {
        order.removeAll { entries[$0.source]?.stamp != $0.stamp }
    }
}
