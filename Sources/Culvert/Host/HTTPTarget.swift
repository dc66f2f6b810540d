import CulvertCore
import CulvertIO

/// The HTTP server that a host shares.
public enum HTTPTarget: Hashable, Sendable, CustomStringConvertible {
    /// A host name or address, and a port.
    case tcp(host: String, port: UInt16)
    /// A Unix socket's path.
    case unix(path: String)

    /// Reads `http://HOST[:PORT]`, with an optional `/` at the end, or `unix:/PATH`. Throws `framing` for anything
    /// else, such as `https://`, user information or a path.
    public init(_ text: String) throws(TransportError) {
        if let path = text.dropping(prefix: "unix:") {
            // sun_path holds 108 bytes with its NUL (unix(7)).
            guard path.hasPrefix("/"), path.utf8.count <= 107, !path.utf8.contains(0) else {
                throw TransportError(.framing, "the target's socket needs an absolute path of at most 107 bytes")
            }
            self = .unix(path: path)
            return
        }
        guard var authority = text.dropping(prefix: "http://") else {
            throw TransportError(.framing, "the target must be http://HOST:PORT or unix:/PATH")
        }
        if authority.hasSuffix("/") { authority.removeLast() }
        var host = authority
        var port: UInt16 = 80
        let afterAddress = authority.lastIndex(of: "]").map { authority.index(after: $0) } ?? authority.startIndex
        if let colon = authority[afterAddress...].lastIndex(of: ":") {
            host = String(authority[..<colon])
            guard let number = UInt16(authority[authority.index(after: colon)...]), number > 0 else {
                throw TransportError(.framing, "the target's port must be a number from 1 to 65535")
            }
            port = number
        }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = String(host.dropFirst().dropLast()) }
        // RFC 3986 section 3.2.2: brackets are for IPv6 addresses, which without them cannot be told from a port.
        let isAddress = IPAddress(host)?.isIPv6 == isBracketed
        let isName =
            !isBracketed && !host.isEmpty && host.utf8.count <= 253 && host.utf8.allSatisfy(Self.isNameCharacter)
        guard isAddress || isName else {
            throw TransportError(.framing, "the target must be http://HOST:PORT, with nothing after the port")
        }
        self = .tcp(host: host, port: port)
    }

    /// The text that ``init(_:)`` reads.
    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "http://[\(host)]:\(port)" : "http://\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    private static func isNameCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: false
        }
    }
}

extension String {
    fileprivate func dropping(prefix: String) -> String? {
        hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
    }
}
