/// The command's bounds, each with its reason.
enum Limits {
    /// How long open streams may go on after SIGINT or SIGTERM; what service managers and people put up with.
    static let shutdownGrace = Duration.seconds(5)

    /// What closing may take beyond the grace period before the process ends without it: a close that hangs must not
    /// outlive a service manager's patience (systemd kills after 90 s, people after far less).
    static let shutdownMargin = Duration.seconds(3)

    /// What an urgent close may take: telling the peers is one packet to each, and whoever signals twice wants it over.
    static let urgentStop = Duration.seconds(1)

    /// An operation that takes longer than this shows that it is under way.
    static let progressDelay = Duration.seconds(1)

    /// The longest life of an invite; a link that grants access for longer is forgotten in some chat log.
    static let inviteLifetime = Duration.seconds(30 * 86_400)

    /// An invite on standard input; real links have about 1 to 3 KiB, and a mistaken `- < file` must not fill memory.
    static let inviteInputBytes = 64 * 1024

    /// Names of servers and devices; they are columns of a table and one line of a prompt.
    static let nameCharacters = 64

    /// Streams of one connection and connections of one proxy: the most that 16-bit counters of peers hold.
    static let streams = 65_535

    /// Help fits the narrowest terminal in common use.
    static let helpColumns = 80

    /// Words of the user that an error repeats; anything longer may be a link or a token.
    static let quotedCharacters = 40
}
