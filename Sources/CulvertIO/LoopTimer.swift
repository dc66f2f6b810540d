import CulvertCore

/// Calls an action on its loop at an instant, once per arming.
///
/// Confined to the loop. Arming again moves the deadline, without allocation and in O(log n). The loop keeps an armed
/// timer alive: an owner that goes away disarms it.
package final class LoopTimer: Deadlined {
    private let loop: EventLoop
    private let action: () -> Void
    /// The position in the loop's heap; nil when not armed.
    package var heapIndex: Int?
    /// When the action will be called; ``Instant/never`` when not armed.
    package private(set) var deadline = Instant.never

    /// A timer, not armed, that will call `action` on `loop`; let the action hold its owner weakly.
    package init(loop: EventLoop, action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    /// Whether the action is due to be called.
    package var isArmed: Bool { heapIndex != nil }

    /// Calls the action once `instant` has come, instead of at any earlier set time. An instant that has passed fires
    /// in the next round of timers; ``Instant/never`` disarms.
    package func arm(at instant: Instant) {
        if instant == .never { return disarm() }
        guard !(isArmed && instant == deadline) else { return }
        deadline = instant
        if !loop.schedule(self) { deadline = .never }
    }

    /// Takes back the call; does nothing when not armed.
    package func disarm() {
        guard isArmed else { return }
        loop.unschedule(self)
        deadline = .never
    }

    /// Called by the loop after it took the timer from its heap.
    func fire() {
        deadline = .never
        action()
    }
}
