import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

/// Which relays an endpoint uses, and how it reaches them.
public struct RelayOptions: Sendable {
    /// Relays besides those that invites name: a host can be reached through these; a client tries them too.
    public var relays: [RelayURL] = []
    /// The developer switch: also accepts relays with `http://` and on this machine.
    public var allowsInsecure = false
    /// Which kinds of path are used.
    public var path = PathPolicy.auto
    /// The certificate authorities, PEM, that are trusted to vouch for relays; nil for the system's.
    private(set) var authorities: [UInt8]?
    /// What is shown to relays that ask for it. Never printed.
    private(set) var token: RelayAccessToken?

    /// The most relays that there may be.
    public static let maximumRelays = 8

    /// No relay but those that invites name.
    public init() {}

    /// Trusts only the certificate authorities in the PEM file at `path` to vouch for relays.
    ///
    /// Throws `state` when the file cannot be read or has no certificate; nothing changes then.
    public mutating func readAuthorities(fromFile path: String) throws(TransportError) {
        let pem = try OperatorFile.read(path, maxBytes: Self.authoritiesBytes)
        _ = try TLSTrust(authoritiesPEM: pem)
        authorities = pem
    }

    /// Shows the token in the file at `path` to relays that ask for one: one line of visible characters, in a file that
    /// is not open to everyone on this machine.
    ///
    /// Throws `state` when the file cannot be read, is open to everyone, or holds anything else; nothing changes then.
    public mutating func readToken(fromFile path: String) throws(TransportError) {
        let content = try OperatorFile.read(path, maxBytes: Self.tokenBytes, isSecret: true)
        var line = content[...]
        if line.last == UInt8(ascii: "\n") { line.removeLast() }
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        guard let text = String(validating: line, as: UTF8.self), let token = RelayAccessToken(text) else {
            throw TransportError(
                .state, "the file must hold one relay token and nothing else: a line of 1 to 512 visible characters")
        }
        self.token = token
    }

    /// Some hundred certificates.
    private static let authoritiesBytes = 1024 * 1024
    /// Far above the longest token, so that most wrong files are told what they should be.
    private static let tokenBytes = 4 * 1024
}
