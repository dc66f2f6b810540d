import Culvert
import CulvertCore

/// The options about relays and paths, which mean the same to a host and to a client.
struct RelayFlags: Sendable {
    private static let relay = Option.text(
        "relay", "URL", "A relay to use, https://HOST[:PORT]; may be given up to \(RelayOptions.maximumRelays) times",
        isRepeatable: true)
    private static let allowInsecure = OptionDescription(
        name: "allow-insecure-relay", help: "For development: accept relays with http:// and on this machine too")
    private static let authorities = Option.text(
        "relay-ca", "FILE", "Trust only the certificate authorities in this PEM file to vouch for relays",
        default: "the system's", completion: .file)
    private static let token = Option.text(
        "relay-token-file", "FILE", "File with the token that relays may ask for; not readable by others",
        completion: .file)
    private static let path = Option.choice(
        "path", "KIND", "Which way to go: auto (direct where that works, else through a relay), direct or relay",
        default: PathPolicy.auto)

    /// In the order of the help.
    static let descriptions = [
        relay.description, allowInsecure, authorities.description, token.description, path.description,
    ]

    /// What the command line says, without what is in the files it names.
    private(set) var options = RelayOptions()
    private let authoritiesFile: String?
    private let tokenFile: String?

    /// Reads and checks the arguments. A client's relays may come with invites, a host's cannot.
    init(_ arguments: Arguments, ofHost isHost: Bool) throws(UsageError) {
        // Before the relays, wherever it stands.
        options.allowsInsecure = arguments.isSet(Self.allowInsecure)
        for text in try arguments.values(Self.relay) {
            do {
                let relay = try RelayURL(text, allowInsecure: options.allowsInsecure)
                if !options.relays.contains(relay) { options.relays.append(relay) }
            } catch {
                throw arguments.usageError("--relay: \(error.reason)")
            }
        }
        guard options.relays.count <= RelayOptions.maximumRelays else {
            throw arguments.usageError("--relay may be given \(RelayOptions.maximumRelays) times at most")
        }
        if let path = try arguments.value(Self.path) { options.path = path }
        if options.path == .direct, !options.relays.isEmpty {
            throw arguments.usageError("--path direct uses no relay; leave --relay out, or give --path auto")
        }
        if options.path == .relay, isHost, options.relays.isEmpty {
            throw arguments.usageError("--path relay needs a relay; name one by --relay https://HOST")
        }
        authoritiesFile = try arguments.value(Self.authorities)
        tokenFile = try arguments.value(Self.token)
    }

    /// The options, with what the files hold.
    func load() throws(Failure) -> RelayOptions {
        var options = options
        if let authoritiesFile {
            do {
                try options.readAuthorities(fromFile: authoritiesFile)
            } catch {
                throw Failure(error, of: Self.authorities.description)
            }
        }
        if let tokenFile {
            do {
                try options.readToken(fromFile: tokenFile)
            } catch {
                throw Failure(error, of: Self.token.description)
            }
        }
        return options
    }
}
