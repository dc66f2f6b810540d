import Culvert
import CulvertCore

/// The paired servers of a state directory, with errors for people.
struct PairedServers {
    private let store: ServerStore

    init(_ directory: StateDirectory) { store = ServerStore(directory) }

    func list() throws -> [PairedServer] { try store.list() }

    /// The server called `name`, or the failure that helps to find it.
    func server(named name: String) throws -> PairedServer {
        if let server = try store.server(named: name) { return server }
        throw try unknown(name)
    }

    func remove(named name: String) throws {
        guard try store.remove(named: name) else { throw try unknown(name) }
    }

    private func unknown(_ name: String) throws -> Failure {
        let near = Suggestion.closest(to: name, among: try store.list().map(\.name))
        let hint = near.map { "did you mean \(PrintableText.clean($0))?" } ?? "see culvert servers"
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
        if list.isEmpty { return context.console.note("No servers yet; pair with one by culvert connect INVITE") }
        let rows = list.map { [$0.name, $0.nodeID.short, Dates.relative($0.addedAt, to: context.now)] }
        context.console.lines(Table(headings: ["NAME", "NODE", "PAIRED"], rows: rows).lines)
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
