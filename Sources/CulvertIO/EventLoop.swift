import CLinux
import CulvertCore
import Glibc
import Synchronization

/// What a file descriptor is ready for.
package struct Readiness: OptionSet, Sendable {
    /// epoll's bits.
    package let rawValue: UInt32

    /// Readiness from epoll's bits.
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// There is something to read, or the end.
    package static let readable = Readiness(rawValue: CLINUX_READABLE)
    /// There is room to write.
    package static let writable = Readiness(rawValue: CLINUX_WRITABLE)
    /// The peer has ended its direction.
    package static let peerFinished = Readiness(rawValue: CLINUX_PEER_FINISHED)
    /// The descriptor is broken, or both directions are over.
    package static let failed = Readiness(rawValue: CLINUX_ERROR | CLINUX_HANGUP)
    /// Tell changes only (edge-triggered), instead of states. For registration.
    package static let onChange = Readiness(rawValue: CLINUX_EDGE)
}

/// Who is told about a registered descriptor, on the loop.
package protocol ReadinessHandler: AnyObject {
    /// The descriptor has become ready.
    func ready(_ readiness: Readiness)
}

/// Who has work to do once at the end of an iteration of the loop, however often it was asked for.
package protocol LoopFlusher: AnyObject {
    /// Whether the loop has it on its list; belongs to the loop.
    var isFlushScheduled: Bool { get set }
    /// Does the work.
    func flush()
}

