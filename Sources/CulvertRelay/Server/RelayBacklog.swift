/// Counts the frames that wait for one client: how many datagrams and bytes, and whether one more is admitted.
///
/// The bytes lie elsewhere, in the same order. Nothing is allocated once the ring has grown to the client's needs.
package struct RelayBacklog: Sendable {
    private struct Frame {
        var bytes: UInt32
        var datagrams: UInt32
    }

    private var ring: [Frame] = []
    private var head = 0
    private var frames = 0
    /// Bytes of the first frame that are sent already.
    private var sentOfFirst = 0
    /// Datagrams that wait.
    package private(set) var datagrams = 0
    /// Bytes that wait.
    package private(set) var bytes = 0
    private var replies = 0

    /// Nothing waits.
    package init() {}

    /// Whether a frame of `bytes` with so many datagrams may wait too; counts it then.
    package mutating func admit(bytes: Int, datagrams: Int) -> Bool {
        guard self.datagrams + datagrams <= RelayServerLimits.queuedDatagrams,
            self.bytes + bytes <= RelayServerLimits.queuedBytes
        else { return false }
        append(bytes, datagrams)
        return true
    }

    /// Whether a frame without datagrams may wait too; counts it then. Datagrams take no room from these.
    package mutating func admitReply(bytes: Int) -> Bool {
        guard replies < RelayServerLimits.queuedReplies else { return false }
        append(bytes, 0)
        return true
    }

    /// So many bytes from the front are sent.
    package mutating func sent(_ count: Int) {
        precondition(count <= bytes, "more bytes sent than waited")
        bytes -= count
        var left = count + sentOfFirst
        while frames > 0, left >= Int(ring[head].bytes) {
            left -= Int(ring[head].bytes)
            datagrams -= Int(ring[head].datagrams)
            if ring[head].datagrams == 0 { replies -= 1 }
            head = (head + 1) & (ring.count - 1)
            frames -= 1
        }
        sentOfFirst = left
    }

    /// Gives back the memory that is kept for speed, when nothing waits.
    package mutating func trim() {
        guard frames == 0 else { return }
        ring = []
        head = 0
    }

    private mutating func append(_ bytes: Int, _ datagrams: Int) {
        if frames == ring.count { grow() }
        ring[(head + frames) & (ring.count - 1)] = Frame(bytes: UInt32(bytes), datagrams: UInt32(datagrams))
        frames += 1
        self.bytes += bytes
        self.datagrams += datagrams
        if datagrams == 0 { replies += 1 }
    }

    /// Doubles the ring; its size is a power of two.
    private mutating func grow() {
        let ordered = (0..<frames).map { ring[(head + $0) & (ring.count - 1)] }
        let size = max(8, ring.count * 2)
        ring = ordered + [Frame](repeating: Frame(bytes: 0, datagrams: 0), count: size - frames)
        head = 0
    }
}
