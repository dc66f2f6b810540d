import CulvertCore
import Testing

@testable import Culvert
@testable import CulvertCLI

/// The command that a command line asks for.
private func command<C: Command>(_ words: String...) throws -> C {
    guard case .run(let command) = try Invocation(words) else { throw UsageError("help was asked for") }
    return try #require(command as? C)
}

@Suite struct InvocationTests {
    private static let refusals: [([String], String)] = [
        ([], "a command is missing"),
        (["conect"], "there is no command 'conect' (did you mean connect?)"),
        (["relay"], "there is no command 'relay'"),
        (["--json", "devices"], "there is no option '--json' before the command"),
        (["culvert://connect?v=4&invite=x"], "to use an invite, put the word connect before it"),
        (["help", "hots"], "there is no command 'hots' (did you mean host?)"),
    ]

    @Test(arguments: refusals)
    func refuses(_ words: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try Invocation(words) }
    }

    @Test(arguments: [
        ["--help"], ["-h"], ["host", "--help"], ["connect", "-h"], ["connect", "a", "b", "c", "--help"],
    ])
    func helps(_ words: [String]) throws {
        guard case .help(let topic) = try Invocation(words) else { throw UsageError("no help") }
        #expect(topic?.name == (words.count > 1 ? words[0] : nil))
    }

    @Test func versions() throws {
        let _: VersionCommand = try command("--version")
        let _: VersionCommand = try command("version")
    }
}

@Suite struct HostCommandTests {
    @Test func readsItsOptions() throws {
        let host: HostCommand = try command(
            "host", "--target", "http://127.0.0.1:80", "--listen=[::1]:4433", "--name", "studio", "--invite-lifetime",
            "10m", "--max-streams", "7", "--json")
        #expect(host.configuration.listen == SocketAddress("[::1]:4433"))
        #expect(host.configuration.name == "studio")
        #expect(host.configuration.inviteLifetime == .seconds(600))
        #expect(host.configuration.maxStreams == 7)
        #expect(host.tellsEvents)
        #expect(host.qr == .never)
        #expect(host.stopsInOrder)
    }

    @Test func leavesDefaultsToTheLibrary() throws {
        let host: HostCommand = try command("host", "--target", "http://127.0.0.1:80")
        #expect(host.configuration.listen == nil)
        #expect(host.configuration.inviteLifetime == .seconds(90))
        #expect(host.qr == .auto)
    }

    private static let targets: [(String, String)] = [
        ("8080", "the target must be http://HOST:PORT or unix:/PATH; did you mean http://localhost:8080?"),
        ("localhost:8080", "the target must be http://HOST:PORT or unix:/PATH; did you mean http://localhost:8080?"),
        ("/run/app.sock", "the target must be http://HOST:PORT or unix:/PATH; did you mean unix:/run/app.sock?"),
        ("ftp://x:80", "the target must be http://HOST:PORT or unix:/PATH"),
        ("app", "the target must be http://HOST:PORT or unix:/PATH"),
        ("me:secret@host:80", "the target must be http://HOST:PORT or unix:/PATH"),
        ("http://127.0.0.1:8080/app", "the target must be http://HOST:PORT, with nothing after the port"),
    ]

    @Test(arguments: targets)
    func explainsTargets(_ text: String, _ message: String) {
        #expect(throws: UsageError("--target: \(message)", command: "host")) {
            try Invocation(["host", "--target", text])
        }
    }

    @Test(arguments: [
        ["host"], ["host", "--target", "ftp://x"], ["host", "--target", "http://127.0.0.1:80", "--listen", "4433"],
        ["host", "--target", "http://127.0.0.1:80", "--invite-lifetime", "31d"],
        ["host", "--target", "http://127.0.0.1:80", "--max-streams", "0"],
        ["host", "--target", "http://127.0.0.1:80", "--json", "--qr", "always"],
        ["host", "--target", "http://127.0.0.1:80", "extra"],
    ])
    func refuses(_ words: [String]) {
        #expect(throws: UsageError.self) { try Invocation(words) }
    }
}

@Suite struct ConnectCommandTests {
    @Test func tellsInvitesFromNames() throws {
        let link = "culvert://connect?v=4&invite=abc"
        let invite: ConnectCommand = try command("connect", link, "--name", "n", "--device-name", "d")
        #expect(invite.target == .invite(link))
        #expect(invite.serverName == "n")
        #expect(invite.deviceName == "d")
        let server: ConnectCommand = try command("connect", "studio")
        #expect(server.target == .server("studio"))
        let standardInput: ConnectCommand = try command("connect", "-", "--name", "n")
        #expect(standardInput.target == .standardInput)
    }

