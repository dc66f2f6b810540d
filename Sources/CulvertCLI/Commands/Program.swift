/// The program as a whole.
enum Program {
    static let version = "0.1.0"

    static let summary = """
        Culvert lets an unchanged HTTP or WebSocket client reach an HTTP server that has no public name, port or \
        certificate: one side runs a host, the other a loopback proxy, and between them is one authenticated QUIC \
        connection.
        """

    /// The commands, in the order in which help lists them.
    static let commands: [any Command.Type] = [
        HostCommand.self, ConnectCommand.self, ServersCommand.self, ForgetCommand.self, TokenCommand.self,
        InviteCommand.self, DevicesCommand.self, RenameCommand.self, RevokeCommand.self, CompletionsCommand.self,
        ManCommand.self,
        HelpCommand.self, VersionCommand.self,
    ]

    /// Their descriptions.
    static var descriptions: [CommandDescription] { commands.map { $0.description } }
}
