import CulvertCore

/// A failure as the command reports it: a code for scripts, a kind for programs, one line for people.
struct Failure: Error, Equatable {
    let code: ExitCode
    /// The word in JSON events.
    let kind: String
    /// One line: what happened and what to do.
    let message: String

    /// A failure of the command's own.
    init(_ message: String, code: ExitCode = .failure, kind: String = "state") {
        self.code = code
        self.kind = kind
        self.message = message
    }

    /// A failure of the library, about what the user calls `subject`.
    init(_ error: TransportError, about subject: String? = nil) {
        code = ExitCode(error.kind)
        kind = error.kind.name
        message = subject.map { "\(PrintableText.clean($0)): \(error.reason)" } ?? error.reason
    }

    /// Any error. One that is not ours is not shown: nobody has checked it for addresses and tokens.
    init(unchecked error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let error as TransportError: self.init(error)
        default: self.init("something failed that should not; please report it", kind: "internal")
        }
    }

    /// The failure as an event.
    var event: Event { .error(kind: kind, message: message) }
}