    private static let readsItsOptionsCases: [(String, LocalAuth)] = [
        ("token", LocalAuth.token), ("same-user", .sameUser), ("open", .open),
    ]

    @Test(arguments: readsItsOptionsCases)
    func readsItsOptions(_ word: String, _ mode: LocalAuth) throws {
        let connect: ConnectCommand = try command(
            "connect", "studio", "--port", "8080", "--local-auth", word, "--max-connections", "9", "--json")
        #expect(connect.options.port == 8080)
        #expect(connect.options.localAuth == mode)
        #expect(connect.options.maxConnections == 9)
        #expect(connect.tellsEvents)
    }

    private static let refusals: [([String], String)] = [
        (["connect"], "INVITE|NAME|- is missing"),
        (["connect", "studio", "--name", "x"], "--name goes with an invite only; the server is paired already"),
        (
            ["connect", "studio", "--device-name", "x"],
            "--device-name goes with an invite only; the server is paired already"
        ),
        (
            ["connect", "culvert://connect?v=4"],
            "the invite link is cut off; put it between quotes, or give - and paste it"
        ),
        (["connect", "http://10.77.0.1:1234/"], "this is not an invite link; one begins with culvert://connect"),
        (["connect", "s", "--local-auth", "none"], "--local-auth takes same-user, token or open, not 'none'"),
    ]

    @Test(arguments: refusals)
    func refuses(_ words: [String], _ message: String) {
        #expect(throws: UsageError(message, command: "connect")) { try Invocation(words) }
    }
}

@Suite struct UrgentStopTests {
    @Test func closesAtOnceWhatWasPrepared() async throws {
        let stop = UrgentStop()
        let (closed, continuation) = AsyncStream<Bool>.makeStream()
        #expect(throws: Never.self) { try stop.check() }
        stop.prepare { continuation.yield(stop.isAsked) }
        await stop.ask()
        continuation.finish()
        // Whoever is closing in order must see why it ended early.
        #expect(await closed.reduce(into: []) { $0.append($1) } == [true])
        #expect(throws: Failure.self) { try stop.check() }
    }

    @Test func thereMayBeNothingToClose() async {
        let stop = UrgentStop()
        await stop.ask()
        #expect(stop.isAsked)
    }
}

@Suite struct DeviceListTests {
    private let now = UnixTime(seconds: 1_700_000_000)

    private func device(_ name: String, connected: Bool = false, revoked: Bool = false) -> Device {
        Device(
            id: "id", name: name, createdAt: UnixTime(seconds: now.seconds - 7200),
            lastSeenAt: UnixTime(seconds: now.seconds - 48), isConnected: connected, isRevoked: revoked)
    }

    @Test func aConnectedDeviceIsSeenNow() {
        let table = DevicesCommand.table(
            [device("a", connected: true), device("b"), device("c", revoked: true)], now: now)
        #expect(
            table.lines == [
                "ID  NAME  STATE      PAIRED       SEEN",
                "id  a     connected  2 hours ago  now",
                "id  b     away       2 hours ago  48 seconds ago",
                "id  c     revoked    2 hours ago  48 seconds ago",
            ])
    }

    @Test func tellsWhatItDoesNotShow() {
        #expect(DevicesCommand.note(shown: 1, hidden: 0) == nil)
        #expect(DevicesCommand.note(shown: 0, hidden: 0) == "No devices yet; let one pair by culvert invite")
        #expect(DevicesCommand.note(shown: 0, hidden: 2) == "2 revoked, not shown; see culvert devices --all")
    }
}

@Suite struct DeviceTests {
    private let devices = [
        Devices.Candidate(id: "abcd2345", name: "phone"), Devices.Candidate(id: "efgh2345", name: "laptop"),
        Devices.Candidate(id: "phone", name: "laptop"), Devices.Candidate(id: "ijkl2345", name: "my TVs"),
    ]

    @Test func findsByIDThenByName() throws {
        #expect(try Devices.find("efgh2345", among: devices).id == "efgh2345")
        #expect(try Devices.find("phone", among: devices).id == "phone")
        #expect(try Devices.find("phone", among: [devices[0]]).id == "abcd2345")
    }

    @Test(arguments: [
        ("laptop", "2 devices are called 'laptop'; give the ID from culvert devices"),
        ("phnoe", "there is no device 'phnoe'; did you mean phone?"),
        ("my TV", "there is no device 'my TV'; did you mean 'my TVs'?"),
        ("zzz", "there is no device 'zzz'; see culvert devices"),
    ])
    func refuses(_ word: String, _ message: String) {
        let error = #expect(throws: Failure.self) { try Devices.find(word, among: devices) }
        #expect(error?.message == message)
    }
}
