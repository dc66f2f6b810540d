import CulvertCore
import FoundationEssentials

/// What the owner may ask of a running host, over its control socket.
enum ControlRequest: Hashable, Sendable {
    case devices
    case revoke(deviceID: String)
    case rename(deviceID: String, name: String)
    case makeInvite(validForSeconds: Int64?)

    private struct Rename: Codable {
        var name: String
    }

    private struct Lifetime: Codable {
        var validForSeconds: Int64?
    }

    /// The request as HTTP: method, path and JSON body.
    var http: (method: String, path: String, body: [UInt8]) {
        switch self {
        case .devices: ("GET", "/v1/devices", [])
        case .revoke(let id): ("DELETE", "/v1/devices/\(id)", [])
        case .rename(let id, let name): ("PATCH", "/v1/devices/\(id)", ControlJSON.encode(Rename(name: name)))
        case .makeInvite(let seconds): ("POST", "/v1/invites", ControlJSON.encode(Lifetime(validForSeconds: seconds)))
        }
    }

    /// Reads a request; nil when there is no such resource or the body is not what it needs.
    init?(method: String, path: String, body: [UInt8]) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
        switch (method, parts.count, parts.prefix(2)) {
        case ("GET", 2, ["v1", "devices"]): self = .devices
        case ("DELETE", 3, ["v1", "devices"]): self = .revoke(deviceID: parts[2])
        case ("PATCH", 3, ["v1", "devices"]):
            guard let rename = ControlJSON.decode(Rename.self, from: body) else { return nil }
            self = .rename(deviceID: parts[2], name: rename.name)
        case ("POST", 2, ["v1", "invites"]):
            guard let lifetime = ControlJSON.decode(Lifetime.self, from: body.isEmpty ? Array("{}".utf8) : body) else {
                return nil
            }
            self = .makeInvite(validForSeconds: lifetime.validForSeconds)
        default: return nil
        }
    }
}

/// The answer to a ``ControlRequest``: an HTTP status and JSON.
struct ControlResponse: Hashable, Sendable {
    /// The HTTP status code.
    var status: Int
    /// JSON, or nothing.
    var body: [UInt8]

    /// What an error looks like.
    struct Failure: Codable {
        var error: String
        var code: String
    }

    /// Done, with `value` as JSON.
    static func success(_ value: some Encodable) -> ControlResponse {
        ControlResponse(status: 200, body: ControlJSON.encode(value))
    }

    /// Done, and nothing to say.
    static let done = ControlResponse(status: 204, body: [])

    /// Not done.
    static func failure(_ error: TransportError) -> ControlResponse {
        let status =
            switch error.kind {
            case .authentication: 404
            case .framing, .limit: 400
            default: 503
            }
        return ControlResponse(
            status: status, body: ControlJSON.encode(Failure(error: error.reason, code: error.kind.name)))
    }

    /// There is no such resource, or the request is malformed.
    static let notFound = failure(TransportError(.framing, "the host does not know this request"))
}

/// JSON of the control socket.
enum ControlJSON {
    /// The value as JSON; all types that come here encode.
    static func encode(_ value: some Encodable) -> [UInt8] {
        (try? JSONEncoder().encode(value)).map(Array.init) ?? []
    }

    /// The value in `bytes`; nil when they are not that.
    static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) -> Value? {
        try? JSONDecoder().decode(type, from: Data(bytes))
    }
}
