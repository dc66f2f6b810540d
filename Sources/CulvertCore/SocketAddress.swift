import Glibc

/// An IPv4 or IPv6 address, without scope or port.
public enum IPAddress: Hashable, Sendable {
    /// The 32-bit address in host order: 127.0.0.1 is `0x7f00_0001`.
    case v4(UInt32)
    /// The 128-bit address in host order, as its upper and lower halves: ::1 is `(0, 1)`.
    case v6(UInt64, UInt64)

    /// 127.0.0.1
    public static let loopbackV4 = IPAddress.v4(0x7f00_0001)
    /// ::1
    public static let loopbackV6 = IPAddress.v6(0, 1)
    /// 0.0.0.0
    public static let anyV4 = IPAddress.v4(0)
    /// ::
    public static let anyV6 = IPAddress.v6(0, 0)

    /// Parses the textual forms of RFC 791 dotted quads and RFC 4291 section 2.2; no brackets, no zone.
    public init?(_ text: String) {
        // C would end the text at a NUL and see another address than we do.
        guard !text.utf8.contains(0) else { return nil }
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self = .v4(UInt32(bigEndian: four.s_addr))
            return
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        self = withUnsafeBytes(of: &six) { bytes in
            .v6(
                UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
        }
    }

    /// The address that a v4-mapped IPv6 address (RFC 4291 section 2.5.5.2) stands for, otherwise itself.
    public var unmapped: IPAddress {
        if case .v6(0, let low) = self, low >> 32 == 0xffff { return .v4(UInt32(truncatingIfNeeded: low)) }
        return self
    }

    /// Whether it is an IPv6 address; v4-mapped ones are.
    public var isIPv6: Bool {
        if case .v6 = self { true } else { false }
    }

    /// Whether packets to the address stay on this machine: 127.0.0.0/8 and ::1.
    public var isLoopback: Bool {
        switch unmapped {
        case .v4(let bits): bits >> 24 == 127
        case .v6(let high, let low): high == 0 && low == 1
        }
    }

    /// Whether the address stands for "any": 0.0.0.0 and ::.
    public var isUnspecified: Bool {
        switch unmapped {
        case .v4(let bits): bits == 0
        case .v6(let high, let low): high == 0 && low == 0
        }
    }

    /// 169.254.0.0/16 (RFC 3927) and fe80::/10 (RFC 4291).
    public var isLinkLocal: Bool {
        switch unmapped {
        case .v4(let bits): bits >> 16 == 0xa9fe
        case .v6(let high, _): high >> 54 == 0x3fa
        }
    }

    /// 224.0.0.0/4 and ff00::/8.
    public var isMulticast: Bool {
        switch unmapped {
        case .v4(let bits): bits >> 28 == 0xe
        case .v6(let high, _): high >> 56 == 0xff
        }
    }

    /// RFC 1918, RFC 6598 (carrier-grade NAT) and RFC 4193 (unique local) ranges.
    public var isPrivate: Bool {
        switch unmapped {
        case .v4(let bits):
            bits >> 24 == 10 || bits >> 20 == 0xac1 || bits >> 16 == 0xc0a8 || bits >> 22 == 0x191
        case .v6(let high, _): high >> 57 == 0x7e
        }
    }

    /// The address in network byte order: 4 or 16 bytes.
    public var bytes: [UInt8] {
        switch self {
        case .v4(let bits): withUnsafeBytes(of: bits.bigEndian, Array.init)
        case .v6(let high, let low):
            withUnsafeBytes(of: high.bigEndian, Array.init) + withUnsafeBytes(of: low.bigEndian, Array.init)
        }
    }

    /// The address of 4 or 16 bytes in network byte order; nil for any other count.
    public init?(bytes: some Collection<UInt8>) {
        func integer(_ part: some Collection<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
        switch bytes.count {
        case 4: self = .v4(UInt32(truncatingIfNeeded: integer(bytes)))
        case 16: self = .v6(integer(bytes.prefix(8)), integer(bytes.dropFirst(8)))
        default: return nil
        }
    }
}

extension IPAddress: CustomStringConvertible {
    /// The canonical text (RFC 5952 for IPv6), without brackets.
    public var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family: Int32
        switch self {
        case .v4: family = AF_INET
        case .v6: family = AF_INET6
        }
        _ = bytes.withUnsafeBytes { inet_ntop(family, $0.baseAddress, &text, socklen_t(text.count)) }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

extension IPAddress: Comparable {
    /// IPv4 before IPv6, then by value: the order in which tickets list addresses.
    public static func < (left: IPAddress, right: IPAddress) -> Bool {
        switch (left, right) {
        case (.v4(let a), .v4(let b)): a < b
        case (.v4, .v6): true
        case (.v6, .v4): false
        case (.v6(let ah, let al), .v6(let bh, let bl)): (ah, al) < (bh, bl)
        }
    }
}

/// An IP address and a port (host order): where a UDP or TCP socket is.
public struct SocketAddress: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The address.
    public var ip: IPAddress
    /// The port in host order; 0 asks the kernel to choose one when binding.
    public var port: UInt16

    /// The address `ip` with `port`.
    public init(_ ip: IPAddress, port: UInt16) {
        self.ip = ip
        self.port = port
    }

    /// Parses `1.2.3.4:80` or `[2001:db8::1]:80`.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let host = text[..<colon]
        let digits = text[text.index(after: colon)...]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits) else {
            return nil
        }
        let bare: Substring
        if host.hasPrefix("["), host.hasSuffix("]") {
            bare = host.dropFirst().dropLast()
            guard bare.contains(":") else { return nil }
        } else {
            bare = host
            guard !bare.contains(":") else { return nil }
        }
        guard let ip = IPAddress(String(bare)) else { return nil }
        self.init(ip, port: port)
    }

    /// `1.2.3.4:80` or `[2001:db8::1]:80`.
    public var description: String {
        switch ip {
        case .v4: "\(ip):\(port)"
        case .v6: "[\(ip)]:\(port)"
        }
    }

    /// By address, then by port.
    public static func < (left: SocketAddress, right: SocketAddress) -> Bool {
        (left.ip, left.port) < (right.ip, right.port)
    }
}
