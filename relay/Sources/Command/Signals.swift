import CulvertCore
import Glibc
import Synchronization

/// The signals that mean something, held back from their default action. Make it before any thread.
struct Signals {
    private var set = sigset_t()

    init() {
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Waits for the next one.
    func next() -> Int32 {
        var set = set
        var number: Int32 = 0
        while sigwait(&set, &number) != 0 {}
        return number
    }

    /// Waits for the next one, but not for longer than `limit`.
    func next(within limit: Duration) {
        var set = set
        var time = timespec(tv_sec: 0, tv_nsec: Int(limit.nanoseconds))
        _ = sigtimedwait(&set, nil, &time)
    }
}

/// Hands one value to a thread that waits for it.
final class Handover<T: Sendable>: Sendable {
    private let value = Mutex<T?>(nil)
    private let semaphore: OwnedSemaphore

    init() { semaphore = OwnedSemaphore() }

    func give(_ value: T) {
        self.value.withLock { $0 = value }
        semaphore.post()
    }

    func take() -> T {
        while true {
            semaphore.wait()
            if let value = value.withLock({ $0 }) { return value }
        }
    }
}

/// A POSIX semaphore.
// @unchecked: sem_post(3) and sem_wait(3) may be called by any thread, and the pointer never changes.
final class OwnedSemaphore: @unchecked Sendable {
    private let raw: UnsafeMutablePointer<sem_t>

    init() {
        raw = .allocate(capacity: 1)
        sem_init(raw, 0, 0)
    }

    deinit {
        sem_destroy(raw)
        raw.deallocate()
    }

    func post() { sem_post(raw) }
    func wait() { while sem_wait(raw) != 0 {} }
}
