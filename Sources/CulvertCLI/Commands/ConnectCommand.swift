import Culvert
import CulvertCore
import Glibc

/// `culvert connect`: pairs when it is given an invite, then keeps a loopback proxy to the server until told to stop.
struct ConnectCommand: Command {
    private static let port = Option.port("port", "Loopback port of the proxy", default: "a free one")
    private static let localAuth = Option.choice(
        "local-auth", "MODE",
        "Who on this machine may use the proxy: same-user, open (anyone) or token (whoever sends the device token)",
        default: LocalGateMode.sameUser)
    private static let name = Option.name("name", "What to call the server here", default: "its own name")
    private static let deviceName = Option.name(
        "device-name", "What the host calls this device", default: "the machine's name")
    private static let maxConnections = Option.count(
        "max-connections", "Local connections at a time", default: 1024, upTo: Limits.streams)

    static let description = CommandDescription(
        name: "connect",
        summary: "Open a local URL for a server",
        discussion: [
            """
            With an invite it pairs this machine once and remembers the server; from then on its name is enough. \
            The URL is printed on standard output and works until SIGINT or SIGTERM; open requests then have 5 \
            seconds to finish, and a second signal cuts them at once.
            """,
            "Put an invite between quotes, or keep it out of the shell's history with - and paste it.",
        ],
        operands: [
            OperandDescription(
                metavar: "INVITE|NAME|-",
                help: "An invite link, the name of a paired server, or - for an invite on standard input",
                completion: .serverName)
        ],
        options: [
            port.description, localAuth.description, name.description, deviceName.description,
            maxConnections.description,
        ] + RelayFlags.descriptions + [CommonOptions.stateDirectory.description, CommonOptions.jsonEvents],
        examples: [
            .init(purpose: "pair and connect", line: "culvert connect 'culvert://connect?v=4&invite=...'"),
            .init(purpose: "connect again, on a fixed port", line: "culvert connect studio --port 8080"),
        ])

    /// What to connect to.
    enum Target: Equatable {
        case invite(String)
        case server(String)
        case standardInput
    }

    private(set) var target: Target
    /// What to call the server and this device; only for pairing.
    let serverName: String?
    let deviceName: String?
    /// How the proxy behaves.
    let options: ConnectionOptions
    /// The relays besides those that the invite names, and how all are reached.
    let relay: RelayFlags
    /// Whether events go out as JSON.
    let tellsEvents: Bool
    private let stateDirectory: StateDirectory
    var stopsInOrder: Bool { true }

    init(_ arguments: Arguments) throws(UsageError) {
        let operand = arguments.operands[0]
        target = operand == "-" ? .standardInput : InviteText.isLink(operand) ? .invite(operand) : .server(operand)
        serverName = try arguments.value(Self.name)
        deviceName = try arguments.value(Self.deviceName)
        if case .invite(let link) = target, let fault = InviteText.fault(in: link) { throw arguments.usageError(fault) }
        if case .server = target, let option = serverName != nil ? "name" : deviceName != nil ? "device-name" : nil {
            throw arguments.usageError("--\(option) goes with an invite only; the server is paired already")
        }
        var options = ConnectionOptions()
        if let port = try arguments.value(Self.port) { options.port = port }
        if let mode = try arguments.value(Self.localAuth) { options.localAuth = mode.localAuth }
        if let count = try arguments.value(Self.maxConnections) { options.maxConnections = count }
        self.options = options
        relay = try RelayFlags(arguments, ofHost: false)
        tellsEvents = arguments.isSet(CommonOptions.jsonEvents)
        stateDirectory = try arguments.stateDirectory()
    }

    mutating func prepare(_ console: Console) throws(UsageError) {
        guard target == .standardInput else { return }
        if isatty(STDIN_FILENO) == 1 { console.note("Paste the invite link and press Return:") }
        guard let link = InviteText.readLine(from: STDIN_FILENO), InviteText.isLink(link) else {
            throw UsageError("there is no invite link on standard input", command: Self.description.name)
        }
        if let fault = InviteText.fault(in: link) { throw UsageError(fault, command: Self.description.name) }
        target = .invite(link)
    }

