import CLinux
import CulvertCore
import Glibc

/// The system's clocks.
package enum SystemClock {
    /// The monotonic clock. It stands still while the machine sleeps.
    package static func monotonic() -> Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    /// The wall clock.
    package static func wall() -> UnixTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UnixTime(seconds: Int64(time.tv_sec))
    }
}

/// The system's random source.
package enum SystemRandom {
    /// Fills the buffer with unpredictable bytes.
    package static func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        clinux_random(bytes.baseAddress, bytes.count)
    }
}

/// One address of one interface of this machine.
package struct InterfaceAddress: Hashable, Sendable {
    /// The address.
    package let ip: IPAddress
    /// The interface's name.
    package let name: String
    /// Whether the interface is up.
    package let isUp: Bool
    /// Whether it is the loopback interface.
    package let isLoopback: Bool
}

/// What the machine knows of its own addresses.
package enum Interfaces {
    /// The addresses of all interfaces.
    package static func addresses() -> [InterfaceAddress] {
        var found: [InterfaceAddress] = []
        withUnsafeMutablePointer(to: &found) { list in
            _ = clinux_interfaces(list) { list, name, isUp, isLoopback, address in
                guard let list, let name, let address, let socket = SocketAddress(address.pointee) else { return }
                list.assumingMemoryBound(to: [InterfaceAddress].self).pointee.append(
                    InterfaceAddress(
                        ip: socket.ip, name: String(cString: name), isUp: isUp, isLoopback: isLoopback))
            }
        }
        return found
    }

    /// The address that packets to `remote` would come from; nil when there is no route.
    package static func localAddress(toward remote: SocketAddress) -> IPAddress? {
        let fd = FileDescriptor(clinux_udp_socket(remote.ip.isIPv6))
        guard fd.number >= 0 else { return nil }
        var target = clinux_address(remote)
        var local = clinux_address()
        guard clinux_connect(fd.number, &target) == 0, clinux_local_address(fd.number, &local) == 0 else { return nil }
        return SocketAddress(local)?.ip
    }
}

/// Looks host names up.
package enum NameResolver {
    /// The addresses of `host` in the system's order of preference; empty when there are none. The look-up blocks a
    /// thread of its own.
    package static func addresses(of host: String) async -> [IPAddress] {
        await withCheckedContinuation { continuation in
            let isStarted = Thread.detach { continuation.resume(returning: lookUp(host)) }
            if !isStarted { continuation.resume(returning: []) }
        }
    }

    private static func lookUp(_ host: String) -> [IPAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        return sequence(first: list, next: { $0?.pointee.ai_next }).prefix { $0 != nil }
            .compactMap { SocketAddress(loading: UnsafeRawPointer($0?.pointee.ai_addr))?.ip }
    }
}
