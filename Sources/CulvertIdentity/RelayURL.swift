import CulvertCore

/// Where a relay is: an HTTPS root URL with a public host, in canonical text.
///
/// An invite may name relays, so a URL must not point a client's requests at its own machine or its local network.
public struct RelayURL: Hashable, Sendable, CustomStringConvertible {
    /// The canonical text, such as `https://relay.example.com/`.
    public let text: String
    /// The host as in the URL, without brackets around an IPv6 address.
    public let host: String
    /// The TCP port, the scheme's own when none is written.
    public let port: UInt16
    /// Whether the scheme is `https`.
    public let isSecure: Bool

    /// The relay at `text`.
    ///
    /// - Parameter allowInsecure: the developer switch: also accepts `http://` and loopback hosts. Other local
    ///   addresses stay refused.
    /// - Throws: `.metadata(.relayURL)`.
    public init(_ text: String, allowInsecure: Bool) throws(TransportError) {
        guard let url = URLText(text) else { throw Self.fault("a relay URL is malformed") }
        guard url.scheme == "https" || url.scheme == "http", let host = url.host else {
            throw Self.fault("a relay URL must begin with https://")
        }
        guard url.scheme == "https" || allowInsecure else {
            throw Self.fault(
                "a relay URL begins with http://; use https://, or --allow-insecure-relay for development")
        }
        guard url.userInfo == nil else { throw Self.fault("a relay URL must not contain a user name or password") }
        guard url.tail == "/" else {
            throw Self.fault("a relay URL must end after the host and port; no path, query or fragment is allowed")
        }
        guard url.port != 0 else { throw Self.fault("a relay URL has port 0, which cannot be connected to") }
        switch Self.scope(host) {
        case .global: break
        case .loopback where allowInsecure: break
        case .loopback:
            throw Self.fault(
                "a relay URL points to this machine itself; use --allow-insecure-relay for development")
        case .local:
            throw Self.fault("a relay URL points to a private, local or multicast address; a relay must be public")
        }
        self.text = url.text
        switch host {
        case .name(let name): self.host = name
        case .ip(let ip): self.host = ip.description
        }
        isSecure = url.scheme == "https"
        port = url.port ?? (isSecure ? 443 : 80)
    }

    /// Reads a list as signed metadata carries it: each URL canonical, duplicates folded, at most eight, in the order
    /// of their first appearance.
    static func list(_ texts: some Sequence<String>, allowInsecure: Bool) throws(TransportError) -> [RelayURL] {
        var relays: [RelayURL] = []
        for text in texts {
            let relay = try RelayURL(text, allowInsecure: allowInsecure)
            guard !relays.contains(relay) else { continue }
            guard relays.count < Limits.relayURLs else { throw fault("there are more than 8 relay URLs") }
            relays.append(relay)
        }
        return relays
    }

    /// The canonical text.
    public var description: String { text }

    private enum Scope {
        case global
        case loopback
        case local
    }

    private static func scope(_ host: URLText.Host) -> Scope {
        switch host {
        case .name(let name):
            // RFC 6761 section 6.3: resolvers answer these with a loopback address.
            let labels = name.split(separator: ".")
            return labels.last == "localhost" ? .loopback : .global
        case .ip(.v4(let bits)):
            let ip = IPAddress.v4(bits)
            if ip.isLoopback { return .loopback }
            // 0.0.0.0/8 reaches this machine on Linux, 240.0.0.0/4 is reserved and holds the broadcast address.
            let isReserved = bits >> 24 == 0 || bits >> 28 == 0xf
            return isReserved || ip.isPrivate || ip.isLinkLocal || ip.isMulticast ? .local : .global
        case .ip(.v6(let high, let low)):
            if high == 0, low == 1 { return .loopback }
            // Global unicast is 2000::/3. 2002::/16 (6to4) and 2001::/32 (Teredo) wrap an IPv4 address, and so do the
            // mapped and translated forms outside 2000::/3: none may smuggle a private address through.
            let isGlobal = high >> 61 == 1 && high >> 48 != 0x2002 && high >> 32 != 0x2001_0000
            return isGlobal ? .global : .local
        }
    }

    private static func fault(_ reason: StaticString) -> TransportError {
        TransportError(.metadata(.relayURL), reason)
    }
}
