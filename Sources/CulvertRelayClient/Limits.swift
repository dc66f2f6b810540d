import CulvertCore

/// The bounds of a relay client, each with its reason; the protocol's own are in `RelayLimits`.
package enum RelayClientLimits {
    /// Finding the relay's address, TCP, a proxy and TLS together: a slow mobile link with two lost packets.
    static let connectTime = Duration.seconds(10)
    /// How long a relay may take to answer a request for `/ping`: slower ones are no use.
    static let pingTime = Duration.seconds(5)
    /// Bytes that wait for the TCP connection before QUIC connections are held back: 20 ms at 100 Mbit/s. More would be
    /// delay, not speed.
    static let queuedBytes = 256 * 1024
    /// Bytes above which datagrams are dropped: what connections may still write in the turn in which the queue fills.
    static let queuedBytesCeiling = 1024 * 1024
    /// Bytes of datagrams in one frame, so that a receiver's buffer for a frame in parts stays small.
    static let frameContents = 15 * 1024
    /// Bytes that one read takes, so that others have their turn after some fifty datagrams.
    static let readBytes = 64 * 1024
    /// A relay that nobody needs to be reached through, and over which nothing went for this time, is left.
    static let idleTime = Duration.seconds(60)
    /// Peers behind one relay that are told apart. Those without a connection are forgotten when there are more.
    static let peers = 16_384
}
