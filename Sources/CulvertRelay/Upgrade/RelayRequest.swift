/// A request to a relay's HTTP server: a path, a query, fields and never a body.
package struct RelayRequest: Hashable, Sendable {
    /// The method, as sent.
    package let method: String
    /// The path, as sent.
    package let path: String
    /// What follows the question mark, as sent; nil without one.
    package let query: String?
    /// Whether the client is ready for another request on the same connection (RFC 9112 section 9.3).
    package let keepsAlive: Bool
    /// The whole head.
    package let head: MessageHead

    /// Reads a request out of its head.
    package init(_ head: MessageHead) throws(HeadFault) {
        let parts = head.startLine.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].utf8.allSatisfy(\.isTokenCharacter),
            parts[1].utf8.first == UInt8(ascii: "/"), !parts[1].contains("#"), !parts[1].contains("\t")
        else { throw .startLine }
        let isOld = parts[2] == "HTTP/1.0"
        guard isOld || parts[2] == "HTTP/1.1" else { throw parts[2].hasPrefix("HTTP/") ? .version : .startLine }
        guard head.values("host").count == 1 || (isOld && head.values("host").isEmpty) else { throw .host }
        guard head.values("transfer-encoding").isEmpty, head.values("content-length").allSatisfy({ $0 == "0" }) else {
            throw .body
        }
        self.head = head
        method = String(parts[0])
        let target = parts[1].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(target[0])
        query = target.count > 1 ? String(target[1]) : nil
        let connection = head.list("connection").map { $0.lowercased() }
        keepsAlive = !isOld && !connection.contains("close")
    }

    /// The token in `Authorization: Bearer`, otherwise the one in the query parameter `token`; nil when there is
    /// none, or not exactly one field, or it is malformed.
    package var accessToken: RelayAccessToken? {
        let fields = head.values("authorization")
        guard fields.isEmpty else {
            guard fields.count == 1, fields[0].lowercased().hasPrefix("bearer ") else { return nil }
            return RelayAccessToken(fields[0].dropFirst("bearer ".count).trimmingSpace)
        }
        return parameter("token").flatMap { RelayAccessToken($0) }
    }

    /// The decoded value of the only query parameter called `name`.
    private func parameter(_ name: String) -> String? {
        let pairs = (query ?? "").split(separator: "&").map {
            $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        }
        let values = pairs.filter { $0[0] == name }
        guard values.count == 1, values[0].count == 2 else { return nil }
        return PercentText.decode(values[0][1]).flatMap { String(validating: $0, as: UTF8.self) }
    }
}
