import Culvert
import CulvertCore

/// The paired servers of a state directory, with errors for people.
struct PairedServers {
    private let directory: StateDirectory
    private let store: ServerStore

    init(_ directory: StateDirectory) {
        self.directory = directory
        store = ServerStore(directory)
    }

    func list() throws -> [PairedServer] {
        try directory.named { () throws(TransportError) in try store.list() }
    }

    /// A line for each file of a server that cannot be used.
    func warnings() throws -> [String] {
        try directory.named { () throws(TransportError) in try store.damagedFiles() }.map {
            "culvert: \(PrintableText.clean($0)): the file is damaged or of a newer version; remove it and pair again"
        }
    }

    /// The server called `name`, or the failure that helps to find it.
    func server(named name: String) throws -> PairedServer {
        let server = try directory.named { () throws(TransportError) in try store.server(named: name) }
        guard let server else { throw try unknown(name) }
        return server
    }

    /// The device token of the server called `name`, or the failure that helps to find it.
    func token(ofServerNamed name: String) throws -> String {
        let token = try directory.named { () throws(TransportError) in try store.deviceToken(ofServerNamed: name) }
        guard let token else { throw try unknown(name) }
        return token
    }

    func remove(named name: String) throws {
        let isRemoved = try directory.named { () throws(TransportError) in try store.remove(named: name) }
        guard isRemoved else { throw try unknown(name) }
    }

    private func unknown(_ name: String) throws -> Failure {
        let near = Suggestion.closest(to: name, among: try list().map(\.name))
        let hint = near.map { "did you mean \(ShellWord.quoted(PrintableText.clean($0)))?" } ?? "see culvert servers"
        return Failure("no server called \(UsageError.quote(name)) is paired; \(hint)", kind: "unknown-server")
    }
}

/// `culvert servers`: what this machine is paired with.
struct ServersCommand: Command {
    static let description = CommandDescription(
        name: "servers",
        summary: "List the servers that this machine is paired with",
        options: [CommonOptions.stateDirectory.description, CommonOptions.json])

    private let servers: PairedServers
    private let asJSON: Bool

    init(_ arguments: Arguments) throws(UsageError) {
        servers = PairedServers(try arguments.stateDirectory())
        asJSON = arguments.isSet(CommonOptions.json)
    }

    func run(_ context: Context) async throws {
        let list = try servers.list()
        let warnings = try servers.warnings()
        defer { warnings.forEach(context.console.note) }
        if asJSON {
            context.console.lines(
                JSON.lines(
                    list.map { server in
                        .object([
                            ("name", .string(server.name)), ("nodeId", .string("\(server.nodeID)")),
                            ("addedAt", .string(Dates.rfc3339(server.addedAt))),
                        ])
                    }))
            return
        }
        if list.isEmpty, !warnings.isEmpty { return }
        if list.isEmpty { return context.console.note("No servers yet; pair with one by culvert connect INVITE") }
        let rows = list.map { [$0.name, $0.nodeID.short, Dates.relative($0.addedAt, to: context.now)] }
        context.console.lines(Table(headings: ["NAME", "NODE", "PAIRED"], rows: rows).lines)
    }
}

/// `culvert token`: the secret that clients of a proxy with `--local-auth token` send.
struct TokenCommand: Command {
    static let description = CommandDescription(
        name: "token",
        summary: "Print the device token of a paired server",
        discussion: [
            """
            Clients of a proxy with --local-auth token send it with every request, as Authorization: Bearer TOKEN. It \
            is a secret: whoever has it can use that proxy.
            """
        ],
        operands: [
            OperandDescription(
                metavar: "NAME", help: "The server, as culvert servers lists it", completion: .serverName)
        ],
        options: [CommonOptions.stateDirectory.description],
        examples: [
            .init(
                purpose: "a request through such a proxy, without the token in a process listing",
                line: "curl -H @<(printf 'Authorization: Bearer %s' \"$(culvert token studio)\") URL")
        ])

    private let servers: PairedServers
    private let name: String

    init(_ arguments: Arguments) throws(UsageError) {
        servers = PairedServers(try arguments.stateDirectory())
        name = arguments.operands[0]
    }

    func run(_ context: Context) async throws {
        context.console.line(try servers.token(ofServerNamed: name))
        context.console.note("This is a secret; keep it out of logs and of the shell's history")
    }
}

/// `culvert forget`: removes a paired server from this machine.
struct ForgetCommand: Command {
    static let description = CommandDescription(
        name: "forget",
        summary: "Forget a paired server",
        discussion: ["The host keeps listing this device until culvert revoke is used there."],
        operands: [
            OperandDescription(
                metavar: "NAME", help: "The server, as culvert servers lists it", completion: .serverName)
        ],
        options: [CommonOptions.stateDirectory.description])

    private let servers: PairedServers
    private let name: String

    init(_ arguments: Arguments) throws(UsageError) {
        servers = PairedServers(try arguments.stateDirectory())
        name = arguments.operands[0]
    }

    func run(_ context: Context) async throws {
        try servers.remove(named: name)
        context.console.note("Forgot \(PrintableText.clean(name))")
    }
}
