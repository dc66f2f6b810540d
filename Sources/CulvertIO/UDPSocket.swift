import CLinux
import CulvertCore
import Glibc

/// Who is told about a UDP socket, on the loop.
package protocol UDPSocketHandler: AnyObject {
    /// Datagrams have arrived.
    func socketReadable()
    /// There is room again after ``UDPSocket/send(_:)`` was blocked.
    func socketWritable()
}

/// A UDP socket that receives and sends in batches. Confined to its loop.
package final class UDPSocket {
    /// What came of sending a batch.
    package enum SendOutcome {
        /// All datagrams are with the kernel, or lost; the batch is empty.
        case done
        /// The kernel takes no more for now; the rest stays in the batch.
        case blocked
    }

    /// The address that the socket is bound to; unspecified when it receives on all addresses.
    package let localAddress: SocketAddress

    private let fd: FileDescriptor
    private let receiver: OpaquePointer
    private let sender: OpaquePointer
    /// Whether the kernel and the driver cut groups into datagrams; turned off for good when they fail to.
    private(set) var segments: Bool
    private weak var handler: (any UDPSocketHandler)?
    private var loop: EventLoop?
    private var registration: EventLoop.Registration?

    /// Binds `address`. `[::]` receives IPv4 too, and becomes 0.0.0.0 on a machine without IPv6. Throws
    /// `localListener`.
    package static func bind(_ address: SocketAddress) throws(TransportError) -> UDPSocket {
        do {
            return try UDPSocket(binding: address)
        } catch {
            guard address.ip == .anyV6, error == Self.noFamily else { throw error }
            return try UDPSocket(binding: SocketAddress(.anyV4, port: address.port))
        }
    }

    private static let noFamily = TransportError(
        .localListener, "the UDP address cannot be used on this machine; give another one with --listen")

    private init(binding address: SocketAddress) throws(TransportError) {
        let isSix = address.ip.isIPv6
        let descriptor = clinux_udp_socket(isSix)
        guard descriptor >= 0 else { throw Self.noFamily }
        fd = FileDescriptor(descriptor)
        if isSix { _ = clinux_set_v6_only(descriptor, address.ip != .anyV6) }
        var wanted = clinux_address(address)
        switch -clinux_bind(descriptor, &wanted) {
        case 0: break
        case EADDRINUSE: throw TransportError(.localListener, "the UDP port is in use; choose another with --listen")
        case EACCES: throw TransportError(.localListener, "the UDP port needs privileges; choose one above 1023")
        default: throw Self.noFamily
        }
        guard clinux_udp_setup(descriptor, isSix, Int32(IOLimits.datagramBuffer)) == 0 else { throw Self.noFamily }
        var bound = clinux_address()
        _ = clinux_local_address(descriptor, &bound)
        // A dual-stack socket's own address reads back as [::].
        localAddress = SocketAddress(address.ip, port: bound.port)
        segments = clinux_udp_can_segment(descriptor)
        let exhausted = TransportError(.localListener, "no memory for a UDP socket")
        guard let receiver = clinux_receiver_create(UInt32(IOLimits.receiveMessages), 65_536) else { throw exhausted }
        guard let sender = clinux_sender_create(UInt32(IOLimits.sendMessages), isSix) else {
            clinux_receiver_destroy(receiver)
            throw exhausted
        }
        self.receiver = receiver
        self.sender = sender
    }

    deinit {
        clinux_receiver_destroy(receiver)
        clinux_sender_destroy(sender)
    }

    /// Has `handler` told about datagrams on `loop`.
    package func attach(to loop: EventLoop, handler: any UDPSocketHandler) throws(TransportError) {
        self.handler = handler
        self.loop = loop
        registration = try loop.register(fd.number, .readable, handler: self)
    }

    /// Deregisters; the descriptor is closed with the object.
    package func close() {
        if let registration { loop?.deregister(registration) }
        registration = nil
        handler = nil
    }

    /// Calls `body` with datagrams that have arrived, from at most `budget` system calls. The bytes are valid during
    /// the call.
    package func receive(
        budget: Int,
        _ body: (
            _ datagram: UnsafeMutableRawBufferPointer, _ local: SocketAddress, _ remote: SocketAddress, _ ecn: UInt8
        ) -> Void
    ) {
        for _ in 0..<budget {
            let count = Int(clinux_receiver_receive(receiver, fd.number))
            // Errors are those of earlier datagrams (ICMP) or mean that there is nothing.
            guard count > 0 else { return }
            for index in 0..<count { split(UInt32(index), body) }
            guard count == IOLimits.receiveMessages else { return }
        }
    }

    private func split(
        _ index: UInt32,
        _ body: (UnsafeMutableRawBufferPointer, SocketAddress, SocketAddress, UInt8) -> Void
    ) {
        var message = clinux_received()
        guard clinux_receiver_message(receiver, index, &message), let remote = SocketAddress(message.remote),
            let bytes = message.bytes, message.count > 0
        else { return }
        let local = SocketAddress(SocketAddress(message.local)?.ip ?? localAddress.ip, port: localAddress.port)
        var offset = 0
        while offset < message.count {
            let length = min(message.segment, message.count - offset)
            body(UnsafeMutableRawBufferPointer(start: bytes + offset, count: length), local, remote, message.ecn)
            offset += length
        }
    }

    /// Sends the batch with as few system calls as possible. Datagrams that the network refuses (no route, too large)
    /// are dropped, as the network itself might.
    package func send(_ batch: DatagramBatch) -> SendOutcome {
        while !batch.isEmpty {
            if !segments { while let first = batch.groups.first, first.segments > 1 { batch.splitFirstGroup() } }
            let count = prepare(batch)
            let result = Int(clinux_sender_send(sender, fd.number, UInt32(count)))
            if result > 0 {
                batch.removeFirstGroups(result)
                continue
            }
            switch Int32(-result) {
            case EAGAIN, ENOBUFS:
                if let registration { loop?.modify(registration, [.readable, .writable]) }
                return .blocked
            // The driver cannot checksum or cut such a group: never again on this socket.
            case EIO, EINVAL, EMSGSIZE:
                if batch.groups[0].segments > 1 { segments = false } else { batch.removeFirstGroups(1) }
            default: batch.removeFirstGroups(1)
            }
        }
        batch.removeAll()
        return .done
    }

    private func prepare(_ batch: DatagramBatch) -> Int {
        var index = 0
        for group in batch.groups.prefix(IOLimits.sendMessages) {
            guard segments || group.segments == 1 else { break }
            var local = group.local.map { clinux_address($0) } ?? .none
            if group.local?.ip.isUnspecified == true { local = .none }
            var remote = clinux_address(group.remote)
            clinux_sender_set(
                sender, UInt32(index), batch.bytes(of: group), group.count, group.segments > 1 ? group.segment : 0,
                &local, &remote, group.ecn)
            index += 1
        }
        return index
    }
}

extension UDPSocket: ReadinessHandler {
    /// Passes readiness on.
    package func ready(_ readiness: Readiness) {
        if readiness.contains(.writable) {
            if let registration { loop?.modify(registration, .readable) }
            handler?.socketWritable()
        }
        if !readiness.isDisjoint(with: [.readable, .failed]) { handler?.socketReadable() }
    }
}
