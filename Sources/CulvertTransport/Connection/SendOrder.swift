/// Streams with something to send, first come first served, one packet a turn: a bulk transfer cannot hold up a
/// small request for longer than a packet.
struct SendOrder {
    // A ring that grows to the largest number of streams that waited at once, and then allocates no more.
    private var ring: [QUICStream?] = Array(repeating: nil, count: 16)
    private var head = 0
    private(set) var count = 0

    /// The stream whose turn it is.
    var first: QUICStream? { count == 0 ? nil : ring[head] }

    /// Puts `stream` at the end, unless it is waiting already.
    mutating func append(_ stream: QUICStream) {
        guard !stream.isInSendOrder else { return }
        stream.isInSendOrder = true
        if count == ring.count { grow() }
        ring[(head + count) & (ring.count - 1)] = stream
        count += 1
    }

    /// Takes the first stream out.
    mutating func removeFirst() {
        guard count > 0 else { return }
        ring[head]?.isInSendOrder = false
        ring[head] = nil
        head = (head + 1) & (ring.count - 1)
        count -= 1
    }

    /// Moves the first stream to the end.
    mutating func rotate() {
        guard count > 1, let stream = first else { return }
        removeFirst()
        append(stream)
    }

    /// Forgets all streams.
    mutating func removeAll() {
        while count > 0 { removeFirst() }
    }

    private mutating func grow() {
        var larger: [QUICStream?] = Array(repeating: nil, count: ring.count * 2)
        for index in 0..<count { larger[index] = ring[(head + index) & (ring.count - 1)] }
        ring = larger
        head = 0
    }
}
