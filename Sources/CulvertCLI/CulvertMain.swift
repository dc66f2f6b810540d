import CulvertCore
import Glibc

/// The entry point. The main thread only waits for signals; the command runs in a task, on other threads, and the
/// first signal is that task's cancellation.
@main
struct CulvertMain {
    static func main() {
        // A reader that goes away is an error of write(2), not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        let console = Console()
        let context = Context(console: console, now: UnixTime(seconds: Int64(time(nil))))
        let words = Array(CommandLine.arguments.dropFirst())
        do {
            switch try Invocation(words) {
            case .help(let topic):
                console.lines(HelpText.lines(about: topic))
                finish(.success, console)
            case .run(var command):
                try command.prepare(console)
                run(command, context)
            }
        } catch {
            if words.isEmpty { HelpText.lines(about: nil).forEach(console.note) }
            if !words.isEmpty { console.note(error.line) }
            exit(ExitCode.usage.rawValue)
        }
    }

    private static func run(_ command: any Command, _ context: Context) -> Never {
        // Before any task, so that every thread inherits the mask and the signals wait for this one.
        let signals = command.stopsInOrder ? StopSignals() : nil
        DescriptorLimit.raise()
        let task = Task.detached { await finish(perform(command, context), context.console) }
        guard let signals else { while true { pause() } }
        signals.wait()
        task.cancel()
        signals.wait(atMost: Limits.shutdownGrace + Limits.shutdownMargin)
        // A second signal, or a stop that does not end: streams are cut.
        _exit(ExitCode.failure.rawValue)
    }

    private static func perform(_ command: any Command, _ context: Context) async -> ExitCode {
        do {
            try await command.run(context)
            return .success
        } catch {
            // What breaks off because of a stop is no failure.
            if Task.isCancelled { return .success }
            let failure = Failure(unchecked: error)
            if command.tellsEvents { context.tell(failure.event, asJSON: true) }
            context.console.note("culvert: \(failure.message)")
            return failure.code
        }
    }

    private static func finish(_ code: ExitCode, _ console: Console) -> Never {
        if code == .success, console.outputFault == .failed {
            console.note("culvert: standard output cannot be written; is the disk full?")
            exit(ExitCode.failure.rawValue)
        }
        exit(code.rawValue)
    }
}
