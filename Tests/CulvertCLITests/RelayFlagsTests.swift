import CulvertCore
import Glibc
import Testing

@testable import Culvert
@testable import CulvertCLI

/// The relay options of `culvert host` or `culvert connect` with these words.
private func flags(_ command: String, _ words: [String]) throws -> RelayFlags {
    let rest = command == "host" ? ["--target", "http://127.0.0.1:80"] : ["studio"]
    guard case .run(let made) = try Invocation([command] + words + rest) else { throw UsageError("help") }
    return try #require((made as? HostCommand)?.relay ?? (made as? ConnectCommand)?.relay)
}

@Suite struct RelayFlagsTests {
    @Test(arguments: ["host", "connect"])
    func readsItsOptions(_ command: String) throws {
        let none = try flags(command, []).load()
        #expect(none.relays.isEmpty && !none.allowsInsecure && none.authorities == nil && none.path == .auto)
        let several = try flags(
            command,
            ["--relay", "https://b.example", "--relay=https://a.example:8443/", "--relay", "HTTPS://B.example/"])
        #expect(several.options.relays.map(\.text) == ["https://b.example/", "https://a.example:8443/"])
        for path in PathPolicy.allCases where path != .relay {
            #expect(try flags(command, ["--path", path.rawValue]).options.path == path)
        }
        #expect(try flags(command, ["--path", "relay", "--relay", "https://a.example"]).options.path == .relay)
    }

    @Test(arguments: ["host", "connect"])
    func theDeveloperSwitchHoldsWhereverItStands(_ command: String) throws {
        let url = ["--relay", "http://127.0.0.1:4701"]
        for words in [["--allow-insecure-relay"] + url, url + ["--allow-insecure-relay"]] {
            let options = try flags(command, words).options
            #expect(options.relays.map(\.text) == ["http://127.0.0.1:4701/"] && options.allowsInsecure)
        }
    }

    @Test(arguments: ["host", "connect"])
    func refuses(_ command: String) {
        let relay = ["--relay", "https://a.example"]
        let cases: [([String], String)] = [
            (["--relay", "relay.example"], "--relay: a relay URL is malformed"),
            (["--relay", "wss://relay.example"], "--relay: a relay URL must begin with https://"),
            (
                relay + ["--relay", "http://relay.example"],
                """
                --relay: a relay URL begins with http://; use https://, or --allow-insecure-relay for development
                """
            ),
            (
                ["--relay", "https://localhost"],
                "--relay: a relay URL points to this machine itself; use --allow-insecure-relay for development"
            ),
            (["--relay", ""], "--relay takes a text that is not empty, not ''"),
            (["--path", "fast"], "--path takes auto, direct or relay, not 'fast'"),
            (
                relay + ["--path", "direct"],
                "--path direct uses no relay; leave --relay out, or give --path auto"
            ),
            (["--allow-insecure-relay=yes"], "--allow-insecure-relay takes no value"),
        ]
        for (words, message) in cases {
            #expect(throws: UsageError(message, command: command)) { try flags(command, words) }
        }
    }

    @Test(arguments: ["host", "connect"])
    func takesEightRelays(_ command: String) throws {
        func relays(_ count: Int) -> [String] { (1...count).flatMap { ["--relay", "https://r\($0).example"] } }
        // One that is named twice counts once.
        #expect(try flags(command, relays(8) + relays(3)).options.relays.count == 8)
        #expect(throws: UsageError("--relay may be given 8 times at most", command: command)) {
            try flags(command, relays(9))
        }
    }

    @Test func onlyAClientLearnsOfRelaysFromInvites() throws {
        #expect(try flags("connect", ["--path", "relay"]).options.path == .relay)
        #expect(
            throws: UsageError("--path relay needs a relay; name one by --relay https://HOST", command: "host")
        ) { try flags("host", ["--path", "relay"]) }
    }

    @Test func filesThatCannotBeReadAreFailuresOfTheOption() throws {
        for option in ["relay-ca", "relay-token-file"] {
            let flags = try flags("host", ["--\(option)", "/nonexistent/file"])
            let failure = Failure("--\(option): there is no such file", code: .failure, kind: "state")
            #expect(throws: failure) { try flags.load() }
        }
        var template = Array("/tmp/culvert-test-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        try #require(descriptor >= 0)
        let path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        defer {
            close(descriptor)
            unlink(path)
        }
        try #require(write(descriptor, "s3cret\n", 7) == 7)
        _ = try flags("host", ["--relay-token-file", path]).load()
        #expect(fchmod(descriptor, 0o644) == 0)
        let open = #expect(throws: Failure.self) { try flags("host", ["--relay-token-file", path]).load() }
        #expect(open?.message.contains("chmod o=") == true)
        #expect(throws: Failure.self) { try flags("host", ["--relay-ca", path]).load() }
    }
}
