/// What a relay's HTTP server answers to requests that are no WebSocket.
package enum RelayAnswer {
    /// The answer to `request`, complete. The connection goes on after it when `keepsAlive`.
    package static func bytes(to request: RelayRequest, keepsAlive: Bool) -> [UInt8] {
        guard request.method == "GET" || request.method == "HEAD" else {
            return response(
                "405 Method Not Allowed", ["Allow: GET, HEAD"], "only GET is understood here\n", request, false)
        }
        switch request.path {
        case "/ping":
            // Browsers measure relays too.
            return response(
                "200 OK", ["Access-Control-Allow-Origin: *", "Cache-Control: no-store"], "", request, keepsAlive)
        case "/generate_204":
            let echo = challenge(request).map { ["X-Iroh-Response: response \($0)"] } ?? []
            return response("204 No Content", ["Cache-Control: no-store"] + echo, nil, request, keepsAlive)
        case "/healthz":
            return response("200 OK", ["Cache-Control: no-store"], "ok\n", request, keepsAlive)
        case "/robots.txt":
            return response("200 OK", [], "User-agent: *\nDisallow: /\n", request, keepsAlive)
        case "/", "/index.html":
            return response("200 OK", [], "This is a relay for end-to-end encrypted tunnels.\n", request, keepsAlive)
        default:
            return response("404 Not Found", [], "there is nothing here\n", request, keepsAlive)
        }
    }

    /// The answer to a head that is no request; the connection is closed after it.
    package static func bytes(to fault: HeadFault) -> [UInt8] {
        let reason =
            switch fault.status {
            case 413: "413 Content Too Large"
            case 431: "431 Request Header Fields Too Large"
            case 505: "505 HTTP Version Not Supported"
            default: "400 Bad Request"
            }
        return response(reason, [], "the request was not understood\n", nil, false)
    }

    /// The answer to those without a token that the relay asks for; the connection is closed after it.
    package static let unauthorized = response(
        "401 Unauthorized", ["WWW-Authenticate: Bearer"], "this relay asks for a token\n", nil, false)

    /// A whole response. `text` is nil for a status that has no body.
    static func response(
        _ status: String, _ fields: [String], _ text: String?, _ request: RelayRequest?, _ keepsAlive: Bool,
        type: String = "text/plain; charset=utf-8"
    ) -> [UInt8] {
        var head = "HTTP/1.1 \(status)\r\n"
        for field in fields { head += field + "\r\n" }
        if let text {
            if !text.isEmpty { head += "Content-Type: \(type)\r\n" }
            head += "Content-Length: \(text.utf8.count)\r\n"
        }
        if !keepsAlive { head += "Connection: close\r\n" }
        head += "\r\n"
        return Array((request?.method == "HEAD" ? head : head + (text ?? "")).utf8)
    }

    /// What a client sends to tell this server from a login page, when it is harmless to repeat.
    private static func challenge(_ request: RelayRequest) -> String? {
        guard let text = request.head.single("x-iroh-challenge"), (1..<64).contains(text.utf8.count),
            text.utf8.allSatisfy({ byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
                default: "-._".utf8.contains(byte)
                }
            })
        else { return nil }
        return text
    }
}
