import CulvertCore

/// The numbers of the event loop and the sockets.
enum IOLimits {
    /// Messages of one `recvmmsg`; with receive offload each may hold 64 KiB of datagrams.
    static let receiveMessages = 8
    /// Groups of one `sendmmsg`.
    static let sendMessages = 64
    /// Datagrams of one group: the kernel's UDP_MAX_SEGMENTS.
    static let segmentsPerGroup = 64
    /// Bytes of one group: the largest UDP payload over IPv4.
    static let bytesPerGroup = 65_507
    /// Socket buffers of a UDP socket: 30 ms at 1 Gbit/s. The kernel may grant less.
    static let datagramBuffer = 4 * 1024 * 1024
    /// Chunks of one `readv` or `writev`: 256 KiB.
    static let vectors = 16
    /// Connections accepted before other sockets get their turn.
    static let acceptsPerTurn = 64
    /// Pause of a listener when the process has no descriptor left; a closing connection frees one within that time.
    static let acceptPause = Duration.milliseconds(100)
    /// Pending connections of a listener; the kernel cuts it to net.core.somaxconn.
    static let backlog: Int32 = 1024
}
