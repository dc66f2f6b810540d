import CulvertCore

/// One of the program's commands: made from its arguments, then run once.
protocol Command: Sendable {
    /// Its use; help, completions and the manual page derive from it.
    static var description: CommandDescription { get }

    /// Reads and checks the arguments.
    init(_ arguments: Arguments) throws(UsageError)

    /// Whether the first SIGINT or SIGTERM cancels the task that runs the command, so that it can stop in order, and
    /// does not end the process.
    var stopsInOrder: Bool { get }

    /// Whether a failure is also an event on standard output.
    var tellsEvents: Bool { get }

    /// What must be asked from the person before the work starts and signals are handled.
    mutating func prepare(_ console: Console) throws(UsageError)

    /// Does the work. Throws ``Failure``, or what the library throws.
    func run(_ context: Context) async throws
}

extension Command {
    var stopsInOrder: Bool { false }
    var tellsEvents: Bool { false }
    mutating func prepare(_ console: Console) throws(UsageError) {}
}

/// What a command gets from the process around it.
struct Context: Sendable {
    /// Where results and notes go.
    let console: Console
    /// The date when the command started.
    let now: UnixTime
    /// What a second signal asks for.
    let urgentStop = UrgentStop()
}

extension Context {
    /// Tells what happened: to programs on standard output, to people on standard error.
    func tell(_ event: Event, asJSON: Bool) {
        if asJSON { console.line(event.json.text) }
        if !asJSON, let note = event.note { console.note(note) }
    }
}

/// Runs `work` to its end, even when the task that waits for it is cancelled: closing takes time after a signal too.
func uncancelled(_ work: @escaping @Sendable () async -> Void) async {
    await Task.detached(operation: work).value
}
