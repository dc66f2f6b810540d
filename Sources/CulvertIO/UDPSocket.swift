import CLinux
import CulvertCore
import Glibc

/// Hears about the readiness of a ``UDPSocket``. Confined to the loop.
package protocol UDPSocketHandler: AnyObject {
    /// Datagrams wait; called in every iteration until they are received.
    func socketReadable()
    /// A blocked socket takes datagrams again.
    func socketWritable()
}

/// An unconnected UDP socket for many peers: receives with GRO, sends with GSO, and tells and sets the local address
/// and ECN mark (RFC 3168) of each datagram.
///
/// Confined to one loop once attached. Link-local IPv6 peers are out of reach: addresses carry no scope.
package final class UDPSocket {
    private var descriptor: FileDescriptor
    private var receiver: ReceiveBuffers
    private var sender: UDPSender
    /// The bound address; unspecified addresses stay so, the port is the real one.
    package let localAddress: SocketAddress
    private var loop: EventLoop?
    private var registration: Registration?
    private weak var handler: (any UDPSocketHandler)?
    private var isBlocked = false

    private struct ReceiveBuffers: ~Copyable {
        let raw: OpaquePointer

        init?() {
            guard let raw = clinux_receiver_create(UInt32(IOLimits.messagesPerReceive), IOLimits.receiveBytes) else {
                return nil
            }
            self.raw = raw
        }

        deinit {
            clinux_receiver_destroy(raw)
        }
    }

    /// Opens a socket at `address`.
    ///
    /// `[::]` takes IPv4 too (v4-mapped addresses are reported as IPv4); on a machine without IPv6 it becomes
    /// `0.0.0.0`. Throws `.localListener` when the address cannot be had, `.limit` when the process is out of
    /// descriptors or memory.
    package static func bind(_ address: SocketAddress) throws(TransportError) -> UDPSocket {
        if address.ip == .anyV6 {
            do {
                return try UDPSocket(bindingTo: address)
            } catch BindFailure.noSuchFamily, BindFailure.noSuchAddress {
                return try bind(SocketAddress(.anyV4, port: address.port))
            } catch {
                throw error.transportError
            }
        }
        do {
            return try UDPSocket(bindingTo: address)
        } catch {
            throw error.transportError
        }
    }

    private init(bindingTo address: SocketAddress) throws(BindFailure) {
        var raw = clinux_address(address)
        let isIPv6 = raw.family == 6
        descriptor = FileDescriptor(owning: clinux_udp_socket(isIPv6))
        guard descriptor.isOpen else { throw BindFailure(descriptor.number) }
        let fd = descriptor.number
        guard let receiver = ReceiveBuffers(),
            let sender = UDPSender(isIPv6: isIPv6, isSegmenting: clinux_udp_can_segment(fd))
        else { throw .exhausted }
        self.receiver = receiver
        self.sender = sender
        // Explicit, as the system's default may have been changed.
        if isIPv6 { _ = clinux_set_v6_only(fd, address.ip != .anyV6) }
        for result in [
            clinux_udp_setup(fd, isIPv6, Int32(IOLimits.socketBufferBytes)), clinux_bind(fd, &raw),
            clinux_local_address(fd, &raw),
        ] where result < 0 { throw BindFailure(result) }
        guard let bound = raw.socketAddress else { throw .refused }
        localAddress = bound
    }

    // MARK: Loop

    /// Starts reporting to `handler`, which is held weakly. The loop keeps the socket until ``close()``.
    /// Throws as ``EventLoop/register(_:mode:interest:handler:)`` does.
    package func attach(to loop: EventLoop, handler: any UDPSocketHandler) throws(TransportError) {
        registration = try loop.register(descriptor.number, mode: .level, interest: .readable, handler: self)
        self.loop = loop
        self.handler = handler
    }

    /// Ends reporting and closes the socket; a second call does nothing.
    package func close() {
        if let registration { loop?.deregister(registration) }
        registration = nil
        loop = nil
        descriptor.close()
    }

    // MARK: Datagrams

    /// Receives until nothing waits or at least `budget` datagrams came; how many came.
    ///
    /// Calls `body` for each datagram, in order: its bytes (void after the call, may be changed in place), the local
    /// address it was sent to, its sender and its ECN codepoint. `body` must not call this method.
    @discardableResult
    package func receive(
        budget: Int,
        _ body: (
            _ datagram: UnsafeMutableRawBufferPointer, _ local: SocketAddress, _ remote: SocketAddress, _ ecn: UInt8
        ) -> Void
    ) -> Int {
        var received = 0
        var failures = 0
        while descriptor.isOpen, received < budget, failures < IOLimits.receiveFailuresPerTurn {
            let messages = clinux_receiver_receive(receiver.raw, descriptor.number)
            if messages == -EAGAIN { break }
            if messages < 0 {
                // An ICMP error for an earlier datagram, reported once; datagrams may wait behind it.
                failures += 1
                continue
            }
            for index in 0..<UInt32(messages) { received += deliver(index, body) }
            if messages < IOLimits.messagesPerReceive { break }
        }
        return received
    }

    private func deliver(
        _ index: UInt32,
        _ body: (UnsafeMutableRawBufferPointer, SocketAddress, SocketAddress, UInt8) -> Void
    ) -> Int {
        var message = clinux_received()
        guard clinux_receiver_message(receiver.raw, index, &message), message.count > 0,
            let remote = message.remote.socketAddress
        else { return 0 }
        message.local.port = localAddress.port
        let local = message.local.socketAddress ?? localAddress
        let bytes = UnsafeMutableRawBufferPointer(start: message.bytes, count: message.count)
        var offset = 0
        var count = 0
        while offset < bytes.count {
            let end = min(offset + message.segment, bytes.count)
            body(UnsafeMutableRawBufferPointer(rebasing: bytes[offset..<end]), local, remote, message.ecn)
            offset = end
            count += 1
        }
        return count
    }

    /// Sends the datagrams of `batch` in order and removes what the kernel took.
    ///
    /// Datagrams that cannot be sent (too large for the route, no route) are dropped: to QUIC that is loss. When the
    /// kernel or the device refuses segmentation, the datagrams go one by one from then on.
    package func send(_ batch: DatagramBatch) -> SendOutcome {
        guard descriptor.isOpen else {
            batch.removeAll()
            return .done
        }
        let outcome = sender.send(batch, on: descriptor.number)
        if outcome == .blocked, !isBlocked, let registration {
            isBlocked = true
            loop?.modify(registration, interest: [.readable, .writable])
        }
        return outcome
    }

    /// Whether the kernel cuts groups of datagrams; false once it refused. Setting it to false is for machines whose
    /// devices misbehave, and for tests.
    package var isSegmenting: Bool {
        get { sender.isSegmenting }
        set { sender.isSegmenting = newValue }
    }

    /// The number for tests that set socket options.
    var descriptorNumber: Int32 { descriptor.number }
}

extension UDPSocket: ReadinessHandler {
    /// Called by the loop.
    package func ready(_ events: Readiness) {
        if isBlocked, events.contains(.writable), let registration {
            isBlocked = false
            loop?.modify(registration, interest: .readable)
            handler?.socketWritable()
        }
        // A pending error makes the socket readable too: receiving takes it away.
        if events.contains(.readable) || events.contains(.error) { handler?.socketReadable() }
    }
}
