import CLinux
import CulvertCore
import Glibc

/// What became of a batch.
package enum SendOutcome: Sendable {
    /// The batch is empty.
    case done
    /// The socket takes no more; the rest is still in the batch, in order. `socketWritable()` will come.
    case blocked
}

/// The messages of one `sendmmsg` and the knowledge whether the kernel cuts them up.
struct UDPSender: ~Copyable {
    private let messages: OpaquePointer
    /// The size of each message of the current call.
    private let sizes: UnsafeMutablePointer<Int>
    /// Whether groups are left to the kernel to cut (UDP_SEGMENT).
    var isSegmenting: Bool

    init?(isIPv6: Bool, isSegmenting: Bool) {
        guard let messages = clinux_sender_create(UInt32(IOLimits.messagesPerSend), isIPv6) else { return nil }
        self.messages = messages
        self.isSegmenting = isSegmenting
        sizes = .allocate(capacity: IOLimits.messagesPerSend)
    }

    deinit {
        clinux_sender_destroy(messages)
        sizes.deallocate()
    }

    mutating func send(_ batch: DatagramBatch, on descriptor: Int32) -> SendOutcome {
        while !batch.isEmpty {
            let count = prepare(batch, isSegmenting: isSegmenting, groups: batch.pending)
            let sent = clinux_sender_send(messages, descriptor, UInt32(count))
            if sent > 0 {
                for index in 0..<Int(sent) { batch.dropFirst(sizes[index]) }
                continue
            }
            switch -sent {
            case EAGAIN, ENOBUFS:
                return .blocked
            case EIO where wasGroup(batch):
                // The route's device cannot do checksums for segments; the others would fail the same way.
                isSegmenting = false
            case EINVAL where wasGroup(batch), EMSGSIZE where wasGroup(batch):
                if sendSingly(batch, on: descriptor) == .blocked { return .blocked }
            case ECONNREFUSED:
                // An ICMP error for an earlier datagram, which the kernel reports once and only here.
                break
            default:
                // EMSGSIZE for a probe of the path's MTU, a route or source address that has gone, a firewall:
                // all of them are loss to QUIC.
                batch.dropFirst(sizes[0])
            }
        }
        return .done
    }

    private func wasGroup(_ batch: DatagramBatch) -> Bool {
        isSegmenting && sizes[0] > batch.group(batch.pending.lowerBound).segment
    }

    /// Sends the datagrams of the first group one by one after the kernel refused the whole.
    ///
    /// If one of full size passes, it was the segmentation that was refused, and it is turned off. If none does, they
    /// are too large for this path or have a bad address, which says nothing about other groups.
    private mutating func sendSingly(_ batch: DatagramBatch, on descriptor: Int32) -> SendOutcome {
        let index = batch.pending.lowerBound
        let segment = batch.group(index).segment
        var left = batch.group(index).count
        while left > 0 {
            let count = prepare(batch, isSegmenting: false, groups: index..<index + 1)
            let sent = Int(clinux_sender_send(messages, descriptor, UInt32(count)))
            var gone = 1
            switch Int32(-sent) {
            case ...0:
                gone = sent
                if sizes[0] == segment { isSegmenting = false }
            case EAGAIN, ENOBUFS:
                return .blocked
            case ECONNREFUSED:
                gone = 0
            default:
                break
            }
            for message in 0..<gone {
                left -= sizes[message]
                batch.dropFirst(sizes[message])
            }
        }
        return .done
    }

    /// Sets up messages for the waiting groups in the range; how many.
    private func prepare(_ batch: DatagramBatch, isSegmenting: Bool, groups: Range<Int>) -> Int {
        var count = 0
        for index in groups {
            let group = batch.group(index)
            var local = group.local.map { clinux_address($0) } ?? .none
            var remote = clinux_address(group.remote)
            var offset = 0
            while offset < group.count, count < IOLimits.messagesPerSend {
                let size = isSegmenting ? group.count : min(group.segment, group.count - offset)
                clinux_sender_set(
                    messages, UInt32(count), batch.bytes(at: group.offset + offset), size,
                    size > group.segment ? group.segment : 0, &local, &remote, group.ecn)
                sizes[count] = size
                count += 1
                offset += size
            }
        }
        return count
    }
}
