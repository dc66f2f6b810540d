import CLinux
import CulvertCore
import Glibc
import Synchronization

/// One thread that owns sockets, timers and the actors pinned to it.
///
/// One iteration: wait in epoll until something happens or the next timer is due; read the clock; call the handlers of
/// ready descriptors; fire the expired timers; run the jobs of pinned actors that had arrived by then; call the
/// flushers until none is left.
///
/// **Isolation.** `enqueue`, `stop` and the checks may be called from any thread. Everything else, and every handler,
/// timer and socket, belongs to the loop's thread: reach it by an actor whose `unownedExecutor` is this loop's, and
/// enter the actor's isolation in handlers with `assumeIsolated`.
///
/// **Lifetime.** The thread keeps the loop alive until ``stop()``. Actors hold their loop strongly, so that their
/// executor exists as long as they do. Jobs that arrive after the end still run, one at a time on a thread that lives
/// only for them, so that no task hangs; by then descriptors are closed and registering throws.
// @unchecked: `jobs` and `threadIdentity` are synchronized; all other state is touched only by the one thread that
// `threadIdentity` names, and a successor (see `enqueue`) starts only after the lock told that its predecessor is done.
package final class EventLoop: SerialExecutor, @unchecked Sendable {
    private struct JobQueue {
        var jobs: [UnownedJob] = []
        /// Whether the thread may be waiting in epoll, so that the next job has to wake it.
        var isSleeping = false
        var isStopping = false
        var hasThread = true
    }

    /// The name of the loop's thread in process listings.
    package let name: String
    /// The time at which this iteration's events were received.
    package private(set) var now: Instant
    private let jobs = Mutex(JobQueue())
    /// `pthread_self()` of the thread that runs the loop's code; 0 when there is none.
    private let threadIdentity = Atomic<UInt>(0)
    private var epoll: FileDescriptor
    private var wakeUp: FileDescriptor
    private let events: UnsafeMutablePointer<clinux_event>
    private var registrations = RegistrationTable()
    private var timers = DeadlineHeap<LoopTimer>()
    private var isClosed = false
    // Work lists in pairs: one gathers while the other is worked off, so that neither is ever reallocated.
    private var running: [UnownedJob] = []
    private var flushers: [any LoopFlusher] = []
    private var flushing: [any LoopFlusher] = []
    private var repeats: [(Registration, Readiness)] = []
    private var repeating: [(Registration, Readiness)] = []

    /// The key under which the loop's own wake-up descriptor is registered; no slot has it.
    private static let wakeUpKey = UInt64.max

    /// Starts the thread. Throws `.limit` when descriptors or threads have run out.
    package init(name: String) throws(TransportError) {
        self.name = name
        now = SystemClock.monotonic()
        epoll = FileDescriptor(owning: clinux_epoll_create())
        wakeUp = FileDescriptor(owning: clinux_eventfd())
        events = .allocate(capacity: Int(CLINUX_EVENTS_MAX))
        // Edge-triggered, so that each signal wakes once and the counter never has to be read.
        guard epoll.isOpen, wakeUp.isOpen,
            clinux_epoll_add(epoll.number, wakeUp.number, CLINUX_READABLE | CLINUX_EDGE, Self.wakeUpKey) == 0,
            startThread({ $0.run() })
        else {
            throw TransportError(.limit, "an event loop could not be started; raise the limits on files and threads")
        }
    }

    deinit {
        events.deallocate()
    }

    /// Ends the thread after its current iteration: descriptors are closed, timers disarmed, handlers let go. Jobs that
    /// have arrived still run. May be called from any thread, more than once; does not wait.
    package func stop() {
        jobs.withLock { queue in
            queue.isStopping = true
            wakeIfSleeping(&queue)
        }
    }

    // MARK: Descriptors

    /// Calls `handler` when `descriptor` is ready for `interest`; errors and hang-ups are always reported.
    ///
    /// The loop keeps the handler alive until ``deregister(_:)``, which must come before the descriptor is closed.
    /// Throws `.limit` when the kernel refuses and `.cancelled` once the loop has stopped.
    package func register(
        _ descriptor: Int32, mode: TriggerMode, interest: Readiness, handler: any ReadinessHandler
    ) throws(TransportError) -> Registration {
        preconditionOnLoop()
        guard !isClosed else { throw TransportError(.cancelled, "the event loop has stopped") }
        let registration = registrations.add(descriptor, mode: mode, handler: handler)
        guard clinux_epoll_add(epoll.number, descriptor, mode.bits(interest), registration.key) == 0 else {
            _ = registrations.remove(registration)
            throw TransportError(.limit, "the system watches no further descriptor; raise fs.epoll.max_user_watches")
        }
        return registration
    }

    /// Changes what the registration waits for.
    package func modify(_ registration: Registration, interest: Readiness) {
        preconditionOnLoop()
        guard let (descriptor, mode) = registrations.descriptor(registration) else { return }
        // Cannot fail for a registered descriptor: the kernel allocates nothing here.
        _ = clinux_epoll_modify(epoll.number, descriptor, mode.bits(interest), registration.key)
    }

    /// Ends a registration; its handler hears nothing more, not even of events already received.
    package func deregister(_ registration: Registration) {
        preconditionOnLoop()
        guard let descriptor = registrations.remove(registration) else { return }
        _ = clinux_epoll_remove(epoll.number, descriptor)
    }

    /// Delivers `events` to the registration's handler in the next iteration, after what epoll reports: how a handler
    /// that has used up its budget lets others go first. The loop does not sleep before that.
    package func deliverAgain(_ events: Readiness, to registration: Registration) {
        preconditionOnLoop()
        guard !isClosed else { return }
        repeats.append((registration, events))
    }

    /// Calls `flusher` at the end of this iteration, once however often it is asked for.
    package func flushLater(_ flusher: any LoopFlusher) {
        preconditionOnLoop()
        guard !flusher.isFlushScheduled, !isClosed else { return }
        flusher.isFlushScheduled = true
        flushers.append(flusher)
    }

    // MARK: Timers

    /// False once the loop has stopped: the timer stays disarmed.
    func schedule(_ timer: LoopTimer) -> Bool {
        preconditionOnLoop()
        guard !isClosed else { return false }
        // Not in the past: otherwise a timer that rearms itself there would stay ahead of all others for ever.
        timers.set(max(timer.deadline, now), for: timer)
        return true
    }

    func unschedule(_ timer: LoopTimer) {
        preconditionOnLoop()
        timers.remove(timer)
    }

    // MARK: Executor

    /// Runs `job` on the loop's thread, in order of arrival.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let needsThread = jobs.withLock { queue -> Bool in
            queue.jobs.append(job)
            wakeIfSleeping(&queue)
            if queue.hasThread { return false }
            queue.hasThread = true
            return true
        }
        // Without a thread to be had the job waits for the next one that finds the system less busy.
        if needsThread, !startThread({ $0.runRemainingJobs() }) { jobs.withLock { $0.hasThread = false } }
    }

    /// Whether the caller runs on the loop's thread.
    package var isOnLoop: Bool { threadIdentity.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Stops the program when the caller is not on the loop's thread.
    @inline(__always)
    package func preconditionOnLoop() {
        precondition(isOnLoop, "called off the event loop's thread")
    }

    /// Two references are the same context when they are the same loop.
    package func isSameExclusiveExecutionContext(other: EventLoop) -> Bool { self === other }

    /// Lets `assumeIsolated` succeed in handlers, which run on the loop's thread outside any task.
    package func checkIsolated() { preconditionOnLoop() }

    /// The same, as a question.
    package func isIsolatingCurrentContext() -> Bool? { isOnLoop }

    // The write stays under the lock: the thread closes the descriptor only after it has cleared `isSleeping`.
    private func wakeIfSleeping(_ queue: inout JobQueue) {
        guard queue.isSleeping else { return }
        queue.isSleeping = false
        _ = clinux_eventfd_signal(wakeUp.number)
    }

    // MARK: The thread

    private func startThread(_ body: @escaping @Sendable (EventLoop) -> Void) -> Bool {
        Thread.detach { [self] in
            clinux_thread_setup(name)
            threadIdentity.store(UInt(pthread_self()), ordering: .relaxed)
            body(self)
        }
    }

    private func run() {
        while iterate() {}
        close()
        runRemainingJobs()
    }

    /// One iteration; false when the loop is to end.
    private func iterate() -> Bool {
        let hasRepeats = !repeats.isEmpty
        let (maySleep, isStopping) = jobs.withLock { queue in
            queue.isSleeping = queue.jobs.isEmpty && !queue.isStopping && !hasRepeats
            return (queue.isSleeping, queue.isStopping)
        }
        if isStopping { return false }

        let count = clinux_epoll_wait(epoll.number, events, maySleep ? nanosecondsToNextTimer() : 0)
        if maySleep { jobs.withLock { $0.isSleeping = false } }
        now = SystemClock.monotonic()

        if hasRepeats { swap(&repeats, &repeating) }
        for index in 0..<max(Int(count), 0) {
            let event = events[index]
            registrations.handler(event.key)?.ready(Readiness(rawValue: event.events))
        }
        for (registration, readiness) in repeating { registrations.handler(registration.key)?.ready(readiness) }
        repeating.removeAll(keepingCapacity: true)

        let mark = timers.mark
        while let timer = timers.popDue(at: now, setBefore: mark) { timer.fire() }

        jobs.withLock { swap(&$0.jobs, &running) }
        runBatch()

        while !flushers.isEmpty {
            swap(&flushers, &flushing)
            for flusher in flushing {
                flusher.isFlushScheduled = false
                flusher.flush()
            }
            flushing.removeAll(keepingCapacity: true)
        }
        return true
    }

    private func nanosecondsToNextTimer() -> Int64 {
        let first = timers.nextDeadline
        if first == .never { return -1 }
        let clock = SystemClock.monotonic()
        return first <= clock ? 0 : Int64(clamping: first.nanoseconds - clock.nanoseconds)
    }

    private func runBatch() {
        let executor = asUnownedSerialExecutor()
        for job in running { job.runSynchronously(on: executor) }
        running.removeAll(keepingCapacity: true)
    }

    private func close() {
        isClosed = true
        timers.removeAll()
        flushers.removeAll()
        repeats.removeAll()
        // The handlers go before epoll does: their descriptors may close with them.
        _ = registrations.removeAll()
        epoll.close()
        wakeUp.close()
    }

    /// Runs jobs until there are none, then gives up the loop's thread.
    private func runRemainingJobs() {
        while true {
            now = SystemClock.monotonic()
            let isDone = jobs.withLock { queue in
                if queue.jobs.isEmpty {
                    threadIdentity.store(0, ordering: .relaxed)
                    queue.hasThread = false
                    return true
                }
                swap(&queue.jobs, &running)
                return false
            }
            if isDone { return }
            runBatch()
        }
    }
}

extension TriggerMode {
    fileprivate func bits(_ interest: Readiness) -> UInt32 {
        self == .edge ? interest.rawValue | CLINUX_EDGE : interest.rawValue
    }
}
