import CulvertCore
import CulvertIO

/// Waits for work to drain, but not for ever.
enum GracePeriod {
    /// Calls `drain` with a closure to call when all is done, and returns then or after `time`. On the loop.
    static func wait(
        _ time: Duration, loop: EventLoop, isolation: isolated (any Actor)? = #isolation,
        drain: (@escaping () -> Void) -> Void
    ) async {
        var timer: LoopTimer?
        await withCheckedContinuation { continuation in
            var isOver = false
            let finish = {
                guard !isOver else { return }
                isOver = true
                continuation.resume()
            }
            let deadline = LoopTimer(loop: loop, action: finish)
            timer = deadline
            deadline.arm(at: loop.now + time)
            drain(finish)
        }
        timer?.disarm()
    }
}
