import Culvert
import CulvertCore

/// The devices of the running host.
enum Devices {
    /// The operand that names one.
    static let operand = OperandDescription(
        metavar: "DEVICE", help: "The device's ID, or its name when only one has it; see culvert devices",
        completion: .deviceName)

    /// A listed device, as far as it must be told apart.
    struct Candidate: Equatable {
        let id: String
        let name: String
    }

    /// The device that `word` means: its ID, otherwise the name that just one has.
    static func find(_ word: String, among devices: [Candidate]) throws(Failure) -> Candidate {
        if let device = devices.first(where: { $0.id == word }) { return device }
        let named = devices.filter { $0.name == word }
        if named.count == 1 { return named[0] }
        if named.count > 1 {
            throw Failure(
                "\(named.count) devices are called \(UsageError.quote(word)); give the ID from culvert devices",
                kind: "unknown-device")
        }
        let near = Suggestion.closest(to: word, among: devices.flatMap { [$0.id, $0.name] })
        let hint = near.map { "did you mean \(ShellWord.quoted(PrintableText.clean($0)))?" } ?? "see culvert devices"
        throw Failure("there is no device \(UsageError.quote(word)); \(hint)", kind: "unknown-device")
    }

    /// The same, asking the running host.
    static func find(_ word: String, of host: ControlClient) throws -> Candidate {
        try find(word, among: host.devices().filter { !$0.isRevoked }.map { Candidate(id: $0.id, name: $0.name) })
    }
}

/// `culvert devices`: who is paired with this host.
struct DevicesCommand: Command {
    static let description = CommandDescription(
        name: "devices",
        summary: "List the devices that are paired with the running host",
        options: [all, CommonOptions.stateDirectory.description, CommonOptions.json])

    private static let all = OptionDescription(
        name: "all", help: "Also those that were revoked; JSON always lists them")

    private let host: ControlClient
    private let showsRevoked: Bool
    private let asJSON: Bool

    init(_ arguments: Arguments) throws(UsageError) {
        host = ControlClient(try arguments.stateDirectory())
        showsRevoked = arguments.isSet(Self.all)
        asJSON = arguments.isSet(CommonOptions.json)
    }

    func run(_ context: Context) async throws {
        let devices = try host.devices()
        if asJSON { return context.console.lines(JSON.lines(devices.map(DevicesCommand.json))) }
        let shown = devices.filter { showsRevoked || !$0.isRevoked }
        context.console.lines(shown.isEmpty ? [] : DevicesCommand.table(shown, now: context.now).lines)
        if let note = DevicesCommand.note(shown: shown.count, hidden: devices.count - shown.count) {
            context.console.note(note)
        }
    }

    /// The devices as people read them.
    static func table(_ devices: [Device], now: UnixTime) -> Table {
        let rows = devices.map { device in
            let state = device.isRevoked ? "revoked" : device.isConnected ? "connected" : "away"
            // What is written down is to the minute; a connection says more.
            let seen = device.isConnected ? now : device.lastSeenAt
            return [
                device.id, device.name, state, Dates.relative(device.createdAt, to: now),
                seen.map { Dates.relative($0, to: now) } ?? "never",
            ]
        }
        return Table(headings: ["ID", "NAME", "STATE", "PAIRED", "SEEN"], rows: rows)
    }

    /// What the table does not show.
    static func note(shown: Int, hidden: Int) -> String? {
        if hidden > 0 { return "\(hidden) revoked, not shown; see culvert devices --all" }
        return shown == 0 ? "No devices yet; let one pair by culvert invite" : nil
    }

    private static func json(_ device: Device) -> JSON {
        .object([
            ("id", .string(device.id)), ("name", .string(device.name)), ("connected", .bool(device.isConnected)),
            ("revoked", .bool(device.isRevoked)), ("createdAt", .string(Dates.rfc3339(device.createdAt))),
            ("lastSeenAt", device.lastSeenAt.map { .string(Dates.rfc3339($0)) } ?? .null),
        ])
    }
}

/// `culvert revoke`: cuts a device off.
struct RevokeCommand: Command {
    static let description = CommandDescription(
        name: "revoke",
        summary: "Cut off a paired device",
        discussion: ["Its connections end at once, and it must pair again with a new invite."],
        operands: [Devices.operand],
        options: [CommonOptions.stateDirectory.description])

    private let host: ControlClient
    private let device: String

    init(_ arguments: Arguments) throws(UsageError) {
        host = ControlClient(try arguments.stateDirectory())
        device = arguments.operands[0]
    }

    func run(_ context: Context) async throws {
        let device = try Devices.find(device, of: host)
        try host.revoke(device.id)
        context.console.note("Revoked \(PrintableText.clean(device.name))")
    }
}

/// `culvert rename`: gives a device another name.
struct RenameCommand: Command {
    static let description = CommandDescription(
        name: "rename",
        summary: "Give a paired device another name",
        operands: [Devices.operand, OperandDescription(metavar: "NAME", help: "The new name")],
        options: [CommonOptions.stateDirectory.description])

    private let host: ControlClient
    private let device: String
    private let name: String

    init(_ arguments: Arguments) throws(UsageError) {
        host = ControlClient(try arguments.stateDirectory())
        device = arguments.operands[0]
        guard let name = PersonalName.parse(arguments.operands[1]) else {
            throw arguments.usageError("NAME takes \(PersonalName.expectation)")
        }
        self.name = name
    }

    func run(_ context: Context) async throws {
        let device = try Devices.find(device, of: host)
        try host.rename(device.id, to: name)
        context.console.note("\(PrintableText.clean(device.name)) is now called \(name)")
    }
}
