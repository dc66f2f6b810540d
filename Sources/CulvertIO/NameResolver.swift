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
