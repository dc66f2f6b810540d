import CulvertCore

/// Calls an action once at a time, on the loop. Arming again moves it and allocates nothing. A timer that is let go
/// never fires.
package final class LoopTimer {
    private let entry: Entry

    /// A timer on `loop` that is not armed.
    package init(loop: EventLoop, action: @escaping () -> Void) {
        entry = Entry(loop: loop, action: action)
    }

    deinit {
        entry.action = nil
        if entry.heapIndex != nil, entry.loop.isOnLoop { entry.loop.set(entry, at: .never) }
    }

    /// When it fires; ``Instant/never`` when it is not armed.
    package var deadline: Instant { entry.deadline }

    /// Has it fire at `deadline`, instead of when it was to fire before.
    package func arm(at deadline: Instant) {
        entry.loop.set(entry, at: deadline)
    }

    /// Has it not fire.
    package func disarm() {
        entry.loop.set(entry, at: .never)
    }

    /// What the loop's heap holds.
    final class Entry: Deadlined {
        let loop: EventLoop
        var action: (() -> Void)?
        var deadline = Instant.never
        var heapIndex: Int?

        init(loop: EventLoop, action: @escaping () -> Void) {
            self.loop = loop
            self.action = action
        }
    }
}
