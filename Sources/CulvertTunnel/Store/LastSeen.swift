import CulvertCore

/// Collects when devices were seen, so that the database is written once in a while and not for every stream.
package struct LastSeen: Sendable {
    private var written: [String: UnixTime] = [:]
    private var pending: [String: UnixTime] = [:]

    /// Nothing seen yet.
    package init() {}

    /// Notes that the device was seen; true when ``takePending()`` is worth a write now. Costs no write itself.
    package mutating func note(_ deviceID: String, at now: UnixTime) -> Bool {
        pending[deviceID] = now
        guard let last = written[deviceID] else { return true }
        return now - last >= TunnelLimits.lastSeenGrain
    }

    /// What to give to ``HostStore/touch(_:)``; call it when ``note(_:at:)`` says so and before the host ends.
    package mutating func takePending() -> [String: UnixTime] {
        written.merge(pending) { $1 }
        defer { pending = [:] }
        return pending
    }
}
