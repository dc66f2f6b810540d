import CulvertCore

/// The hosts that are reached without a proxy, as `no_proxy` lists them between commas or spaces:
///
/// - `*`, every host;
/// - `example.com` or `.example.com`, that host and every host under it;
/// - `192.0.2.7`, `2001:db8::7` or `[2001:db8::7]`, that address;
/// - `192.0.2.0/24` or `2001:db8::/32`, the addresses whose first bits are the same.
///
/// A host name or an address may be followed by `:PORT` and then means that port only; an IPv6 address needs brackets
/// for it. Anything else is ignored, as other programs do. Names are not looked up to be compared with addresses.
struct ProxyExceptions: Sendable {
    private enum Pattern {
        case everything
        case domain(String)
        case network([UInt8], bits: Int)
    }

    private var entries: [(pattern: Pattern, port: UInt16?)] = []

    init(_ list: String) {
        for entry in list.split(whereSeparator: { ", \t".contains($0) }) {
            if let entry = Self.parse(entry.lowercased()) { entries.append(entry) }
        }
    }

    /// Whether `host`, a lower-case name or an address without brackets, is among them.
    func contain(host: String, port: UInt16) -> Bool {
        let address = IPAddress(host)?.bytes
        let name = Self.withoutFinalDot(host)
        return entries.contains { entry in
            guard entry.port == nil || entry.port == port else { return false }
            return switch entry.pattern {
            case .everything: true
            case .domain(let domain): address == nil && (name == domain || name.hasSuffix(".\(domain)"))
            case .network(let prefix, let bits): address.map { Self.sharesBits($0, prefix, bits) } ?? false
            }
        }
    }

    private static func parse(_ entry: String) -> (Pattern, UInt16?)? {
        if entry == "*" { return (.everything, nil) }
        if let network = network(entry) { return (network, nil) }
        guard let colon = entry.lastIndex(of: ":") else { return domain(entry).map { ($0, nil) } }
        let digits = entry[entry.index(after: colon)...]
        guard let port = UInt16(digits), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let host = String(entry[..<colon])
        // Without brackets an IPv6 address was found above, or there is none.
        guard !host.contains(":") || host.hasPrefix("[") else { return nil }
        return (network(host) ?? domain(host)).map { ($0, port) }
    }

    /// An address or a range of them.
    private static func network(_ text: String) -> Pattern? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = address(parts[0]) else { return nil }
        let width = address.bytes.count * 8
        guard parts.count == 2 else { return .network(address.bytes, bits: width) }
        guard let bits = UInt8(parts[1]), parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), bits <= width else {
            return nil
        }
        return .network(address.bytes, bits: Int(bits))
    }

    private static func address(_ text: Substring) -> IPAddress? {
        guard text.hasPrefix("["), text.hasSuffix("]") else { return IPAddress(String(text)) }
        guard let address = IPAddress(String(text.dropFirst().dropLast())), address.isIPv6 else { return nil }
        return address
    }

    private static func domain(_ text: String) -> Pattern? {
        let name = withoutFinalDot(text.hasPrefix(".") ? String(text.dropFirst()) : text)
        // Nothing left would be under every name.
        return name.isEmpty ? nil : .domain(name)
    }

    private static func withoutFinalDot(_ name: String) -> String {
        name.hasSuffix(".") ? String(name.dropLast()) : name
    }

    private static func sharesBits(_ one: [UInt8], _ other: [UInt8], _ bits: Int) -> Bool {
        guard one.count == other.count else { return false }
        let (whole, rest) = bits.quotientAndRemainder(dividingBy: 8)
        guard one.prefix(whole) == other.prefix(whole) else { return false }
        return rest == 0 || (one[whole] ^ other[whole]) >> (8 - rest) == 0
    }
}
