import CulvertCore
import CulvertIdentity

/// The client's side of the WebSocket upgrade (RFC 6455 section 4.1).
package struct ClientUpgrade: Sendable {
    /// The request, complete.
    package let request: [UInt8]
    private let key: String

    /// A request to `relay`. `nonce` are 16 random bytes; nil when there are not 16.
    package init?(relay: RelayURL, nonce: [UInt8], token: RelayAccessToken? = nil, proof: RelayTLSProof? = nil) {
        guard nonce.count == WebSocketAccept.nonceCount else { return nil }
        key = Base64.encode(nonce)
        let versions = RelayVersion.allCases.reversed().map(\.protocolName).joined(separator: ", ")
        var text = """
            GET \(Self.path) HTTP/1.1\r\nHost: \(relay.authority)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Key: \(key)\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: \(versions)\r\n
            """
        if let token { text += "Authorization: Bearer \(token.text)\r\n" }
        if let proof { text += "\(RelayTLSProof.headerName): \(proof.headerValue)\r\n" }
        request = Array((text + "\r\n").utf8)
    }

    /// Where a relay takes WebSockets.
    package static let path = "/relay"

    /// Checks the answer's head and returns the agreed version.
    ///
    /// - Throws: `unavailable` when something else than a relay answered, or a relay that cannot at present;
    ///   `authentication` when it asks for a token; `protocolViolation` for an answer that no relay gives.
    package func accept(_ head: MessageHead) throws(TransportError) -> RelayVersion {
        guard let (version, status) = head.status else {
            throw TransportError(.framing, "the relay's answer is no HTTP/1.1 response")
        }
        guard status == 101, version == "HTTP/1.1" else { throw Self.refusal(status) }
        guard head.single("upgrade")?.lowercased() == "websocket",
            head.list("connection").contains(where: { $0.lowercased() == "upgrade" }),
            head.single("sec-websocket-accept") == (try WebSocketAccept.value(forKey: key)),
            head.values("sec-websocket-extensions").isEmpty
        else {
            throw TransportError(.protocolViolation, "the relay's answer is no valid WebSocket upgrade")
        }
        guard let name = head.single("sec-websocket-protocol"), let version = RelayVersion(protocolName: name) else {
            throw TransportError(
                .protocolViolation, "the relay chose no version of the relay protocol that this program speaks")
        }
        return version
    }

    private static func refusal(_ status: Int) -> TransportError {
        switch status {
        case 401, 403:
            TransportError(.authentication, "the relay refuses access; check the relay token (--relay-token-file)")
        case 400, 404, 405, 426:
            TransportError(
                .protocolViolation, "the relay URL leads to a server that does not speak the relay protocol")
        case 429, 500...599:
            TransportError(.unavailable, "the relay is overloaded or out of order; it is tried again later")
        default:
            TransportError(
                .unavailable, "something between here and the relay answered instead of it, such as a login page")
        }
    }
}

extension RelayURL {
    /// Host and port as they stand in a Host field: brackets around IPv6, no port when it is the scheme's own.
    var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }
}
