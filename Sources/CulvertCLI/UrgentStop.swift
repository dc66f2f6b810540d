import Synchronization

/// How a command that closes in order is told to close at once: open requests are cut, but the peers still hear of it
/// and do not wait for a process that is gone. May be used from any thread.
final class UrgentStop: Sendable {
    private struct State {
        var isAsked = false
        var close: (@Sendable () async -> Void)?
    }

    private let state = Mutex(State())

    /// Whether an urgent stop was asked for.
    var isAsked: Bool { state.withLock { $0.isAsked } }

    /// Sets what closes everything at once. It may run while an orderly close is under way, which then ends too.
    func prepare(_ close: @escaping @Sendable () async -> Void) {
        state.withLock { $0.close = close }
    }

    /// Closes everything at once.
    func ask() async {
        let close = state.withLock { state in
            state.isAsked = true
            return state.close
        }
        await close?()
    }

    /// Throws when the close that has just ended was an urgent one, so that nobody takes it for an orderly stop.
    func check() throws(Failure) {
        if isAsked { throw Failure("stopped at once; open requests were cut", kind: "cancelled") }
    }
}
