/// What is said while open requests finish.
enum StopProgress {
    /// The line after so many seconds.
    static func label(_ seconds: Int) -> String {
        let left = Limits.shutdownGrace.components.seconds - Int64(seconds)
        return left > 0 ? "Stopping; open requests have \(left) s left, Ctrl-C cuts them" : "Stopping"
    }
}
