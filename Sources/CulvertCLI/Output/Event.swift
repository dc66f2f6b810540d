import CulvertCore

/// What `culvert host` and `culvert connect` tell while they run: an object a line for programs, a note for people.
enum Event: Sendable {
    case hostReady(nodeID: String, ticket: String, invite: String, target: String)
    case connectReady(server: String, url: String)
    /// The path of a connection was chosen or changed; `device` only on the host.
    case path(device: String?, kind: Path, rtt: Duration)
    /// The host can be reached through a relay now, or no longer.
    case relay(isConnected: Bool)
    case paired(device: String)
    case connected(device: String)
    case disconnected(device: String)
    /// The connection to the host broke and is being made again.
    case lost(kind: String, message: String)
    case reconnected
    case error(kind: String, message: String)
    /// The last event after an orderly stop.
    case closed

    /// How bytes travel.
    enum Path: String, Sendable { case direct, relay, unknown }

    /// The line for programs.
    var json: JSON {
        let (name, members) = parts
        return .object([(key: "event", value: .string(name))] + members)
    }

    private var parts: (name: String, members: [(key: String, value: JSON)]) {
        switch self {
        case .hostReady(let nodeID, let ticket, let invite, let target):
            (
                "ready",
                [
                    ("nodeId", .string(nodeID)), ("ticket", .string(ticket)), ("invite", .string(invite)),
                    ("target", .string(target)),
                ]
            )
        case .connectReady(let server, let url): ("ready", [("server", .string(server)), ("url", .string(url))])
        case .path(let device, let kind, let rtt):
            (
                "path",
                [("kind", .string(kind.rawValue)), ("rttMs", .milliseconds(rtt))]
                    + (device.map { [("device", .string($0))] } ?? [])
            )
        case .relay(let isConnected): ("relay", [("state", .string(isConnected ? "connected" : "lost"))])
        case .paired(let device): ("paired", [("device", .string(device))])
        case .connected(let device): ("connected", [("device", .string(device))])
        case .disconnected(let device): ("disconnected", [("device", .string(device))])
        case .lost(let kind, let message):
            ("disconnected", [("kind", .string(kind)), ("message", .string(message))])
        case .reconnected: ("reconnected", [])
        case .error(let kind, let message): ("error", [("kind", .string(kind)), ("message", .string(message))])
        case .closed: ("closed", [])
        }
    }

    /// The line for people on standard error; nil when the command itself says more, or there is nothing to say.
    var note: String? {
        switch self {
        case .hostReady, .connectReady, .closed: return nil
        case .path(let device, let kind, let rtt):
            let who = device.map { "\(PrintableText.clean($0)): " } ?? ""
            return "\(who)\(kind.description), \(JSON.milliseconds(rtt).text) ms"
        case .relay(let isConnected): return isConnected ? "connected to a relay" : "no relay; trying again"
        case .paired(let device): return "\(PrintableText.clean(device)) is paired"
        case .connected(let device): return "\(PrintableText.clean(device)) connected"
        case .disconnected(let device): return "\(PrintableText.clean(device)) disconnected"
        case .lost(_, let message): return "connection lost: \(message); trying again"
        case .reconnected: return "connected again"
        case .error(_, let message): return message
        }
    }
}

extension Event.Path {
    /// The kind in a sentence.
    fileprivate var description: String {
        switch self {
        case .direct: "direct path"
        case .relay: "path through a relay"
        case .unknown: "path not known"
        }
    }
}
