import CulvertCore

/// The part of the URL grammar that relay and proxy URLs need, read strictly and written as browsers and iroh write it: lower-case
/// scheme and host, no default port, `/` for an empty path.
///
/// It reads less than the WHATWG standard on purpose. What that standard repairs (missing or backward slashes, spaces,
/// percent-encoded hosts, `127.1`, `0x7f.1`) is refused, because two readers that repair differently see two hosts.
package struct URLText {
    /// Whom a URL leads to.
    package enum Host: Equatable {
        /// A name in lower case.
        case name(String)
        /// A literal address.
        case ip(IPAddress)
    }

    /// Lower-case, without the colon.
    package let scheme: String
    /// What stands before the `@`, as written; nil without one. It may hold a password.
    package let userInfo: String?
    /// nil for schemes that are not of the web; the rest of such a URL is kept unread.
    package let host: Host?
    /// The port that was written.
    package let writtenPort: UInt16?
    /// The port that was written and is not the scheme's own.
    let port: UInt16?
    /// Path, query and fragment; at least `/` when there is a host.
    package let tail: String
    /// The normalised text.
    let text: String

    private static let defaultPorts: [String: UInt16] = ["http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21]

    /// Reads `text`; nil when it is malformed or longer than any relay's URL.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count <= Limits.relayURLBytes, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            let colon = text.firstIndex(of: ":")
        else { return nil }
        let scheme = text[..<colon].lowercased()
        guard let first = scheme.utf8.first, (0x61...0x7a).contains(first),
            scheme.utf8.allSatisfy({ $0.isLetterOrDigit || [0x2b, 0x2d, 0x2e].contains($0) })
        else { return nil }
        self.scheme = scheme
        let rest = text[text.index(after: colon)...]

        guard let defaultPort = Self.defaultPorts[scheme] else {
            guard !rest.isEmpty else { return nil }
            userInfo = nil
            host = nil
            writtenPort = nil
            port = nil
            tail = String(rest)
            self.text = "\(scheme):\(rest)"
            return
        }

        guard rest.hasPrefix("//"), !rest.contains("\\") else { return nil }
        let start = rest.dropFirst(2)
        let authority = start.prefix { !"/?#".contains($0) }
        let remainder = start[authority.endIndex...]
        tail = remainder.hasPrefix("/") ? String(remainder) : "/\(remainder)"

        let at = authority.lastIndex(of: "@")
        userInfo = at.map { String(authority[..<$0]) }
        let location = at.map { authority[authority.index(after: $0)...] } ?? authority[...]
        guard let (host, portText) = Self.split(location), let port = Self.port(portText) else { return nil }
        self.host = host
        writtenPort = port
        self.port = port == defaultPort ? nil : port
        let user = userInfo.map { "\($0)@" } ?? ""
        self.text = "\(scheme)://\(user)\(host.text)\(self.port.map { ":\($0)" } ?? "")\(tail)"
    }

    /// Splits `host:port`; the port text is empty when none was written.
    private static func split(_ location: some StringProtocol) -> (Host, String)? {
        if location.hasPrefix("[") {
            guard let end = location.firstIndex(of: "]"),
                case .v6(let high, let low)? = IPAddress(String(location[..<end].dropFirst()))
            else { return nil }
            let after = location[location.index(after: end)...]
            guard after.isEmpty || after.hasPrefix(":") else { return nil }
            return (.ip(.v6(high, low)), String(after.dropFirst()))
        }
        let name = location.prefix { $0 != ":" }
        guard let host = host(String(name)) else { return nil }
        return (host, String(location[name.endIndex...].dropFirst()))
    }

    /// A double optional: the outer one is nil for a malformed port, the inner one when none was written.
    private static func port(_ text: String) -> UInt16?? {
        guard !text.isEmpty else { return .some(nil) }
        guard text.utf8.allSatisfy(\.isDigit), let port = UInt16(text) else { return nil }
        return .some(port)
    }

    private static func host(_ text: String) -> Host? {
        let name = text.lowercased()
        let labels = (name.hasSuffix(".") ? name.dropLast() : name[...]).split(
            separator: ".", omittingEmptySubsequences: false)
        guard name.utf8.count <= 253, let last = labels.last,
            labels.allSatisfy({ (1...63).contains($0.utf8.count) && $0.utf8.allSatisfy(isHostCharacter) })
        else { return nil }
        // A last label that is a number makes the whole an IPv4 address (WHATWG URL section 3.5).
        if last.utf8.allSatisfy(\.isDigit) || last.hasPrefix("0x") {
            return IPAddress(name).map(Host.ip)
        }
        return .name(name)
    }

    private static func isHostCharacter(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || byte == 0x2d || byte == 0x5f
    }
}

extension URLText.Host {
    /// As it stands in a URL.
    var text: String {
        switch self {
        case .name(let name): name
        case .ip(let ip): if case .v6 = ip { "[\(ip)]" } else { "\(ip)" }
        }
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { (0x30...0x39).contains(self) }
    fileprivate var isLetterOrDigit: Bool { isDigit || (0x61...0x7a).contains(self) || (0x41...0x5a).contains(self) }
}