    func run(_ context: Context) async throws {
        var endpoint = EndpointConfiguration(stateDirectory: stateDirectory)
        endpoint.relay = try relay.load()
        let configuration = endpoint
        let manager = try await stateDirectory.named { () async throws(TransportError) in
            try await EndpointManager(configuration)
        }
        context.urgentStop.prepare { await manager.close() }
        do {
            try await serve(through: manager, context)
        } catch {
            await uncancelled { await manager.close() }
            throw error
        }
        await uncancelled { await manager.close() }
        context.tell(.closed, asJSON: tellsEvents)
    }

    private func serve(through manager: EndpointManager, _ context: Context) async throws {
        let server = try await server(through: manager, context)
        let connection: ServerConnection
        do {
            let options = options
            let label = "Connecting to \(server.name)"
            connection = try await context.console.during(label) { () async throws(TransportError) in
                try await manager.connect(to: server, options)
            }
        } catch {
            let isAboutPort = error.kind == .localListener && options.port != 0
            throw isAboutPort ? Failure(error, ofPort: options.port) : Failure(error, about: server.name)
        }
        if tellsEvents {
            context.tell(.connectReady(server: server.name, url: connection.baseURL), asJSON: true)
        } else {
            context.console.line(connection.baseURL)
            context.console.note("Connected to \(PrintableText.clean(server.name)); stop with Ctrl-C")
        }
        var end: TransportError?
        for await event in connection.events {
            if case .failed(let error) = event { end = error } else { context.tell(Event(event), asJSON: tellsEvents) }
            if end != nil { break }
        }
        let wasStopped = Task.isCancelled
        await context.console.during(StopProgress.label) {
            await uncancelled { await connection.close(grace: wasStopped ? Limits.shutdownGrace : .zero) }
        }
        try context.urgentStop.check()
        if let end { throw Failure(end, about: server.name) }
        guard wasStopped else {
            throw Failure("the connection ended by itself; connect again", code: .unreachable, kind: "unavailable")
        }
    }

    private func pair(_ link: String, through manager: EndpointManager, _ context: Context) async throws -> PairedServer
    {
        let name = (try? Invite.parse(link, now: context.now, allowInsecureRelay: relay.options.allowsInsecure))?
            .payload.name
        let label = name.map { "Pairing with \($0)" } ?? "Pairing"
        do throws(TransportError) {
            return try await context.console.during(label) { () async throws(TransportError) in
                try await manager.pair(with: link, name: serverName, deviceName: deviceName)
            }
        } catch {
            throw Failure(pairing: error, with: name)
        }
    }

    private func server(through manager: EndpointManager, _ context: Context) async throws -> PairedServer {
        switch target {
        case .invite(let link):
            let server = try await pair(link, through: manager, context)
            if !tellsEvents {
                let name = PrintableText.clean(server.name)
                context.console.note("Paired with \(name); from now on, culvert connect \(ShellWord.operand(name))")
            }
            return server
        case .server(let name): return try PairedServers(stateDirectory).server(named: name)
        case .standardInput: throw Failure("there is no invite link on standard input", code: .usage, kind: "usage")
        }
    }
}

/// The words for ``LocalAuth`` on the command line.
enum LocalGateMode: String, CaseIterable, Sendable {
    case sameUser = "same-user"
    case token
    case open

    var localAuth: LocalAuth {
        switch self {
        case .sameUser: .sameUser
        case .token: .token
        case .open: .open
        }
    }
}

extension Event {
    /// What a server connection's event tells.
    init(_ event: ServerEvent) {
        self =
            switch event {
            case .path(let evidence): .path(device: nil, kind: Path(evidence), rtt: evidence.rtt)
            case .disconnected(let error): .lost(kind: error.kind.name, message: error.reason)
            case .reconnected: .reconnected
            case .failed(let error): Failure(error).event
            }
    }
}
