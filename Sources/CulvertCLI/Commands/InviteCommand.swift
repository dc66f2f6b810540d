import Culvert
import CulvertCore

/// `culvert invite`: another invite from the running host.
struct InviteCommand: Command {
    static let description = CommandDescription(
        name: "invite",
        summary: "Make an invite for one more client of the running host",
        options: [
            CommonOptions.inviteLifetime.description, CommonOptions.stateDirectory.description,
            CommonOptions.qr.description, CommonOptions.json,
        ],
        examples: [
            .init(
                purpose: "invite another machine without showing the link",
                line: "culvert invite | ssh laptop culvert connect -")
        ])

    private let host: ControlClient
    private let lifetime: Duration?
    private let qr: QRMode
    private let asJSON: Bool

    init(_ arguments: Arguments) throws(UsageError) {
        host = ControlClient(try arguments.stateDirectory())
        lifetime = try arguments.value(CommonOptions.inviteLifetime)
        asJSON = arguments.isSet(CommonOptions.json)
        qr = try InvitePrinter.mode(arguments, asJSON: asJSON)
    }

    func run(_ context: Context) async throws {
        let invite = try host.makeInvite(validFor: lifetime)
        if asJSON {
            let expires = JSON.string(Dates.rfc3339(invite.expiresAt))
            context.console.line(JSON.object([("invite", .string(invite.link)), ("expiresAt", expires)]).text)
            return
        }
        InvitePrinter(mode: qr, text: [invite.link]).print(invite.link, on: context.console)
        context.console.note("Works once; expires \(Dates.relative(invite.expiresAt, to: context.now))")
    }
}
