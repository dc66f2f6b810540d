import Culvert
import CulvertCore

/// Options that mean the same wherever they stand.
enum CommonOptions {
    /// Where identity, servers and devices are kept.
    static let stateDirectory = Option.text(
        "state-dir", "DIR", "Directory of identity, servers and devices", default: "~/.local/state/culvert",
        completion: .directory)

    /// Listings for programs.
    static let json = OptionDescription(name: "json", help: "Print JSON")

    /// Events for programs.
    static let jsonEvents = OptionDescription(name: "json", help: "Print one JSON object a line: ready, then changes")

    /// The QR code of an invite.
    static let qr = Option.choice(
        "qr", "WHEN",
        "Draw the QR code: auto (on a terminal where all of it fits, about 125 columns by 85 lines), always or never",
        default: QRMode.auto)

    /// How long an invite works.
    static let inviteLifetime = Option.duration(
        "invite-lifetime", "How long an invite works, such as 90s, 10m, 2h or 30d", default: "90s",
        upTo: Limits.inviteLifetime)
}

extension Arguments {
    /// The state directory that was asked for, or the usual one.
    func stateDirectory() throws(UsageError) -> StateDirectory {
        StateDirectory(path: try value(CommonOptions.stateDirectory))
    }
}

extension StateDirectory {
    /// Runs `work` on the directory; a failure of local state says which directory it is.
    func named<Value>(_ work: () async throws(TransportError) -> Value) async throws -> Value {
        do { return try await work() } catch { throw failure(error) }
    }

    /// The same without waiting.
    func named<Value>(_ work: () throws(TransportError) -> Value) throws -> Value {
        do { return try work() } catch { throw failure(error) }
    }

    private func failure(_ error: TransportError) -> Failure {
        error.kind == .state ? Failure(error, about: path) : Failure(error)
    }
}
