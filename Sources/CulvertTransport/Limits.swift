import CulvertCore

/// The numbers that bound what a peer can make this process hold or do, and the timing of connections.
package enum TransportLimits {
    /// Length of the connection IDs that we issue: 64 random bits cannot be guessed, and one word makes a fast key.
    static let connectionIDLength = 8

    /// A server forgets a client that has not completed its handshake in this time; slow links with a lost flight
    /// need about three seconds.
    static let handshakeTimeout = Duration.seconds(10)

    /// Silence after which a connection is given up. NATs and laptops that sleep make longer waits pointless.
    static let idleTimeout = Duration.seconds(30)

    /// A PING is sent after this much silence: below the 30 s after which many NATs forget a UDP mapping, and often
    /// enough that two losses do not end an idle connection.
    static let keepAlive = Duration.seconds(10)

    /// Receive window of a fresh stream: enough for a short exchange; it grows while the reader keeps up. All streams
    /// that a peer may open can stall with a full one without reaching ``unreadPerConnection``.
    static let initialStreamWindow: UInt64 = 64 * 1024
    /// Largest receive window of a stream: 100 ms at 640 Mbit/s.
    static let maximumStreamWindow: UInt64 = 8 * 1024 * 1024
    /// Receive window of a fresh connection.
    static let initialConnectionWindow: UInt64 = 2 * 1024 * 1024
    /// Largest receive window of a connection.
    static let maximumConnectionWindow: UInt64 = 24 * 1024 * 1024
    /// Received bytes that the readers of one connection may leave unread before the whole connection, and not only
    /// their own streams, has to wait: bounds memory whatever the readers do.
    static let unreadPerConnection = 256 * 1024 * 1024

    /// Bytes accepted from the application but not yet sent: a few round trips of the send buffer, no more.
    package static let unsentPerStream = 512 * 1024
    /// The same for all streams of a connection together: with many of them each one gets its share, but at least
    /// ``leastUnsentPerStream``. A peer that opens streams and reads none of them must not fill memory.
    static let unsentPerConnection = 32 * 1024 * 1024
    /// What a stream may always queue: two chunks, so that a read is worth its system call.
    static let leastUnsentPerStream = 32 * 1024
    /// Bytes kept of one stream until they are acknowledged; matches the largest receive window.
    package static let unacknowledgedPerStream = 8 * 1024 * 1024

    /// Streams that a peer may have open on one connection, unless configured.
    package static let streamsPerConnection = 1024

    /// Handshakes in progress above which a new client must first return a token (RFC 9000 section 8.1.2).
    static let handshakesBeforeRetry = 64
    /// Handshakes in progress above which new clients are not answered at all.
    static let handshakes = 1024
    /// Accepted connections above which further ones are refused (CONNECTION_REFUSED).
    static let connections = 4096
    /// How long a Retry token is good for.
    static let retryTokenLifetime = Duration.seconds(10)

    /// Ended connections remembered, so that late packets for them are not taken for new connections.
    static let endedConnections = 4096
    /// Answers to packets that belong to nobody (stateless resets, version negotiation) a second.
    static let statelessAnswersPerSecond = 200
    /// Retry packets a second. They have an allowance of their own, and a large one: a Retry is smaller than what
    /// provoked it, and honest clients must get theirs in the middle of a flood.
    static let retriesPerSecond = 10_000

    /// Datagram size on paths that never leave the machine (loopback's MTU is 65,536): four fill a GSO batch.
    static let loopbackDatagram = 16_000
    /// The size every path must carry (RFC 9000 section 14), used until more is known.
    static let minimumDatagram = 1200
    /// The largest datagram that path MTU discovery may find: Ethernet, IPv6 and UDP headers taken off.
    static let maximumDatagram = 1452

    /// Datagrams written for one connection before others get their turn.
    static let datagramsPerTurn = 64
}
