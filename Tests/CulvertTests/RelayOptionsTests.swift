import CulvertCore
import CulvertTestSupport
import Glibc
import Testing

@testable import Culvert

@Suite("Relay options")
struct RelayOptionsTests {
    private static let certificate = String(decoding: TestCertificate.certificatePEM, as: UTF8.self)

    private func write(_ content: String, mode: mode_t = 0o600, in directory: TemporaryDirectory) -> String {
        let path = directory.path + "/file"
        writeFile(path, content, mode: mode)
        return path
    }

    @Test("a token is one line", arguments: ["s3cret", "s3cret\n", "s3cret\r\n"])
    func tokens(content: String) throws {
        let directory = try TemporaryDirectory()
        var options = RelayOptions()
        for mode in [0o600, 0o640, 0o400] as [mode_t] {
            try options.readToken(fromFile: write(content, mode: mode, in: directory))
            #expect(options.token?.text == "s3cret")
            #expect(!"\(options)".contains("s3cret"))
        }
    }

    @Test(
        "anything else is refused, and the token before stays",
        arguments: [
            "", "\n", "a b", " a", "a\n\n", "a\nb\n", "a\u{e9}", "a\u{7f}", String(repeating: "t", count: 513),
            String(repeating: "t", count: 5000),
        ])
    func malformedTokens(content: String) throws {
        let directory = try TemporaryDirectory()
        var options = RelayOptions()
        try options.readToken(fromFile: write(String(repeating: "t", count: 512) + "\n", in: directory))
        let path = write(content, in: directory)
        let error = #expect(throws: TransportError.self) { try options.readToken(fromFile: path) }
        #expect(error?.kind == .state)
        #expect(options.token?.text.utf8.count == 512)
    }

    @Test("a token that everyone can read or write is refused", arguments: [0o604, 0o602, 0o644] as [mode_t])
    func openTokens(mode: mode_t) throws {
        let directory = try TemporaryDirectory()
        var options = RelayOptions()
        let path = write("s3cret", mode: mode, in: directory)
        let error = #expect(throws: TransportError.self) { try options.readToken(fromFile: path) }
        #expect(error?.kind == .state && error?.reason.contains("chmod o=") == true)
        #expect(options.token == nil)
    }

    @Test("authorities are certificates in PEM, which anyone may read")
    func authorities() throws {
        let directory = try TemporaryDirectory()
        var options = RelayOptions()
        try options.readAuthorities(fromFile: write(Self.certificate, mode: 0o644, in: directory))
        #expect(options.authorities == Array(Self.certificate.utf8))
        for content in ["", "nothing\n", Self.certificate.replacing("MIIB", with: "MIIC")] {
            let path = write(content, in: directory)
            let error = #expect(throws: TransportError.self) { try options.readAuthorities(fromFile: path) }
            #expect(error?.kind == .state)
        }
        #expect(options.authorities == Array(Self.certificate.utf8))
    }

    @Test("a file that is not there is an error of its own")
    func missing() throws {
        let directory = try TemporaryDirectory()
        var options = RelayOptions()
        let missing = TransportError(.state, "there is no such file")
        #expect(throws: missing) { try options.readToken(fromFile: directory.path + "/none") }
        #expect(throws: missing) { try options.readAuthorities(fromFile: directory.path + "/none") }
    }

    @Test("an invite that names a relay on this machine needs the developer switch", arguments: [false, true])
    func insecureInvites(isAllowed: Bool) async throws {
        let directory = try TemporaryDirectory()
        let key = SecretKey.generate()
        let relay = try RelayURL("http://127.0.0.1:1/", allowInsecure: true)
        let invite = try Invite.make(
            InvitePayload(
                name: "x", pairingToken: .generate(), preference: .tunnelOnly, expiresAt: nil,
                tunnel: ServerMetadata(nodeID: key.nodeID, relayURLs: [relay])), key: key, allowInsecureRelay: true)
        var configuration = EndpointConfiguration(stateDirectory: directory.state())
        configuration.relay.allowsInsecure = isAllowed
        configuration.relay.path = .direct
        let manager = try await EndpointManager(configuration)
        let kind = await failure { try await manager.pair(with: invite.link) }
        // There is no address to be reached at directly.
        #expect(kind == (isAllowed ? .unavailable : .metadata(.relayURL)))
        await manager.close()
    }
}
