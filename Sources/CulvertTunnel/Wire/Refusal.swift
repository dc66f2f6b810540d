/// Every reason for which a tunnel stream or a local connection is turned away, and the HTTP answer that says so.
///
/// The texts are literals of this program: nothing that a peer sent, and no address or token, can be in an answer.
package enum Refusal: Hashable, Sendable, CaseIterable {
    // MARK: By the host

    /// The stream does not begin with a valid preface.
    case badPreface
    /// The preface did not arrive in time.
    case prefaceTimeout
    /// The preface names no device token.
    case missingBearer
    /// No device has this token, or it was revoked; a stranger cannot tell which.
    case unknownToken
    /// The invite did not authorise this transport.
    case forbiddenTransport
    /// The token is bound to no node, so it cannot be used through the tunnel.
    case bindingMissing
    /// The token is bound to another node.
    case bindingMismatch
    /// The host's HTTP server did not accept a connection in time.
    case targetUnreachable

    // MARK: By the proxy

    /// There is no connection to the host at present.
    case hostUnreachable
    /// The request names a host that is not this machine.
    case hostNotLoopback
    /// The client is another user of this machine.
    case otherUser
    /// The request does not carry the device token.
    case localToken
    /// The request's head is not HTTP/1.1.
    case badRequest
    /// The request's head is longer than the gate looks at.
    case headTooLarge
    /// The request's head did not arrive in time.
    case headTimeout

    // MARK: By either

    /// As many connections as allowed are open.
    case limit

    /// The status code (RFC 9110 section 15).
    package var status: Int { parts.status }
    /// The stable word for programs.
    package var code: String { parts.code }
    /// One line for people: what happened and what to do.
    package var error: String { parts.error }

    private var parts: (status: Int, code: String, error: String) {
        switch self {
        case .badPreface:
            (400, "bad_preface", "the tunnel stream does not begin with a valid preface")
        case .prefaceTimeout:
            (408, "preface_timeout", "the tunnel stream's preface did not arrive in time")
        case .missingBearer:
            (401, "missing_bearer", "the tunnel stream carries no device token; pair this device first")
        case .unknownToken:
            (401, "unknown_token", "the host does not know this device, or has revoked it; ask for a fresh invite")
        case .forbiddenTransport:
            (403, "forbidden_transport", "the invite did not authorise this transport; ask for another invite")
        case .bindingMissing:
            (403, "binding_missing", "the device token is bound to no node; pair through the tunnel")
        case .bindingMismatch:
            (403, "binding_mismatch", "the device token belongs to another node; pair this device itself")
        case .targetUnreachable:
            (503, "target_unreachable", "the host is there, but its HTTP server does not answer; start that server")
        case .hostUnreachable:
            (503, "host_unreachable", "the host cannot be reached now; the proxy keeps trying")
        case .hostNotLoopback:
            (403, "host_not_loopback", "the request names a host that is not loopback; use the URL the proxy printed")
        case .otherUser:
            (403, "other_user", "the proxy serves only the user who started it")
        case .localToken:
            (401, "local_token", "the request does not carry exactly the device token as its bearer")
        case .badRequest:
            (400, "bad_request", "the connection does not begin with a valid HTTP/1.1 request")
        case .headTooLarge:
            (431, "head_too_large", "the request's head is too large")
        case .headTimeout:
            (408, "head_timeout", "the request's head did not arrive in time")
        case .limit:
            (503, "limit", "too many connections are open; close some or raise the limit")
        }
    }

    private var phrase: String {
        switch status {
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 408: "Request Timeout"
        case 431: "Request Header Fields Too Large"
        default: "Service Unavailable"
        }
    }

    /// The whole HTTP/1.1 response: head and JSON body `{code, error}`. The connection ends after it.
    package var response: [UInt8] {
        // The words are plain ASCII without quotes or backslashes, so they need no escaping.
        let body = "{\"code\":\"\(code)\",\"error\":\"\(error)\"}"
        var head = "HTTP/1.1 \(status) \(phrase)\r\n"
        head += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
        // RFC 9110 section 15.5.2: a 401 names the scheme that would do.
        if status == 401 { head += "WWW-Authenticate: Bearer\r\n" }
        head += "Connection: close\r\n\r\n"
        return Array((head + body).utf8)
    }
}
