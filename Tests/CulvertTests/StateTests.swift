import CulvertCore
import CulvertIdentity
import CulvertTunnel
import Glibc
import Testing

@testable import Culvert

@Suite("State directory")
struct StateDirectoryTests {
    @Test("the identity is made once, for its owner only")
    func once() throws {
        let directory = try TemporaryDirectory()
        let state = directory.state("a/b/state")
        let key = try state.identity()
        #expect(try state.identity().nodeID == key.nodeID)
        var status = stat()
        #expect(stat(state.path + "/identity.key", &status) == 0 && status.st_mode & 0o7777 == 0o600)
        #expect(stat(state.path, &status) == 0 && status.st_mode & 0o7777 == 0o700)
        #expect(TemporaryDirectory.names(in: state.path) == ["identity.key"])
    }

    @Test("many processes that make it at once end up with the same one")
    func race() async throws {
        let directory = try TemporaryDirectory()
        let state = directory.state()
        let keys = try await withThrowingTaskGroup(of: NodeID.self) { group in
            for _ in 0..<16 { group.addTask { try await onThread { try state.identity().nodeID } } }
            return try await group.reduce(into: Set<NodeID>()) { $0.insert($1) }
        }
        #expect(keys.count == 1)
        #expect(TemporaryDirectory.names(in: state.path) == ["identity.key"])
    }

    @Test(
        "a damaged identity is refused and stays as it is",
        arguments: [
            "", "\n", "00", String(repeating: "0", count: 63) + "\n", String(repeating: "0", count: 64),
            String(repeating: "g", count: 64) + "\n", String(repeating: "0", count: 64) + "\nmore",
            String(repeating: "0", count: 300),
        ])
    func damaged(content: String) async throws {
        let directory = try TemporaryDirectory()
        let state = directory.state()
        _ = try state.identity()
        writeFile(state.path + "/identity.key", content)
        #expect(await failure { try state.identity() } == .state)
        #expect(readFile(state.path + "/identity.key") == Array(content.utf8))
    }

    @Test(
        "an identity or a directory that others can read is refused",
        arguments: [0o640, 0o604, 0o666, 0o610] as [mode_t])
    func wrongMode(mode: mode_t) async throws {
        let directory = try TemporaryDirectory()
        let state = directory.state()
        _ = try state.identity()
        chmod(state.path + "/identity.key", mode)
        #expect(await failure { try state.identity() } == .state)
        chmod(state.path + "/identity.key", 0o600)
        #expect(await failure { try state.identity() } == nil)
        chmod(state.path, mode | 0o100)
        #expect(await failure { try state.identity() } == .state)
    }

    @Test("a symbolic link in place of the identity is refused")
    func symbolicLink() async throws {
        let directory = try TemporaryDirectory()
        let state = directory.state()
        _ = try state.identity()
        rename(state.path + "/identity.key", directory.path + "/elsewhere")
        symlink(directory.path + "/elsewhere", state.path + "/identity.key")
        #expect(await failure { try state.identity() } == .state)
    }

    @Test("one host at a time may lock the directory")
    func lock() throws {
        let directory = try TemporaryDirectory()
        let state = directory.state()
        _ = try state.identity()
        do {
            let held = try state.lockHost()
            #expect(throws: TransportError.self) { _ = try state.lockHost() }
            _ = consume held
        }
        _ = try state.lockHost()
    }
}

@Suite("Server store")
struct ServerStoreTests {
    let directory: TemporaryDirectory
    let store: ServerStore

    init() throws {
        directory = try TemporaryDirectory()
        _ = try directory.state().identity()
        store = ServerStore(directory.state())
        try store.prepare()
    }

    private var servers: String { directory.state().servers }

    static func invite(_ key: SecretKey, name: String = "studio") throws -> Invite {
        let ticket = try EndpointTicket(
            nodeID: key.nodeID, addresses: [.direct(SocketAddress(.loopbackV4, port: 4433))])
        return try Invite.make(
            InvitePayload(
                name: name, pairingToken: .generate(), preference: .tunnelOnly, expiresAt: nil,
                tunnel: ServerMetadata(ticket: ticket)), key: key)
    }

