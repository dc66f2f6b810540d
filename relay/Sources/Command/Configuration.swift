import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay
import CulvertRelayServer

/// The command line, and how it becomes a relay's configuration; read again at each reload.
struct CommandLineRequest: Sendable {
    /// What was asked for instead of a relay.
    enum Task: Sendable {
        case run, help, version
    }

    /// Bytes of a file that an operator writes by hand or by a script: a hundred thousand node IDs.
    static let fileBytes = 8 * 1024 * 1024

    private(set) var task = Task.run
    private var configurationPath: String?
    private let flags: SettingsSource

    /// Understands the words after the program's name.
    init(_ words: [String]) throws(SettingsError) {
        var task = Task.run
        var path: String?
        flags = try SettingsSource(words: words) { (name, value) throws(SettingsError) in
            switch name {
            case "help": task = .help
            case "version": task = .version
            case "config":
                guard path == nil else { throw SettingsError(message: "--config is given twice") }
                path = value()
                if path == nil { throw SettingsError(message: "--config needs a value") }
            default: return false
            }
            return true
        }
        self.task = task
        configurationPath = path
    }

    /// Reads all files and checks everything.
    func configuration() throws(SettingsError) -> RelayConfiguration {
        var file: SettingsSource?
        if let path = configurationPath { file = try SettingsSource(file: try Self.read(path), path: path) }
        let settings = try SettingsSource.settings(file: file, flags: flags)
        var configuration = RelayConfiguration()
        configuration.listen = settings.listen.isEmpty ? [Self.defaultListen] : settings.listen
        configuration.identity = try Self.identity(settings)
        configuration.metrics = settings.metrics
        configuration.stun = settings.stun
        configuration.quota = settings.quota
        if let path = settings.allowFile { configuration.access.allowed = try Self.nodes(path) }
        if let path = settings.denyFile { configuration.access.denied = try Self.nodes(path) }
        if let path = settings.tokenFile { configuration.access.tokens = try Self.tokens(path) }
        return configuration
    }

    private static let defaultListen = SocketAddress(.loopbackV4, port: 3340)

    private static func identity(_ settings: Settings) throws(SettingsError) -> TLSIdentity? {
        guard let certificate = settings.certificateFile, let key = settings.keyFile else {
            guard settings.certificateFile == nil, settings.keyFile == nil else {
                throw SettingsError(message: "tls-cert and tls-key must be given together")
            }
            return nil
        }
        let certificatePEM = Array(try read(certificate).utf8)
        let keyPEM = Array(try read(key, isSecret: true).utf8)
        do throws(TransportError) {
            return try TLSIdentity(certificatePEM: certificatePEM, keyPEM: keyPEM)
        } catch {
            throw SettingsError(message: "\(certificate): \(error.reason)")
        }
    }

    private static func nodes(_ path: String) throws(SettingsError) -> Set<NodeID> {
        var nodes: Set<NodeID> = []
        for (number, line) in lines(try read(path)) {
            // What follows a node ID is the operator's note.
            let word = line.prefix { $0 != " " && $0 != "\t" && $0 != "#" }
            guard let node = NodeID(word) else { throw SettingsError(message: "\(path):\(number): not a node ID") }
            nodes.insert(node)
        }
        return nodes
    }

    private static func tokens(_ path: String) throws(SettingsError) -> [TokenHash] {
        var tokens: [TokenHash] = []
        for (number, line) in lines(try read(path, isSecret: true)) {
            guard let token = RelayAccessToken(String(line)) else {
                throw SettingsError(message: "\(path):\(number): a token is 1 to 512 visible characters")
            }
            tokens.append(token.hash)
        }
        // An empty file must not open the relay to everyone.
        guard !tokens.isEmpty else { throw SettingsError(message: "\(path): there is no token in it") }
        return tokens
    }

    private static func lines(_ text: String) -> [(Int, Substring)] {
        text.lines.enumerated().compactMap { index, line in
            let line = Substring(line.trimmed)
            return line.isEmpty || line.hasPrefix("#") ? nil : (index + 1, line)
        }
    }

    private static func read(_ path: String, isSecret: Bool = false) throws(SettingsError) -> String {
        do throws(TransportError) {
            let bytes = try OperatorFile.read(path, maxBytes: fileBytes, isSecret: isSecret)
            if let text = String(validating: bytes, as: UTF8.self) { return text }
        } catch {
            throw SettingsError(message: "\(path): \(error.reason)")
        }
        throw SettingsError(message: "\(path): the file is not UTF-8 text")
    }
}

/// `--help`.
enum Help {
    static var text: String {
        let rows =
            [("--config FILE", "Read these settings from a file, one name = value a line; flags win")]
            + Setting.all.map { ("--\($0.name) \($0.metavar)", $0.help) }
            + [("--help", "Show this help"), ("--version", "Show the version")]
        let width = rows.map(\.0.count).max() ?? 0
        let lines = rows.map { "  \($0.0)\(String(repeating: " ", count: width - $0.0.count))  \($0.1)" }
        return """
            usage: culvert-relay [OPTIONS]

            Forwards end-to-end encrypted datagrams between nodes that cannot reach each other. Speaks iroh's relay
            protocol, versions 1 and 2.

            \(lines.joined(separator: "\n"))

            SIGHUP reads all files again; addresses stay as they are. SIGTERM tells the clients and stops.

            """
    }
}
