import CLinux
import CulvertCore

/// One address of a network interface.
package struct InterfaceAddress: Hashable, Sendable {
    /// The address.
    package var ip: IPAddress
    /// The interface's name, such as `eth0`.
    package var name: String
    /// Whether the interface is switched on.
    package var isUp: Bool
    /// Whether it is the loopback interface.
    package var isLoopback: Bool
}

/// The addresses of this machine.
package enum Interfaces {
    /// All IPv4 and IPv6 addresses, in the kernel's order; empty when the kernel does not tell.
    package static func addresses() -> [InterfaceAddress] {
        var found: [InterfaceAddress] = []
        withUnsafeMutablePointer(to: &found) { list in
            _ = clinux_interfaces(list) { context, name, isUp, isLoopback, address in
                guard let context, let name, let ip = address?.pointee.socketAddress?.ip else { return }
                context.assumingMemoryBound(to: [InterfaceAddress].self).pointee.append(
                    InterfaceAddress(ip: ip, name: String(cString: name), isUp: isUp, isLoopback: isLoopback))
            }
        }
        return found
    }

    /// The address from which packets to `remote` would leave; nil without a route. Nothing is sent.
    package static func localAddress(toward remote: SocketAddress) -> IPAddress? {
        var raw = clinux_address(remote)
        let socket = FileDescriptor(owning: clinux_udp_socket(raw.family == 6))
        // Port 0 cannot be connected to; the route does not depend on it.
        if raw.port == 0 { raw.port = 9 }
        guard socket.isOpen, clinux_connect(socket.number, &raw) == 0,
            clinux_local_address(socket.number, &raw) == 0
        else { return nil }
        return raw.socketAddress?.ip
    }
}
