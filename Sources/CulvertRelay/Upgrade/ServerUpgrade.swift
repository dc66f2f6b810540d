import CulvertCore

/// Why a request to the relay's WebSocket is refused.
package enum UpgradeFault: Error, Hashable, Sendable, CaseIterable {
    /// The method is not GET.
    case method
    /// The request does not ask for a WebSocket.
    case notWebSocket
    /// `Sec-WebSocket-Version` is not 13.
    case webSocketVersion
    /// `Sec-WebSocket-Key` is not the base64 text of 16 bytes.
    case key
    /// No version of the relay protocol in common.
    case relayVersion
    /// This server cannot answer.
    case server

    /// The answer, complete; the connection is closed after it.
    package var response: [UInt8] {
        switch self {
        case .method: Self.response("405 Method Not Allowed", "Allow: GET", "only GET is understood here")
        case .notWebSocket: Self.response("400 Bad Request", nil, "only WebSocket is spoken here")
        case .webSocketVersion:
            Self.response("426 Upgrade Required", "Sec-WebSocket-Version: 13", "WebSocket version 13 is required")
        case .key: Self.response("400 Bad Request", nil, "header Sec-WebSocket-Key missing or malformed")
        case .relayVersion: Self.response("400 Bad Request", nil, "unsupported relay version")
        case .server: Self.response("500 Internal Server Error", nil, "the relay is out of order")
        }
    }

    private static func response(_ status: String, _ field: String?, _ text: String) -> [UInt8] {
        let extra = field.map { $0 + "\r\n" } ?? ""
        return Array(
            """
            HTTP/1.1 \(status)\r\n\(extra)Content-Type: text/plain\r\nContent-Length: \(text.utf8.count + 1)\r\n\
            Connection: close\r\n\r\n\(text)\n
            """.utf8)
    }
}

/// The server's side of the WebSocket upgrade (RFC 6455 section 4.2).
package struct ServerUpgrade: Hashable, Sendable {
    /// The agreed version.
    package let version: RelayVersion
    /// The answer, complete; frames follow it.
    package let response: [UInt8]
    /// The client's proof out of the TLS session, when it sent a well-formed one. To be verified; without it, or when it
    /// fails, the client is challenged.
    package let proof: RelayTLSProof?

    /// Checks a request for the relay's path. Extensions are never agreed on. An Origin does not matter: a browser's
    /// user gains nothing here, there are no cookies.
    package static func accept(_ request: RelayRequest) throws(UpgradeFault) -> ServerUpgrade {
        let head = request.head
        guard request.method == "GET" else { throw .method }
        guard head.list("upgrade").contains(where: { $0.lowercased() == "websocket" }),
            head.list("connection").contains(where: { $0.lowercased() == "upgrade" }), !head.startLine.hasSuffix("/1.0")
        else { throw .notWebSocket }
        guard head.single("sec-websocket-version") == "13" else { throw .webSocketVersion }
        guard let key = head.single("sec-websocket-key"), WebSocketAccept.isKey(key) else { throw .key }
        guard let version = RelayVersion.negotiate(offered: head.list("sec-websocket-protocol")) else {
            throw .relayVersion
        }
        let accept: String
        do { accept = try WebSocketAccept.value(forKey: key) } catch { throw .server }
        let response = """
            HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Accept: \(accept)\r\nSec-WebSocket-Protocol: \(version.protocolName)\r\n\r\n
            """
        return ServerUpgrade(
            version: version, response: Array(response.utf8),
            proof: head.single(RelayTLSProof.headerName).flatMap { RelayTLSProof(headerValue: $0) })
    }
}
