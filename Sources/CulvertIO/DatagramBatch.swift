import CulvertCore

/// Outgoing datagrams, written in place, that one system call sends. Consecutive datagrams between the same addresses
/// and of the same size (the last may be smaller) form a group, which the kernel cuts up by itself (UDP_SEGMENT).
/// Confined to one thread.
package final class DatagramBatch {
    /// Datagrams of one size between the same addresses, back to back.
    struct Group {
        var start: Int
        var count: Int
        /// The size of all datagrams but the last.
        var segment: Int
        var segments: Int
        var local: SocketAddress?
        var remote: SocketAddress
        var ecn: UInt8
        /// Whether a datagram that is smaller than `segment` was appended, so that none may follow.
        var isClosed = false
    }

    private let memory: UnsafeMutableRawBufferPointer
    private(set) var groups: [Group] = []
    private var used = 0

    /// A batch of at most `capacity` bytes.
    package init(capacity: Int = 256 * 1024) {
        memory = .allocate(byteCount: capacity, alignment: 64)
        groups.reserveCapacity(IOLimits.sendMessages)
    }

    deinit {
        memory.deallocate()
    }

    /// Whether there are no datagrams.
    package var isEmpty: Bool { groups.isEmpty }

    /// Room for a datagram of up to `size` bytes; nil when the batch has to be sent first.
    package func reserve(_ size: Int) -> UnsafeMutableRawBufferPointer? {
        guard groups.count < IOLimits.sendMessages, memory.count - used >= size else { return nil }
        return UnsafeMutableRawBufferPointer(rebasing: memory[used..<used + size])
    }

    /// Appends the first `count` bytes of what was reserved last, as a datagram from `local` (nil lets the kernel
    /// choose) to `remote` with the two ECN bits `ecn`.
    package func commit(count: Int, local: SocketAddress?, remote: SocketAddress, ecn: UInt8) {
        defer { used += count }
        if let last = groups.indices.last, groups[last].accepts(count, local: local, remote: remote, ecn: ecn) {
            groups[last].count += count
            groups[last].segments += 1
            groups[last].isClosed = count < groups[last].segment
        } else {
            groups.append(
                Group(start: used, count: count, segment: count, segments: 1, local: local, remote: remote, ecn: ecn))
        }
    }

    /// Calls `body` with each datagram in order.
    package func forEach(
        _ body: (_ datagram: UnsafeRawBufferPointer, _ local: SocketAddress?, _ remote: SocketAddress, _ ecn: UInt8) -> Void
    ) {
        for group in groups {
            var offset = 0
            while offset < group.count {
                let length = min(group.segment, group.count - offset)
                let bytes = UnsafeRawBufferPointer(rebasing: memory[group.start + offset..<group.start + offset + length])
                body(bytes, group.local, group.remote, group.ecn)
                offset += length
            }
        }
    }

    /// Drops all datagrams.
    package func removeAll() {
        groups.removeAll(keepingCapacity: true)
        used = 0
    }

    /// Drops the first `count` groups; what is left stays in order.
    func removeFirstGroups(_ count: Int) {
        groups.removeFirst(count)
        if groups.isEmpty { used = 0 }
    }

    /// Splits the first group into single datagrams, for kernels and drivers that refuse to.
    func splitFirstGroup() {
        guard let group = groups.first, group.segments > 1 else { return }
        let singles = stride(from: 0, to: group.count, by: group.segment).map { offset in
            let length = min(group.segment, group.count - offset)
            return Group(
                start: group.start + offset, count: length, segment: length, segments: 1, local: group.local,
                remote: group.remote, ecn: group.ecn)
        }
        groups.replaceSubrange(0..<1, with: singles)
    }

    func bytes(of group: Group) -> UnsafeMutableRawPointer? {
        memory.baseAddress.map { $0 + group.start }
    }
}

extension DatagramBatch.Group {
    fileprivate func accepts(_ size: Int, local: SocketAddress?, remote: SocketAddress, ecn: UInt8) -> Bool {
        !isClosed && size <= segment && segments < IOLimits.segmentsPerGroup && count + size <= IOLimits.bytesPerGroup
            && self.ecn == ecn && self.remote == remote && self.local == local
    }
}
