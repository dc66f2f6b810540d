/// Writes numbers in the OpenMetrics text format, version 1.0.0, for Prometheus and its kin.
package struct OpenMetricsText {
    /// The answer's media type.
    package static let mediaType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

    private var text = ""

    /// Nothing yet.
    package init() {}

    /// A number that only grows. `name` is without the suffix `_total`.
    package mutating func counter(_ name: String, _ help: String, _ value: Int) {
        begin(name, "counter", help)
        text += "\(name)_total \(value)\n"
    }

    /// Numbers that only grow, told apart by one label, whose values are plain words.
    package mutating func counter(
        _ name: String, _ help: String, by label: String, _ values: [(label: String, value: Int)]
    ) {
        begin(name, "counter", help)
        for value in values { text += "\(name)_total{\(label)=\"\(value.label)\"} \(value.value)\n" }
    }

    /// A number that goes up and down.
    package mutating func gauge(_ name: String, _ help: String, _ value: Int) {
        begin(name, "gauge", help)
        text += "\(name) \(value)\n"
    }

    /// Everything written, with the end mark.
    package var complete: String { text + "# EOF\n" }

    private mutating func begin(_ name: String, _ type: String, _ help: String) {
        text += "# TYPE \(name) \(type)\n# HELP \(name) \(help)\n"
    }
}

/// How a relay is now, besides what it has counted.
package struct RelayServerState: Sendable {
    /// Nodes that are connected.
    package var nodes = 0
    /// Connections, admitted or not, and how many there may be.
    package var connections = 0
    package var connectionsLimit = 0
    /// When the process started and, over TLS, when the certificate ends; in seconds since 1970.
    package var startTime = 0
    package var certificateEnd: Int?

    /// Nothing is known yet.
    package init() {}
}

extension RelayServerMetrics {
    /// The page at `/metrics`.
    package func openMetrics(_ state: RelayServerState) -> String {
        var text = OpenMetricsText()
        let relay = "culvert_relay_"
        text.gauge(relay + "nodes", "Nodes that are connected.", state.nodes)
        text.gauge(relay + "connections", "Connections, admitted or not.", state.connections)
        text.gauge(relay + "connections_limit", "Connections that there may be.", state.connectionsLimit)
        text.counter(relay + "connections_accepted", "Connections taken.", connections)
        text.counter(relay + "clients_admitted", "Clients that proved their key and were admitted.", clientsAdmitted)
        text.counter(relay + "http_requests", "HTTP requests answered, WebSockets not counted.", requests)
        text.counter(
            relay + "refused", "Connections not taken or ended by the relay.", by: "reason",
            Refusal.allCases.map { ($0.rawValue, count($0)) })
        text.counter(relay + "forwarded_frames", "Frames with datagrams passed on.", framesForwarded)
        text.counter(relay + "forwarded_datagrams", "Datagrams passed on.", datagramsForwarded)
        text.counter(relay + "forwarded_bytes", "Bytes of the datagrams passed on.", bytesForwarded)
        text.counter(
            relay + "dropped_datagrams", "Datagrams not passed on.", by: "reason",
            [("no_such_node", datagramsUnknown), ("queue_full", datagramsOverflowed)])
        text.counter(relay + "throttled", "Times that a client was held to its rate.", throttled)
        text.counter(relay + "accept_pauses", "Times that file descriptors had run out.", acceptPauses)
        text.counter(
            relay + "stun_requests", "STUN requests, by what became of them.", by: "result",
            [("answered", stunAnswered), ("ignored", stunIgnored)])
        text.gauge("process_start_time_seconds", "When the process started.", state.startTime)
        if let end = state.certificateEnd {
            text.gauge(relay + "certificate_end_seconds", "When the TLS certificate ends.", end)
        }
        return text.complete
    }
}

extension RelayAnswer {
    /// The answer of the listener for metrics, whose connections carry one request each.
    package static func metrics(to request: RelayRequest, page: () -> String) -> [UInt8] {
        guard request.method == "GET" || request.method == "HEAD" else {
            return response(
                "405 Method Not Allowed", ["Allow: GET, HEAD"], "only GET is understood here\n", request, false)
        }
        guard request.path == "/metrics" else {
            return response("404 Not Found", [], "the metrics are at /metrics\n", request, false)
        }
        return response("200 OK", [], page(), request, false, type: OpenMetricsText.mediaType)
    }
}
