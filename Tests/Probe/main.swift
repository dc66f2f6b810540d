// culvert-probe: our QUIC endpoint without anything above it, for tests against other implementations.
//
//   culvert-probe echo --ticket TICKET --alpn ALPN --bytes N [--node NODEID]
//   culvert-probe serve-echo --alpn ALPN --listen ADDRESS:PORT
//
// One JSON object a line on standard output; exit codes as those of `culvert`.

import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTransport
import Glibc

/// The words after the command, as `--name value` pairs.
func option(_ name: String) -> String? {
    let words = CommandLine.arguments
    return words.firstIndex(of: "--" + name).flatMap { words.indices.contains($0 + 1) ? words[$0 + 1] : nil }
}

func fail(_ error: TransportError) -> Never {
    tell(#"{"event":"error","kind":"\#(error.kind.name)","message":"\#(error.reason)"}"#)
    switch error.kind {
    case .unavailable, .timedOut: exit(3)
    case .peerIdentity: exit(5)
    case .authentication, .revoked: exit(4)
    default: exit(1)
    }
}

func tell(_ line: String) {
    print(line)
    fflush(nil)
}

let probe: Probe
do {
    probe = try Probe()
    switch CommandLine.arguments.dropFirst().first {
    case "echo":
        guard let ticket = option("ticket"), let alpn = option("alpn"), let count = option("bytes").flatMap(Int.init)
        else {
            exit(2)
        }
        let parsed = try EndpointTicket(text: ticket)
        try await probe.echo(
            parsed, node: option("node").flatMap { NodeID($0) } ?? parsed.nodeID, alpn: alpn, count: count)
    case "serve-echo":
        guard let alpn = option("alpn"), let address = option("listen").flatMap({ SocketAddress($0) }) else { exit(2) }
        try await probe.serveEcho(alpn: alpn, at: address)
        while true { pause() }
    default: exit(2)
    }
} catch {
    fail(error)
}
