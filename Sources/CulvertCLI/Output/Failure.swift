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

    /// A failure of the library, about the server that the user calls `subject`.
    init(_ error: TransportError, about subject: String? = nil) {
        code = ExitCode(error.kind)
        kind = error.kind.name
        let name = subject.map(PrintableText.clean)
        if error.kind == .timedOut {
            message = """
                \(name ?? "the host") did not answer in time; is culvert host running there, and does UDP reach it? if \
                it moved, ask for a new invite
                """
        } else {
            message = name.map { "\($0): \(error.reason)" } ?? error.reason
        }
    }

    /// A failure to pair with the server that its invite calls `name`.
    init(pairing error: TransportError, with name: String?) {
        // What this machine's state lacks is not about that server.
        let failure = Failure(error, about: error.kind == .state ? nil : name)
        // The host counts failures of pairing, and refuses after too many.
        let code = error.kind == .limit ? .refused : failure.code
        self.init(failure.message, code: code, kind: failure.kind)
    }

    /// A failure to open the proxy's port, which was asked for on the command line.
    init(_ error: TransportError, ofPort port: UInt16) {
        self.init("--port \(port): \(error.reason)", code: ExitCode(error.kind), kind: error.kind.name)
    }

    /// A failure with what an option names.
    init(_ error: TransportError, of option: OptionDescription) {
        self.init("--\(option.name): \(error.reason)", code: ExitCode(error.kind), kind: error.kind.name)
    }

    /// How a command ended that was told to stop before it was ready. What merely broke off is not worth telling; a
    /// failure of its own, such as a pairing whose result is unknown, is.
    init(stoppedBy error: any Error) {
        let failure = Failure(unchecked: error)
        let brokeOff = error is CancellationError || failure.kind == ErrorKind.cancelled.name
        self.init(
            brokeOff ? "stopped before it was ready" : failure.message, code: .interrupted,
            kind: brokeOff ? ErrorKind.cancelled.name : failure.kind)
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
