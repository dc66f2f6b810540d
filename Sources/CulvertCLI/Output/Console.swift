import Glibc
import Synchronization

/// The two streams that people and scripts see: results on standard output, everything else on standard error.
///
/// A line goes out whole and at once, whichever task writes it. May be used from any thread.
final class Console: Sendable {
    /// Why standard output takes no more.
    enum OutputFault: Sendable, Equatable {
        /// The reader went away, as `head` does; not an error.
        case closedByReader
        /// A full disk, for instance.
        case failed
    }

    private struct State {
        var fault: OutputFault?
        var progress: Progress = .none
    }

    private enum Progress { case none, waiting, shown }

    /// Whether results go to a person.
    let outputIsTerminal: Bool
    /// Whether progress can be shown and erased again.
    let errorIsTerminal: Bool
    private let output: Int32
    private let error: Int32
    private let state = Mutex(State())

    /// A console that writes to two open descriptors, which stay the caller's.
    init(output: Int32 = STDOUT_FILENO, error: Int32 = STDERR_FILENO) {
        self.output = output
        self.error = error
        outputIsTerminal = isatty(output) == 1
        errorIsTerminal = isatty(error) == 1
    }

    /// Why standard output took no more; nil while it works.
    var outputFault: OutputFault? { state.withLock { $0.fault } }

    /// The size of a terminal in characters.
    struct Size: Sendable, Equatable {
        let columns: Int
        let lines: Int
    }

    /// The size of the terminal on standard output; nil when it is none or does not say.
    var outputSize: Size? {
        var size = winsize()
        guard outputIsTerminal, ioctl(output, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return nil
        }
        return Size(columns: Int(size.ws_col), lines: Int(size.ws_row))
    }

    /// Whether colours may be used on standard output; no-color.org and dumb terminals say no.
    var allowsColour: Bool {
        func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
        return outputIsTerminal && variable("NO_COLOR").isEmpty && variable("TERM") != "dumb"
    }

    /// A line of the result. When the reader has gone away nothing more is written, and a host or proxy carries on: a
    /// log reader that ends must not end the tunnel.
    func line(_ text: String) {
        state.withLock { state in
            erase(&state)
            guard state.fault != .closedByReader, let code = write(text + "\n", to: output) else { return }
            state.fault = code == EPIPE ? .closedByReader : .failed
        }
    }

    /// Lines of the result, in one write.
    func lines(_ texts: [String]) {
        if !texts.isEmpty { line(texts.joined(separator: "\n")) }
    }

    /// A line for people beside the result.
    func note(_ text: String) {
        state.withLock { state in
            erase(&state)
            // There is nowhere left to complain to.
            _ = write(text + "\n", to: error)
        }
    }

    /// A line for people when the process is about to end, whatever other threads do: it is left out when one of them
    /// hangs in a write, or standard error takes nothing.
    func lastNote(_ text: String) {
        withoutWaiting { state in
            erase(&state)
            _ = write(text + "\n", to: error)
        }
    }

    /// Erases the `^C` that a terminal shows when the key is pressed, so that what comes next stands alone on its line.
    func eraseEcho() {
        guard errorIsTerminal else { return }
        withoutWaiting { _ in _ = write(Console.eraseLine, to: error) }
    }

    private func withoutWaiting(_ body: (inout sending State) -> Void) {
        _ = state.withLockIfAvailable { state in
            var ready = pollfd(fd: error, events: Int16(POLLOUT), revents: 0)
            if poll(&ready, 1, 0) == 1 { body(&state) }
        }
    }

    private static let eraseLine = "\r\u{1b}[K"

    /// Runs `work`; when it takes longer than a second and a person watches, says that it is under way, and for how
    /// long. The line disappears afterwards.
    func during<Value, Fault: Error>(
        _ label: String, _ work: () async throws(Fault) -> Value
    ) async throws(Fault) -> Value {
        try await during({ "\(label), \($0) s" }, work)
    }

    /// The same, with what is said after each second.
    func during<Value, Fault: Error>(
        _ label: @escaping @Sendable (_ seconds: Int) -> String, _ work: () async throws(Fault) -> Value
    ) async throws(Fault) -> Value {
        guard errorIsTerminal else { return try await work() }
        state.withLock { $0.progress = .waiting }
        let ticker = Task.detached { [self] in
            for seconds in 1... {
                do { try await Task.sleep(for: Limits.progressDelay) } catch { return }
                showProgress(label(seconds))
            }
        }
        defer {
            ticker.cancel()
            endProgress()
        }
        return try await work()
    }

    private func showProgress(_ text: String) {
        state.withLock { state in
            // The work may have ended since the ticker woke.
            guard state.progress != .none else { return }
            _ = write(Console.eraseLine + PrintableText.clean(text), to: error)
            state.progress = .shown
        }
    }

    private func endProgress() {
        state.withLock { state in
            erase(&state)
            state.progress = .none
        }
    }

    private func erase(_ state: inout State) {
        guard state.progress == .shown else { return }
        _ = write(Console.eraseLine, to: error)
        state.progress = .waiting
    }

    /// Writes all of `text`; gives the error number when that fails.
    private func write(_ text: String, to descriptor: Int32) -> Int32? {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // A reader shares the description and made it non-blocking.
                var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&wait, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return nil
    }
}
