import CulvertCore
import Glibc

extension SocketAddress {
    /// Reads a `sockaddr`; nil for other families than IPv4 and IPv6.
    package init?(loading pointer: UnsafeRawPointer?) {
        guard let pointer else { return nil }
        switch Int32(pointer.load(as: sockaddr.self).sa_family) {
        case AF_INET:
            let address = pointer.load(as: sockaddr_in.self)
            self.init(.v4(UInt32(bigEndian: address.sin_addr.s_addr)), port: UInt16(bigEndian: address.sin_port))
        case AF_INET6:
            let port = UInt16(bigEndian: pointer.load(as: sockaddr_in6.self).sin6_port)
            let bytes = pointer + (MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr) ?? 8)
            self.init(
                .v6(
                    UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                    UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))),
                port: port)
        default: return nil
        }
    }

    /// Writes a `sockaddr` into memory of at least `sizeof(sockaddr_in6)` bytes; gives its length.
    package func store(in memory: UnsafeMutableRawPointer) -> socklen_t {
        switch ip {
        case .v4(let bits):
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = bits.bigEndian
            memory.storeBytes(of: address, as: sockaddr_in.self)
            return socklen_t(MemoryLayout<sockaddr_in>.size)
        case .v6(let high, let low):
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            memory.storeBytes(of: address, as: sockaddr_in6.self)
            let bytes = memory + (MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr) ?? 8)
            bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
            bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            return socklen_t(MemoryLayout<sockaddr_in6>.size)
        }
    }
}
