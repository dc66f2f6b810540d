import Culvert

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
        "qr", "WHEN", "Draw the QR code: auto (on a terminal that is wide enough), always or never",
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
