import CulvertCore
import CulvertIdentity

/// Asks an HTTP proxy for a connection to a relay (RFC 9110 section 9.3.6). After a good answer's head the connection
/// is the relay's.
package struct ConnectRequest: Sendable {
    /// The request, complete.
    package let request: [UInt8]
    private let hasCredentials: Bool

    /// A request for `relay`, to be sent to `proxy`.
    package init(to relay: RelayURL, through proxy: HTTPProxy) {
        let host = relay.host.contains(":") ? "[\(relay.host)]" : relay.host
        // The port is never left out here.
        var text = "CONNECT \(host):\(relay.port) HTTP/1.1\r\nHost: \(host):\(relay.port)\r\n"
        if let credentials = proxy.credentials { text += "Proxy-Authorization: \(credentials.fieldValue)\r\n" }
        request = Array((text + "\r\n").utf8)
        hasCredentials = proxy.credentials != nil
    }

    /// Checks the answer's head.
    ///
    /// - Throws: `authentication` when the proxy wants to know who asks, `unavailable` when it does not connect,
    ///   `framing` when it does not speak HTTP.
    package func accept(_ head: MessageHead) throws(TransportError) {
        guard let status = head.status?.code else {
            throw TransportError(.framing, "the HTTP proxy's answer is no HTTP/1.1 response; check https_proxy")
        }
        switch status {
        case 200...299:
            return
        case 407 where hasCredentials:
            throw TransportError(
                .authentication, "the HTTP proxy refuses the user name and password in https_proxy; correct them")
        case 407:
            throw TransportError(
                .authentication,
                "the HTTP proxy asks for a password; set https_proxy to http://USER:PASSWORD@HOST:PORT")
        case 500...599:
            throw TransportError(.unavailable, "the HTTP proxy cannot reach the relay; it is tried again later")
        default:
            throw TransportError(
                .unavailable,
                "the HTTP proxy refuses to connect to the relay; name the relay's host in no_proxy if none is needed")
        }
    }
}
