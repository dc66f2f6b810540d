import CulvertCore
import CulvertRelay

/// What an operator has set, by flags or in a file.
struct Settings: Equatable {
    var listen: [SocketAddress] = []
    var metrics: SocketAddress?
    var stun: SocketAddress?
    var certificateFile: String?
    var keyFile: String?
    var allowFile: String?
    var denyFile: String?
    var tokenFile: String?
    var quota = RelayServerQuota()
}

/// One thing that an operator can set: `--name VALUE` on the command line, `name = value` in the file. Parsing, help and
/// the checks of the file derive from the table ``all``.
struct Setting: Sendable {
    let name: String
    let metavar: String
    /// One sentence, without a full stop.
    let help: String
    /// What a good value is, as in "--port takes …".
    let expectation: String
    /// Whether it may be given more than once, each time for one more value.
    var isRepeatable = false
    /// Takes over the text's value; false when it is malformed.
    let apply: @Sendable (_ settings: inout Settings, _ text: String) -> Bool

    static let all: [Setting] = [
        address("listen", "Accept clients here; may be given more than once (default: 127.0.0.1:3340)") {
            $0.listen.append($1)
        }.repeatable,
        file("tls-cert", "Speak TLS with this certificate chain, PEM", \.certificateFile),
        file("tls-key", "The key of that certificate, PEM", \.keyFile),
        address("metrics", "Serve OpenMetrics at /metrics here; keep it from the world") { $0.metrics = $1 },
        address("stun", "Answer STUN requests (RFC 8489) here, over UDP; usually port 3478") { $0.stun = $1 },
        file("allow", "Admit only the nodes in this file, one node ID a line", \.allowFile),
        file("deny", "Never admit the nodes in this file, one node ID a line", \.denyFile),
        file("token-file", "Admit only clients that show one of the tokens in this file, one a line", \.tokenFile),
        number("max-connections", "Connections altogether", \.quota.connections, 1...1_000_000),
        number(
            "max-connections-per-address", "Connections of one address (IPv6: of one /64)",
            \.quota.connectionsPerAddress, 1...1_000_000),
        Setting(
            name: "rate", metavar: "N",
            help:
                "Bytes per second that a client may send; 0 is no limit (default: \(RelayServerQuota().bytesPerSecond))",
            expectation: "0 or a number from \(RelayServerLimits.rateFloor) to \(rateCeiling)",
            apply: { settings, text in
                guard let rate = decimal(text), rate == 0 || (RelayServerLimits.rateFloor...rateCeiling).contains(rate)
                else { return false }
                settings.quota.bytesPerSecond = rate
                return true
            }),
        Setting(
            name: "handshake-time", metavar: "SECONDS",
            help:
                "Time for a connection to be admitted (default: \(RelayServerQuota().handshakeTime.components.seconds))",
            expectation: "a number from 1 to 60",
            apply: { settings, text in
                guard let seconds = decimal(text), (1...60).contains(seconds) else { return false }
                settings.quota.handshakeTime = .seconds(seconds)
                return true
            }),
    ]

    private static let rateCeiling = 1_000_000_000_000

    private static func address(
        _ name: String, _ help: String, _ set: @escaping @Sendable (inout Settings, SocketAddress) -> Void
    ) -> Setting {
        Setting(
            name: name, metavar: "ADDR:PORT", help: help,
            expectation: "an address and a port such as 192.0.2.7:443 or [::]:443",
            apply: { settings, text in
                guard let address = SocketAddress(text) else { return false }
                set(&settings, address)
                return true
            })
    }

    private static func file(
        _ name: String, _ help: String, _ path: WritableKeyPath<Settings, String?> & Sendable
    ) -> Setting {
        Setting(
            name: name, metavar: "FILE", help: help, expectation: "the path of a file",
            apply: { settings, text in
                settings[keyPath: path] = text
                return !text.isEmpty
            })
    }

    private static func number(
        _ name: String, _ help: String, _ path: WritableKeyPath<Settings, Int> & Sendable, _ range: ClosedRange<Int>
    ) -> Setting {
        Setting(
            name: name, metavar: "N", help: "\(help) (default: \(Settings()[keyPath: path]))",
            expectation: "a number from \(range.lowerBound) to \(range.upperBound)",
            apply: { settings, text in
                guard let number = decimal(text), range.contains(number) else { return false }
                settings[keyPath: path] = number
                return true
            })
    }

    private static func decimal(_ text: String) -> Int? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
    }

    private var repeatable: Setting {
        var copy = self
        copy.isRepeatable = true
        return copy
    }

    /// The setting called `name`.
    static func named(_ name: some StringProtocol) -> Setting? { all.first { $0.name == name } }
}

/// What is wrong with a command line or a file, in one line for the operator.
struct SettingsError: Error, Equatable {
    let message: String
}
