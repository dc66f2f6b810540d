import CulvertCore
import Glibc

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

    /// What `host` stands for without asking anybody: a literal address, or a name under `localhost`, which means this
    /// machine (RFC 6761 section 6.3). nil for any other name.
    static func knownAddresses(of host: String) -> [IPAddress]? {
        if let address = IPAddress(host) { return [address] }
        return host.split(separator: ".").last?.lowercased() == "localhost" ? [.loopbackV4, .loopbackV6] : nil
    }

    /// The same as ``addresses(of:)``, on the caller's thread.
    static func lookUp(_ host: String) -> [IPAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        return sequence(first: list, next: { $0?.pointee.ai_next }).prefix { $0 != nil }
            .compactMap { SocketAddress(loading: UnsafeRawPointer($0?.pointee.ai_addr))?.ip }
    }
}