/// One thread that waits for descriptors, timers and jobs, and is the executor of the actors pinned to it.
///
/// An iteration goes: descriptors, timers, jobs, flushers. Everything except ``enqueue(_:)`` and ``stop()`` may be
/// called on the loop only.
///
/// `@unchecked Sendable`: what other threads may touch is the queue of jobs (a `Mutex`), the flag `isStopping` in it
/// and the wake descriptor, which is constant. All other state belongs to the loop's thread: every method that uses
/// it begins with ``preconditionOnLoop()``.
package final class EventLoop: SerialExecutor, @unchecked Sendable {
    /// Names a registered descriptor.
    package struct Registration: Hashable, Sendable {
        fileprivate let slot: UInt32
        fileprivate let generation: UInt32
        fileprivate var key: UInt64 { UInt64(generation) << 32 | UInt64(slot) }
    }

    private struct Slot {
        var handler: (any ReadinessHandler)?
        var generation: UInt32 = 0
        var fd: Int32 = -1
    }

    private struct Inbox {
        var jobs: [UnownedJob] = []
        /// Whether the loop has been woken, or will look before it sleeps.
        var isAwake = false
        var isStopping = false
        var hasEnded = false
    }

    /// The time at the start of the iteration.
    package private(set) var now: Instant

    private let epoll: Int32
    private let wakeup: Int32
    private let inbox = Mutex(Inbox())
    /// Written once, by the thread itself, before anybody can ask.
    private let thread = Atomic<UInt>(0)
    private var slots: [Slot] = []
    private var freeSlots: [UInt32] = []
    private var timers = DeadlineHeap<LoopTimer.Entry>()
    private var flushers: [any LoopFlusher] = []
    private var jobs: [UnownedJob] = []

    /// The registration of the wake descriptor.
    private static let wakeKey = UInt64.max

    /// Starts a thread called `name`. Throws `state` when the system has no descriptor or thread left.
    package init(name: String) throws(TransportError) {
        now = SystemClock.monotonic()
        epoll = clinux_epoll_create()
        wakeup = clinux_eventfd()
        let exhausted = TransportError(.state, "the system has no file descriptors or threads left for an event loop")
        guard epoll >= 0, wakeup >= 0, clinux_epoll_add(epoll, wakeup, CLINUX_READABLE | CLINUX_EDGE, Self.wakeKey) == 0
        else {
            if epoll >= 0 { _ = Glibc.close(epoll) }
            if wakeup >= 0 { _ = Glibc.close(wakeup) }
            throw exhausted
        }
        let isStarted = Thread.detach { [self] in
            clinux_thread_setup(name)
            run()
        }
        guard isStarted else { throw exhausted }
    }

    deinit {
        _ = Glibc.close(epoll)
        _ = Glibc.close(wakeup)
    }

    // MARK: Executor

    /// Takes a job from any thread. After the loop has stopped jobs still run, one by one on a thread of their own,
    /// so that actors pinned to it can finish; they must not use the loop's sockets any more.
    package func enqueue(_ job: consuming ExecutorJob) {
        let unowned = UnownedJob(job)
        let (mustWake, hasEnded) = inbox.withLock { inbox in
            inbox.jobs.append(unowned)
            let mustWake = !inbox.isAwake
            inbox.isAwake = true
            return (mustWake, inbox.hasEnded)
        }
        if hasEnded { runLate() } else if mustWake { _ = clinux_eventfd_signal(wakeup) }
    }

    /// The executor for `unownedExecutor` of an actor.
    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(complexEquality: self)
    }

    /// Whether both are the same loop.
    package func isSameExclusiveExecutionContext(other: EventLoop) -> Bool {
        self === other
    }

    /// Stops the program unless called on the loop's thread.
    package func checkIsolated() {
        preconditionOnLoop()
    }

    /// Whether the caller is on the loop's thread.
    package var isOnLoop: Bool {
        thread.load(ordering: .relaxed) == UInt(bitPattern: Int(pthread_self()))
    }

    /// Stops the program unless called on the loop's thread.
    @inline(__always)
    package func preconditionOnLoop() {
        precondition(isOnLoop, "this belongs to the event loop's thread")
    }

    /// Ends the thread after the iteration in progress and the jobs that are waiting.
    package func stop() {
        inbox.withLock { $0.isStopping = true }
        _ = clinux_eventfd_signal(wakeup)
    }

    // MARK: Descriptors

    /// Tells `handler` when `fd` is ready for `interest`. The caller keeps the descriptor and deregisters it before it
    /// closes it. Throws `state` when the kernel has no room.
    package func register(_ fd: Int32, _ interest: Readiness, handler: any ReadinessHandler) throws(TransportError)
        -> Registration
    {
        preconditionOnLoop()
        let index = freeSlots.popLast() ?? {
            slots.append(Slot())
            return UInt32(slots.count - 1)
        }()
        let registration = Registration(slot: index, generation: slots[Int(index)].generation)
        guard clinux_epoll_add(epoll, fd, interest.rawValue, registration.key) == 0 else {
            freeSlots.append(index)
            throw TransportError(.state, "the system cannot watch another file descriptor")
        }
        slots[Int(index)].handler = handler
        slots[Int(index)].fd = fd
        return registration
    }

    /// Changes what the handler is told about.
    package func modify(_ registration: Registration, _ interest: Readiness) {
        preconditionOnLoop()
        guard isValid(registration) else { return }
        _ = clinux_epoll_modify(epoll, slots[Int(registration.slot)].fd, interest.rawValue, registration.key)
    }

    /// The handler is told nothing more, not even what this iteration has found already.
    package func deregister(_ registration: Registration) {
        preconditionOnLoop()
        guard isValid(registration) else { return }
        let index = Int(registration.slot)
        _ = clinux_epoll_remove(epoll, slots[index].fd)
        slots[index].handler = nil
        slots[index].fd = -1
        slots[index].generation &+= 1
        freeSlots.append(registration.slot)
    }

    private func isValid(_ registration: Registration) -> Bool {
        slots.indices.contains(Int(registration.slot))
            && slots[Int(registration.slot)].generation == registration.generation
            && slots[Int(registration.slot)].handler != nil
    }

    // MARK: Timers and flushers

    func set(_ timer: LoopTimer.Entry, at deadline: Instant) {
        preconditionOnLoop()
        timers.set(deadline, for: timer)
    }

    /// Has `flusher` called once at the end of this iteration.
    package func flushLater(_ flusher: any LoopFlusher) {
        preconditionOnLoop()
        guard !flusher.isFlushScheduled else { return }
        flusher.isFlushScheduled = true
        flushers.append(flusher)
    }

    // MARK: The thread

    private func run() {
        thread.store(UInt(bitPattern: Int(pthread_self())), ordering: .relaxed)
        let events = UnsafeMutablePointer<clinux_event>.allocate(capacity: Int(CLINUX_EVENTS_MAX))
        defer { events.deallocate() }
        while true {
            let hasJobs = inbox.withLock { inbox in
                inbox.isAwake = !inbox.jobs.isEmpty
                return inbox.isAwake || inbox.isStopping
            }
            let count = clinux_epoll_wait(epoll, events, hasJobs ? 0 : timeout)
            now = SystemClock.monotonic()
            for index in 0..<max(0, Int(count)) { dispatch(events[index]) }
            while let timer = timers.popDue(at: now) { timer.action?() }
            runJobs()
            flush()
            if endIfAsked() { return }
        }
    }

    /// Nanoseconds until the next timer; -1 for ever.
    private var timeout: Int64 {
        guard timers.nextDeadline != .never else { return -1 }
        return max(0, (timers.nextDeadline - SystemClock.monotonic()).nanoseconds)
    }

    private func dispatch(_ event: clinux_event) {
        guard event.key != Self.wakeKey else { return }
        let slot = Int(event.key & 0xffff_ffff)
        guard slot < slots.count, slots[slot].generation == UInt32(event.key >> 32), let handler = slots[slot].handler
        else { return }
        handler.ready(Readiness(rawValue: event.events))
    }

    private func runJobs() {
        inbox.withLock { swap(&$0.jobs, &jobs) }
        let executor = asUnownedSerialExecutor()
        for job in jobs { job.runSynchronously(on: executor) }
        jobs.removeAll(keepingCapacity: true)
    }

    private func flush() {
        var index = 0
        while index < flushers.count {
            flushers[index].isFlushScheduled = false
            flushers[index].flush()
            index += 1
        }
        flushers.removeAll(keepingCapacity: true)
    }

    private func endIfAsked() -> Bool {
        let ends = inbox.withLock { inbox in
            guard inbox.isStopping, inbox.jobs.isEmpty else { return false }
            inbox.hasEnded = true
            return true
        }
        guard ends else { return false }
        slots.removeAll()
        while let timer = timers.first { timers.remove(timer) }
        return true
    }

    /// Runs jobs that came after the thread had ended, on a thread that becomes the loop's.
    private func runLate() {
        _ = Thread.detach { [self] in
            lateJobs.withLock { _ in
                thread.store(UInt(bitPattern: Int(pthread_self())), ordering: .relaxed)
                runJobs()
            }
        }
    }

    /// Held by the one thread that runs late jobs.
    private let lateJobs = Mutex(())
}
