import CLinux
import CulvertCore
import Glibc

/// Tells which user of this machine is at the other end of a loopback TCP connection.
package enum PeerUser {
    /// The user whose process holds the socket that is bound to `remote` and connected to `local` (our end).
    ///
    /// Nil when there is no such socket in this network namespace, when its process has closed it, or when the kernel
    /// does not tell: callers refuse then.
    package static func userID(ofTCPPeerAt remote: SocketAddress, local: SocketAddress) -> uid_t? {
        var source = clinux_address(remote.unmapped)
        var destination = clinux_address(local.unmapped)
        var user = uid_t()
        switch clinux_tcp_user(&source, &destination, &user) {
        case 0: return user
        case -ENOENT: return nil
        // Kernels without the module tcp_diag, and sandboxes without netlink.
        default: return SocketTable.userID(source: remote.unmapped, destination: local.unmapped)
        }
    }
}

/// The kernel's list of TCP sockets as text, which is slow but always there.
enum SocketTable {
    static func userID(source: SocketAddress, destination: SocketAddress) -> uid_t? {
        // An IPv4 connection may be made by an IPv6 socket, which is in the other list.
        for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
            guard let bytes = try? StateFile.contents(path, maxBytes: IOLimits.socketTableBytes) else { continue }
            let text = String(decoding: bytes, as: UTF8.self)
            if let user = userID(in: text, source: source, destination: destination) { return user }
        }
        return nil
    }

    /// Reads lines such as `0: 0100007F:1F90 0100007F:C350 01 … uid timeout inode …`.
    static func userID(in table: String, source: SocketAddress, destination: SocketAddress) -> uid_t? {
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: " ")
            guard fields.count > 9, address(fields[1]) == source, address(fields[2]) == destination else { continue }
            // Inode 0: closed by its process, and listed under user 0 then.
            guard let user = uid_t(fields[7]), fields[9] != "0" else { return nil }
            return user
        }
        return nil
    }

    /// The kernel prints each 32-bit word of an address as it lies in memory, in the machine's byte order.
    private static func address(_ field: Substring) -> SocketAddress? {
        let parts = field.split(separator: ":")
        guard parts.count == 2, let port = UInt16(parts[1], radix: 16) else { return nil }
        var bytes: [UInt8] = []
        var rest = parts[0]
        while !rest.isEmpty {
            guard let word = UInt32(rest.prefix(8), radix: 16) else { return nil }
            withUnsafeBytes(of: word) { bytes.append(contentsOf: $0) }
            rest = rest.dropFirst(8)
        }
        return IPAddress(bytes: bytes).map { SocketAddress($0.unmapped, port: port) }
    }
}

extension SocketAddress {
    /// The address with a v4-mapped IPv6 address as IPv4.
    var unmapped: SocketAddress { SocketAddress(ip.unmapped, port: port) }
}