    @discardableResult
    private func add(_ key: SecretKey, name: String? = nil) throws -> PairedServer {
        try store.add(
            Self.invite(key), grant: PairingGrant(deviceToken: DeviceToken.generate().text, transports: .tunnel),
            name: name, now: UnixTime(seconds: 1_700_000_000))
    }

    @Test("what was added is there, as it was, for its owner only")
    func addAndRead() throws {
        let key = SecretKey.generate()
        let added = try add(key)
        let read = try #require(try store.server(named: "studio"))
        #expect(read.nodeID == key.nodeID && read.addedAt == added.addedAt && read.metadata == added.metadata)
        #expect(read.deviceToken == added.deviceToken && read.transports == .tunnel)
        #expect(read.addresses == [SocketAddress(.loopbackV4, port: 4433)])
        #expect(read.tunnelALPN == "culvert/http/1")
        var status = stat()
        #expect(stat("\(servers)/\(key.nodeID).json", &status) == 0 && status.st_mode & 0o7777 == 0o600)
        #expect(TemporaryDirectory.names(in: servers) == ["\(key.nodeID).json"])
    }

    @Test("the same server is replaced, under its name")
    func replace() throws {
        let key = SecretKey.generate()
        let first = try add(key)
        let second = try add(key)
        #expect(try store.list().map(\.name) == ["studio"])
        #expect(try store.server(named: "studio")?.deviceToken == second.deviceToken)
        #expect(first.deviceToken != second.deviceToken)
    }

    @Test("another server of the same name gets another one")
    func conflict() throws {
        #expect(try add(.generate()).name == "studio")
        #expect(try add(.generate()).name == "studio-2")
        #expect(try add(.generate()).name == "studio-3")
        #expect(try add(.generate(), name: "mine").name == "mine")
        #expect(try store.list().map(\.name) == ["mine", "studio", "studio-2", "studio-3"])
    }

    @Test("removing forgets one server")
    func remove() throws {
        try add(.generate())
        try add(.generate())
        #expect(try store.remove(named: "studio"))
        #expect(try !store.remove(named: "studio"))
        #expect(try store.list().map(\.name) == ["studio-2"])
    }

    @Test("a store that was never used is empty")
    func unused() throws {
        let store = ServerStore(directory.state("other"))
        #expect(try store.list().isEmpty)
        #expect(try store.server(named: "x") == nil)
        #expect(try !store.remove(named: "x"))
    }

    @Test("a damaged file is told of and kept", arguments: ["", "{", "[]", "{\"v\":1}", "{\"v\":\"1\"}"])
    func damaged(content: String) async throws {
        let key = SecretKey.generate()
        try add(key)
        let file = "\(servers)/\(key.nodeID).json"
        writeFile(file, content)
        #expect(await failure { try store.list() } == .state)
        #expect(readFile(file) == Array(content.utf8))
    }

    @Test("a file of a newer version is told of as such")
    func newer() async throws {
        let key = SecretKey.generate()
        try add(key)
        writeFile("\(servers)/\(key.nodeID).json", "{\"v\":2,\"something\":\"else\"}")
        let error = #expect(throws: TransportError.self) { try store.list() }
        #expect(error?.kind == .state && error?.reason.contains("newer") == true)
    }

    @Test("preparing finds out whether a server could be added, before an invite is spent on it")
    func prepare() async throws {
        try add(.generate())
        #expect(throws: Never.self) { try store.prepare() }
        writeFile("\(servers)/x.json", "damaged")
        #expect(await failure { try store.prepare() } == .state)
        unlink("\(servers)/x.json")
        chmod(servers, 0o500)
        if getuid() != 0 { #expect(await failure { try store.prepare() } == .state) }
        chmod(servers, 0o700)
        #expect(TemporaryDirectory.names(in: servers).count == 1)
    }

    @Test("neither the device token nor the key shows when things are printed")
    func secrets() throws {
        let server = try add(.generate())
        #expect(!"\(server) \(String(reflecting: server))".contains(server.deviceToken.text))
    }
}
