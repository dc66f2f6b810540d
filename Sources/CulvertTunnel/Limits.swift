/// Every limit of the tunnel and of pairing, with its reason.
package enum TunnelLimits {
    // MARK: Frames

    /// Bytes of a preface's JSON header (docs/protocol.md, Tunnel). The longest bearer and the fixed fields need 600.
    package static let prefaceHeader = 4 * 1024
    /// Bytes of the preface's whole `authorization` value. Deployed peers count the word `Bearer` too, so we do.
    package static let authorization = 512
    /// How long a preface may take. A stream that says nothing must not hold its slot.
    package static let prefaceTime = Duration.seconds(10)
    /// Bytes of a pairing frame's JSON header (docs/protocol.md, Pairing).
    package static let pairingHeader = 16 * 1024
    /// Bytes of a pairing frame's body. No version in use sends one; what a later one might send fits in here.
    package static let pairingBody = 16 * 1024
    /// How long the one exchange of pairing may take, each way; as deployed peers do.
    package static let pairingTime = Duration.seconds(10)
    /// Bytes of a pairing token: ours has 46, and nobody needs more than a bearer may have.
    package static let pairingToken = 512
    /// Nesting of wire JSON. Our messages have two levels; the scanner and the decoder behind it recurse.
    package static let jsonDepth = 16

    // MARK: Names

    /// Characters (grapheme clusters) of a device's name: what fits in a line of a listing.
    package static let deviceNameCharacters = 64
    /// UTF-8 bytes of a device's name: a single character may carry any number of combining marks.
    package static let deviceNameBytes = 256

    // MARK: The proxy's local side

    /// Bytes of a request head that the local gate looks at: more than servers accept.
    package static let head = 64 * 1024
    /// Fields of a request head. Common servers accept 100; browsers send about 20.
    package static let headFields = 256
    /// From a connection's first byte to the end of its first head: programs send it in one piece, and a connection
    /// that never does must not hold its place.
    package static let headTime = Duration.seconds(2)
    /// How long a connection may wait before its first byte: browsers open connections ahead of need and keep them
    /// for about a minute.
    package static let silentTime = Duration.seconds(60)
    /// Local connections at a time, unless configured: half of the usual 1,024 descriptors would be too few for
    /// browsers and load generators, and a connection costs two buffers at most.
    package static let localConnections = 1024

    /// How much of a request's head is read at once.
    package static let headRead = 16 * 1024
    /// How long an admitted local connection waits for a connection to the host before it is told that there is none:
    /// long enough to dial a host that has just restarted.
    package static let tunnelWait = Duration.seconds(10)
    /// How long a connection whose answer is complete stays to take what the client still sends.
    package static let lingerTime = Duration.seconds(2)

    // MARK: The host's side

    /// How long the target may take to accept a connection: it is near, and a client waits for the answer.
    package static let targetTime = Duration.seconds(3)
    /// How long a connection that belongs to no device may stay: enough to pair, or to be told why it is refused.
    package static let strangerTime = Duration.seconds(30)
    /// The same for one on which no stream was opened: a device that the host has forgotten hears of it soon.
    package static let silentStrangerTime = Duration.seconds(2)
    /// Connections at a time that belong to no device: anyone can make a key and connect, so these must not take the
    /// places of paired devices.
    package static let strangers = 256
    /// How often the owner is told of what may happen with every request.
    package static let noticePause = Duration.seconds(10)
    /// Failed pairings of one source within ``pairingFailureWindow`` that block it (docs/protocol.md, Pairing).
    package static let pairingFailures = 5
    /// The span in which failures count together.
    package static let pairingFailureWindow = Duration.seconds(60)
    /// How long a source stays blocked: guessing slows to 150 attempts an hour.
    package static let pairingBlock = Duration.seconds(120)
    /// Sources with failures that are remembered; about 100 KiB. The least recent is forgotten first.
    package static let pairingSources = 1024

    // MARK: The host's database

    /// Milliseconds that a statement waits for another process's transaction. The event loop waits with it, but a
    /// transaction takes one flush of the disk, so reaching this means a process that hangs.
    package static let databaseWait: Int32 = 2000
    /// How exact "last seen" is. One write per device and span, however many streams it opens.
    package static let lastSeenGrain = Duration.seconds(60)
    /// How long an invite is remembered after it expired, so that a late guest hears "expired", not "unknown".
    package static let expiredInviteMemory = Duration.seconds(7 * 24 * 3600)
}
