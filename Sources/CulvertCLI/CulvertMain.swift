import CulvertCore
import CulvertIO
import Glibc

/// The entry point. The main thread only waits for signals; the command runs in a task, on other threads, the first
/// signal is that task's cancellation, and the second one its ``UrgentStop``.
@main
struct CulvertMain {
    static func main() {
        // A reader that goes away is an error of write(2), not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        let console = Console()
        let context = Context(console: console, now: UnixTime(seconds: Int64(time(nil))))
        let words = ProgramArguments.words
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
        context.console.eraseEcho()
        task.cancel()
        if signals.wait(atMost: Limits.shutdownGrace + Limits.shutdownMargin) {
            context.console.eraseEcho()
            Task.detached { await context.urgentStop.ask() }
            // The command ends the process when its peers have been told; a third signal does not wait for that.
            _ = signals.wait(atMost: Limits.urgentStop)
        }
        context.console.lastNote("culvert: ended without waiting any longer")
        _exit(ExitCode.failure.rawValue)
    }

    private static func perform(_ command: any Command, _ context: Context) async -> ExitCode {
        do {
            try await command.run(context)
            return .success
        } catch {
            let isStopped = Task.isCancelled && !context.urgentStop.isAsked
            let failure = isStopped ? Failure(stoppedBy: error) : Failure(unchecked: error)
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
