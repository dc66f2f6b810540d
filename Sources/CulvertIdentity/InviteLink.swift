import CulvertCore

/// The link around an invite's envelope: `culvert://connect?v=4&invite=…`, or `oppi://` with the same.
enum InviteLink {
    private static let schemes = ["culvert", "oppi"]
    private static let host = "connect"
    private static let version = "4"

    /// The link that carries `envelope`.
    static func text(envelope: [UInt8]) -> String {
        "\(schemes[0])://\(host)?v=\(version)&invite=\(Base64URL.encode(envelope))"
    }

    /// The envelope's bytes. White space around the link is dropped, for people who paste; scheme and host may be in
    /// any case (RFC 3986 section 6.2.2.1); further query items are ignored.
    static func envelope(_ text: String) throws(TransportError) -> [UInt8] {
        guard text.utf8.count <= Limits.linkBytes else {
            throw fault("the invite link is longer than any invite; copy the link only")
        }
        let query = try query(text)
        let invite = try onlyItem("invite", in: query)
        let version = try onlyItem("v", in: query)
        guard version == Self.version else {
            throw fault("the invite is of another version than 4; update Culvert on both sides")
        }
        guard let envelope = Base64URL.decode(invite), envelope.count <= Limits.envelopeBytes else {
            throw fault("the invite link is damaged; copy it again, whole")
        }
        return envelope
    }

    private static func query(_ text: String) throws(TransportError) -> Substring {
        let link = text.drop(while: \.isWhitespace)
        let end = link.lastIndex { !$0.isWhitespace }.map { link.index(after: $0) } ?? link.startIndex
        let parts = link[..<end].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let address = parts[0].lowercased()
        guard parts.count == 2,
            schemes.contains(where: { address == "\($0)://\(host)" || address == "\($0)://\(host)/" })
        else {
            throw fault("this is not an invite link; one begins with culvert://connect?v=4&invite=")
        }
        return parts[1]
    }

    /// The value of the item `name`, which must be there exactly once: two readers could otherwise pick two invites.
    private static func onlyItem(_ name: String, in query: Substring) throws(TransportError) -> Substring {
        let values = query.split(separator: "&").compactMap { item -> Substring? in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return parts.count == 2 && parts[0] == name ? parts[1] : nil
        }
        guard values.count == 1 else {
            throw fault("the invite link is incomplete; put it in quotes on a command line and copy it whole")
        }
        return values[0]
    }

    private static func fault(_ reason: StaticString) -> TransportError {
        TransportError(.metadata(.envelope), reason)
    }
}
