import CulvertCore

/// The bounds of a relay server that are not for the operator to choose, each with its reason; those that are have
/// their defaults in ``RelayServerQuota``.
package enum RelayServerLimits {
    /// Connections of one node; the oldest is closed for a further one. A node that moves between networks leaves one or
    /// two behind that are not known to be dead yet.
    package static let connectionsPerNode = 8
    /// Nodes that are told when a node leaves; others find out by their own time-outs. With 8 KiB for each of 20,000
    /// nodes it stays below 200 MB even if everyone sends to everyone.
    package static let rememberedPeers = 256
    /// Datagrams that wait for one client, as in other relays; more are dropped, the newest first.
    package static let queuedDatagrams = 512
    /// Bytes that wait for one client: the datagrams above at full size, with their headers.
    package static let queuedBytes = 1024 * 1024
    /// Bytes that wait for all clients together: more is not needed by 20,000 clients that read, and a few thousand that
    /// do not must not exhaust the machine.
    package static let queuedBytesAltogether = 512 * 1024 * 1024
    /// Frames without datagrams that wait for one client; who asks for more without reading gets no answer.
    package static let queuedReplies = 64
    /// Bytes that one read of a connection takes, so that others have their turn after some fifty datagrams.
    package static let readBytes = 64 * 1024
    /// Requests on one connection; load balancers and probes need few.
    package static let requestsPerConnection = 100
    /// The lowest rate to which a client may be held. A read is paid for in three seconds then; a longer pause would let
    /// the answer to a Ping lie unread until the client counts as gone.
    package static let rateFloor = 20_000
    /// How long a connection may wait between two requests.
    package static let requestPause = Duration.seconds(30)
    /// How long a client may take nothing although something waits for it.
    package static let stallTime = Duration.seconds(30)
    /// Connections to the listener for metrics: a few scrapers.
    package static let metricsConnections = 16
    /// STUN requests that are taken in one turn, so that a flood leaves time for the connections.
    package static let stunPerTurn = 64
    /// How long a connection that is being closed may take to read what was written.
    package static let closeTime = Duration.seconds(2)
    /// The share of a second that a token bucket holds at least, so that a burst of a window does not stop the sender.
    package static let burst = Duration.milliseconds(250)
}
