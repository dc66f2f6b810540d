import CulvertCore

/// Outgoing datagrams, written in place and sent together.
///
/// Consecutive datagrams with the same addresses and ECN mark and of equal size (the last may be smaller) form a
/// group, which the kernel takes as one message and cuts itself. Confined to its loop; nothing is allocated after
/// `init`.
package final class DatagramBatch {
    /// Datagrams that lie one behind the other in the buffer.
    struct Group {
        var offset: Int
        var count: Int
        /// The size of each datagram but the last.
        var segment: Int
        var local: SocketAddress?
        var remote: SocketAddress
        var ecn: UInt8

        var isClosed: Bool { count % segment != 0 }

        func accepts(_ size: Int, _ local: SocketAddress?, _ remote: SocketAddress, _ ecn: UInt8) -> Bool {
            size <= segment && !isClosed && count < segment * IOLimits.segmentsPerGroup
                && count + size <= IOLimits.datagramBytes && ecn == self.ecn && remote == self.remote
                && local == self.local
        }
    }

    private let buffer: UnsafeMutableRawBufferPointer
    private var end = 0
    private var reserved = 0
    private var groups: [Group] = []
    /// Groups before this index are sent.
    private var head = 0

    /// An empty batch for `capacity` bytes.
    package init(capacity: Int = IOLimits.batchBytes) {
        buffer = .allocate(byteCount: capacity, alignment: 64)
        groups.reserveCapacity(IOLimits.messagesPerSend)
    }

    deinit {
        buffer.deallocate()
    }

    /// Whether there is nothing to send.
    package var isEmpty: Bool { head == groups.count }

    /// How many bytes wait to be sent.
    package var byteCount: Int { groups[head...].reduce(0) { $0 + $1.count } }

    /// Space for one datagram of up to `size` bytes; nil when the batch is full and has to be sent first. It holds
    /// until the next call of this method.
    package func reserve(_ size: Int) -> UnsafeMutableRawBufferPointer? {
        guard size <= buffer.count - end, groups.count < IOLimits.messagesPerSend else { return nil }
        reserved = size
        return UnsafeMutableRawBufferPointer(rebasing: buffer[end..<end + size])
    }

    /// Appends the first `count` bytes of the reserved space as a datagram from `local` (nil: the kernel chooses) to
    /// `remote`, with the ECN codepoint `ecn` (0 to 3, RFC 3168). A count of 0 appends nothing.
    package func commit(count: Int, local: SocketAddress?, remote: SocketAddress, ecn: UInt8) {
        precondition(count >= 0 && count <= reserved, "more bytes committed than reserved")
        reserved = 0
        guard count > 0 else { return }
        let last = groups.count - 1
        if last >= head, groups[last].accepts(count, local, remote, ecn) {
            groups[last].count += count
        } else {
            groups.append(
                Group(offset: end, count: count, segment: count, local: local, remote: remote, ecn: ecn))
        }
        end += count
    }

    /// Calls `body` with each datagram that waits, in order.
    package func forEach(
        _ body: (_ datagram: UnsafeRawBufferPointer, _ local: SocketAddress?, _ remote: SocketAddress, _ ecn: UInt8) ->
            Void
    ) {
        for group in groups[head...] {
            for start in stride(from: group.offset, to: group.offset + group.count, by: group.segment) {
                let end = min(start + group.segment, group.offset + group.count)
                body(UnsafeRawBufferPointer(rebasing: buffer[start..<end]), group.local, group.remote, group.ecn)
            }
        }
    }

    /// Takes out the groups whose remote address `isTaken` names and gives them to `body`, in order; the others stay.
    package func drain(
        where isTaken: (SocketAddress) -> Bool,
        _ body: (_ datagrams: UnsafeRawBufferPointer, _ segment: Int, _ remote: SocketAddress, _ ecn: UInt8) -> Void
    ) {
        var kept = head
        for index in pending {
            let group = groups[index]
            if isTaken(group.remote) {
                let bytes = UnsafeRawBufferPointer(rebasing: buffer[group.offset..<group.offset + group.count])
                body(bytes, group.segment, group.remote, group.ecn)
            } else {
                groups[kept] = group
                kept += 1
            }
        }
        groups.removeLast(groups.count - kept)
        if isEmpty { removeAll() }
    }

    /// Drops everything.
    package func removeAll() {
        groups.removeAll(keepingCapacity: true)
        head = 0
        end = 0
    }

    // MARK: For the socket

    /// The indices of the groups that wait to be sent.
    var pending: Range<Int> { head..<groups.count }

    func group(_ index: Int) -> Group { groups[index] }

    /// The bytes at `offset`.
    func bytes(at offset: Int) -> UnsafeMutableRawPointer? { buffer.baseAddress.map { $0 + offset } }

    /// Drops `count` bytes, whole datagrams, from the front of the first group.
    func dropFirst(_ count: Int) {
        groups[head].offset += count
        groups[head].count -= count
        if groups[head].count == 0 { head += 1 }
        if isEmpty { removeAll() }
    }
}
