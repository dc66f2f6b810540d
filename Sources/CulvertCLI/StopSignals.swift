import CulvertCore
import Glibc

/// The signals that ask the process to stop in order, held back from their default action.
struct StopSignals {
    private var set = sigset_t()

    /// Holds back SIGINT, SIGTERM and SIGHUP in this thread and in those that it starts from now on. SIGHUP keeps
    /// being ignored when it is, as nohup wants.
    init() {
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        var hangUp = sigaction()
        let isIgnored = sigaction(SIGHUP, nil, &hangUp) == 0 && Self.ignores(hangUp)
        if !isIgnored { sigaddset(&set, SIGHUP) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Waits for one of the signals.
    func wait() {
        var set = set
        var number: Int32 = 0
        while sigwait(&set, &number) != 0 {}
    }

    /// Waits for one of the signals, but not for longer than `limit`; false when none came.
    func wait(atMost limit: Duration) -> Bool {
        var set = set
        var time = timespec(tv_sec: Int(limit.components.seconds), tv_nsec: 0)
        // Interrupted only by signals outside the set, such as SIGCONT; then the time starts again.
        while true {
            if sigtimedwait(&set, nil, &time) >= 0 { return true }
            if errno != EINTR { return false }
        }
    }

    private static func ignores(_ action: sigaction) -> Bool {
        unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
