import Culvert
import CulvertCore

/// `culvert host`: shares an HTTP server until it is told to stop.
struct HostCommand: Command {
    private static let target = Option.text(
        "target", "URL", "The HTTP server to share: http://HOST:PORT or unix:/PATH", isRequired: true)
    private static let listen = Option.address("listen", "UDP address to listen on", default: "any address, any port")
    private static let name = Option.name("name", "What clients call this host", default: "the machine's name")
    private static let maxStreams = Option.count(
        "max-streams", "Requests in flight of one client", default: 1024, upTo: Limits.streams)

    static let description = CommandDescription(
        name: "host",
        summary: "Share an HTTP server with paired clients",
        discussion: [
            """
            Prints an invite, as a link and as a QR code, and serves until SIGINT or SIGTERM. An invite pairs one \
            client; culvert invite makes more. Clients that are paired already need none.
            """,
            """
            The server need not be up: clients get status 503 until it is. Open requests have 5 seconds to finish \
            when the host is told to stop; a second signal cuts them at once.
            """,
        ],
        options: [
            target.description, listen.description, name.description, CommonOptions.inviteLifetime.description,
            maxStreams.description,
        ] + RelayFlags.descriptions + [
            CommonOptions.stateDirectory.description, CommonOptions.qr.description, CommonOptions.jsonEvents,
        ],
        examples: [
            .init(purpose: "share a development server", line: "culvert host --target http://127.0.0.1:8080"),
            .init(
                purpose: "be reached from anywhere, through a relay of your own",
                line: "culvert host --target http://127.0.0.1:8080 --relay https://relay.example.com"),
            .init(
                purpose: "share a Unix socket, on a fixed UDP port",
                line: "culvert host --target unix:/run/app.sock --listen '[::]:4433'"),
        ])

    /// What the host is to do.
    let configuration: HostConfiguration
    /// Its relays, and how they are reached.
    let relay: RelayFlags
    /// When the QR code is drawn.
    let qr: QRMode
    /// Whether events go out as JSON.
    let tellsEvents: Bool
    var stopsInOrder: Bool { true }

    init(_ arguments: Arguments) throws(UsageError) {
        let text = try arguments.required(Self.target)
        let target: HTTPTarget
        do {
            target = try HTTPTarget(text)
        } catch {
            let hint = TargetText.meant(by: text).map { "; did you mean \($0)?" } ?? ""
            throw arguments.usageError("--target: \(error.reason)\(hint)")
        }
        var configuration = HostConfiguration(stateDirectory: try arguments.stateDirectory(), target: target)
        configuration.listen = try arguments.value(Self.listen)
        if let name = try arguments.value(Self.name) { configuration.name = name }
        if let lifetime = try arguments.value(CommonOptions.inviteLifetime) { configuration.inviteLifetime = lifetime }
        if let count = try arguments.value(Self.maxStreams) { configuration.maxStreams = count }
        self.configuration = configuration
        relay = try RelayFlags(arguments, ofHost: true)
        tellsEvents = arguments.isSet(CommonOptions.jsonEvents)
        qr = try InvitePrinter.mode(arguments, asJSON: tellsEvents)
    }

    func run(_ context: Context) async throws {
        var shared = configuration
        shared.relay = try relay.load()
        let configuration = shared
        let host = try await configuration.stateDirectory.named { () async throws(TransportError) in
            try await context.console.during("Starting the host") { () async throws(TransportError) in
                try await Host(configuration)
            }
        }
        context.urgentStop.prepare { await host.shutdown(grace: .zero) }
        do {
            try Task.checkCancellation()
            try await announce(host, context)
        } catch {
            await uncancelled { await host.shutdown(grace: .zero) }
            throw error
        }
        for await event in host.events { context.tell(Event(event), asJSON: tellsEvents) }
        let wasStopped = Task.isCancelled
        await context.console.during(StopProgress.label) {
            await uncancelled { await host.shutdown(grace: Limits.shutdownGrace) }
        }
        try context.urgentStop.check()
        guard wasStopped else { throw Failure("the host stopped by itself; start it again", kind: "unavailable") }
        context.tell(.closed, asJSON: tellsEvents)
    }

    private func announce(_ host: Host, _ context: Context) async throws {
        let invite = try await host.makeInvite(validFor: nil)
        let target = "\(configuration.target)"
        if tellsEvents {
            let ready = Event.hostReady(
                nodeID: "\(host.nodeID)", ticket: try await host.ticket, invite: invite.link, target: target)
            context.tell(ready, asJSON: true)
            return
        }
        let life = Dates.duration(configuration.inviteLifetime)
        let printer = InvitePrinter(
            mode: qr, heading: ["\(PrintableText.clean(host.name)) shares \(target)"],
            text: ["Connect one client, within \(life):", "", "  culvert connect '\(invite.link)'", ""])
        printer.print(invite.link, on: context.console)
        context.console.note("Stop with Ctrl-C; make another invite with culvert invite")
    }
}

extension Event {
    /// What a host's event tells.
    init(_ event: HostEvent) {
        self =
            switch event {
            case .path(let device, let evidence): .path(device: device, kind: Path(evidence), rtt: evidence.rtt)
            case .relay(let isConnected): .relay(isConnected: isConnected)
            case .deviceConnected(let name): .connected(device: name)
            case .deviceDisconnected(let name): .disconnected(device: name)
            case .paired(let name): .paired(device: name)
            case .error(let error): Failure(error).event
            }
    }
}

extension Event.Path {
    /// The kind of a selected path.
    init(_ evidence: PathEvidence) {
        self =
            switch evidence.kind {
            case .direct: .direct
            case .relay: .relay
            case .unknown: .unknown
            }
    }
}
