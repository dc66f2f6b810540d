/// The bounds of what this module reads and writes.
enum Limits {
    /// Bytes of an invite's signed JSON payload. A payload with a full ticket and eight relays has about 3 KiB; the
    /// bound keeps what an unauthenticated text can make us parse small.
    static let payloadBytes = 8 * 1024
    /// Bytes of an invite's JSON envelope: the payload in base64url (4/3) and about 300 bytes for key and signature.
    static let envelopeBytes = 12 * 1024
    /// Bytes of an invite link: the envelope in base64url (4/3) and its frame.
    static let linkBytes = 16 * 1024 + 64
    /// Bytes of a ticket's text. iroh's own have fewer than 1,000; this is room for 64 addresses and some relays.
    static let ticketTextBytes = 4 * 1024
    /// Addresses in one ticket. Each is probed, so a ticket must not send a client knocking on doors without end.
    static let ticketAddresses = 64
    /// Bytes of a relay URL: a host name has at most 253, the rest is scheme and port.
    static let relayURLBytes = 512
    /// Relay URLs of one server, after duplicates are folded: the bound of the metadata format.
    static let relayURLs = 8
    /// Application protocols in one server's metadata; we write four.
    static let alpns = 32
    /// Bytes of one application protocol name (RFC 7301 section 3.1).
    static let alpnBytes = 255
    /// Bytes of the UTF-8 name of a server or device: it must fit into one line of a terminal or list.
    static let nameBytes = 128
    /// Bytes of a token from another program, as for the bearer in the tunnel's preface. Ours have 46.
    static let tokenBytes = 512
    /// Random bytes in a token: as strong as the keys.
    static let tokenEntropyBytes = 32
    /// Seconds by which two clocks may disagree about an invite's expiry.
    static let clockSkewSeconds: Int64 = 60
    /// Seconds that an invite may be valid at most: 30 days.
    static let inviteLifetimeSeconds: Int64 = 30 * 24 * 60 * 60
}
