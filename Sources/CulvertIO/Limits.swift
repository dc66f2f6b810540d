/// The bounds of this module, each with its reason.
package enum IOLimits {
    /// The size of a chunk of a ``ByteQueue``: four pages, so that a 64 KiB read is four or five vectors and an idle
    /// stream with a few bytes costs little.
    package static let chunkBytes = 16 * 1024
    /// How many free chunks a pool keeps (4 MiB): the working set of some dozen busy streams; the rest goes back to
    /// the allocator.
    package static let pooledChunks = 256
    /// How many vectors one read or write uses: 256 KiB, beyond which a larger call no longer saves anything and
    /// other sockets wait longer.
    package static let vectors = 16

    /// How many bytes a batch of outgoing datagrams holds: some 180 full datagrams, four GSO groups.
    package static let batchBytes = 256 * 1024
    /// How many messages one `sendmmsg` takes; a batch holds as many groups.
    package static let messagesPerSend = 128
    /// The kernel cuts one message into at most 64 datagrams (`UDP_MAX_SEGMENTS` before Linux 6.9).
    package static let segmentsPerGroup = 64
    /// The largest UDP payload over IPv4 (65,535 - 20 - 8); it bounds a GSO group as a whole too.
    package static let datagramBytes = 65_507
    /// How many messages one `recvmmsg` takes; each may hold 64 KiB of coalesced datagrams.
    package static let messagesPerReceive = 8
    /// The room for one received message: what GRO coalesces at most.
    package static let receiveBytes = 64 * 1024
    /// How many pending errors one turn of receiving takes away; each is reported once, so more would be a fault that
    /// repeats.
    package static let receiveFailuresPerTurn = 8
    /// The kernel's buffers of a UDP socket: 10 ms at 400 MB/s, so that a busy loop loses nothing.
    package static let socketBufferBytes = 4 * 1024 * 1024

    /// The delay between attempts to connect to the addresses of one name (RFC 8305 section 8).
    package static let connectStagger: Duration = .milliseconds(250)
    /// How many connections a listener accepts in one turn, so that a flood leaves time for other sockets.
    package static let acceptsPerTurn = 64
    /// How long a listener rests when the process is out of descriptors; waking at once would spin.
    package static let acceptPause: Duration = .milliseconds(100)
    /// Connections that the kernel completes before they are accepted.
    package static let listenBacklog: Int32 = 1024

    /// The largest state file that is read when the caller names no bound: far above any that this program writes.
    package static let stateFileBytes = 1024 * 1024
    /// The largest list of TCP sockets that is read: 150 bytes for each of some 100,000 sockets.
    package static let socketTableBytes = 16 * 1024 * 1024
    /// Where bytes that nobody wants are read to: as much as a chunk of a busy upload.
    package static let discardBytes = 64 * 1024
}
