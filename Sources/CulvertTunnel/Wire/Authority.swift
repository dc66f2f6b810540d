import CulvertCore

/// A host and an optional port, as the Host field and request targets name them (RFC 3986 section 3.2 without user
/// information, which RFC 9110 section 4.2.4 tells us to refuse).
package struct Authority: Hashable, Sendable {
    /// The host.
    package enum Host: Hashable, Sendable {
        /// A literal address.
        case address(IPAddress)
        /// A registered name in lower case; may be empty.
        case name(String)
    }

    /// The host.
    package let host: Host
    /// The port, when there is one.
    package let port: UInt16?

    /// Parses `name`, `1.2.3.4` or `[::1]`, with or without `:port`; nil for anything else.
    package init?(_ bytes: some Collection<UInt8>) {
        var name: [UInt8]
        var rest: [UInt8]
        if bytes.first == UInt8(ascii: "[") {
            guard let end = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            name = Array(bytes[..<end].dropFirst())
            rest = Array(bytes[end...].dropFirst())
            guard name.contains(UInt8(ascii: ":")), name.allSatisfy(Self.isAddressCharacter),
                let address = IPAddress(String(decoding: name, as: UTF8.self))
            else { return nil }
            host = .address(address)
        } else {
            let end = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
            name = Array(bytes[..<end])
            rest = Array(bytes[end...])
            guard name.allSatisfy(Self.isNameCharacter) else { return nil }
            let text = String(decoding: name, as: UTF8.self)
            host = IPAddress(text).map(Host.address) ?? .name(text.lowercased())
        }
        guard let colon = rest.first else {
            port = nil
            return
        }
        rest.removeFirst()
        guard colon == UInt8(ascii: ":"), rest.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        if rest.isEmpty {
            port = nil  // RFC 3986 section 6.2.3: an empty port means none.
        } else {
            guard let number = UInt16(String(decoding: rest, as: UTF8.self)) else { return nil }
            port = number
        }
    }

    /// Whether the authority can only mean this machine: `localhost` and names under it (RFC 6761 section 6.3),
    /// 127.0.0.0/8 and ::1.
    package var isLoopback: Bool {
        switch host {
        case .address(let address):
            return address.isLoopback
        case .name(let name):
            var labels = name.split(separator: ".", omittingEmptySubsequences: false)
            if labels.last == "", labels.count > 1 { labels.removeLast() }  // "localhost." is the same name
            return labels.last == "localhost" && !labels.contains("")
        }
    }

    private static func isAddressCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66, UInt8(ascii: ":"), UInt8(ascii: "."): true
        default: false
        }
    }

    /// RFC 3986 reg-name: unreserved, percent-encoded, sub-delims.
    private static func isNameCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "-._~%!$&'()*+,;=".utf8.contains(byte)
        }
    }
}
