import CulvertCore
import CulvertIO

/// Talks to the host that runs with a state directory, over its control socket and nothing else. Blocking; each call
/// takes at most five seconds.
public struct ControlClient: Sendable {
    private let socketPath: String

    /// A client for the host of `directory`.
    public init(_ directory: StateDirectory) {
        socketPath = directory.hostSocket
    }

    /// All devices that were ever paired. Throws `unavailable` when no host runs.
    public func devices() throws(TransportError) -> [Device] {
        try ask(.devices, for: [Device].self)
    }

    /// Cuts a device off, at once and for good. Throws `authentication` when there is no such device.
    public func revoke(_ deviceID: String) throws(TransportError) {
        _ = try exchange(.revoke(deviceID: deviceID))
    }

    /// Gives a device another name. Throws `authentication` when there is no such device.
    public func rename(_ deviceID: String, to name: String) throws(TransportError) {
        _ = try exchange(.rename(deviceID: deviceID, name: name))
    }

    /// Makes an invite that pairs one device within `lifetime`, or the host's configured time.
    public func makeInvite(validFor lifetime: Duration? = nil) throws(TransportError) -> IssuedInvite {
        try ask(.makeInvite(validForSeconds: lifetime?.components.seconds), for: IssuedInvite.self)
    }

    private func ask<Value: Decodable>(_ request: ControlRequest, for type: Value.Type) throws(TransportError) -> Value
    {
        guard let value = ControlJSON.decode(type, from: try exchange(request)) else { throw Self.garbled }
        return value
    }

    /// Sends a request and gives the body of a successful answer.
    private func exchange(_ request: ControlRequest) throws(TransportError) -> [UInt8] {
        let (method, path, body) = request.http
        guard path.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw TransportError(.authentication, "no device has this ID; culvert devices lists them")
        }
        let head = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.count)\r\n\r\n"
        let answer = try UnixExchange.exchange(
            Array(head.utf8) + body, path: socketPath, answerLimit: Self.answerLimit, timeLimit: .seconds(5))
        // The server ends the connection after its answer, so the body is what follows the head.
        guard let headEnd = answer.firstRange(of: Array("\r\n\r\n".utf8)),
            let status = Int(String(decoding: answer.dropFirst(9).prefix(3), as: UTF8.self))
        else { throw Self.garbled }
        let content = Array(answer[headEnd.upperBound...])
        guard status < 300 else { throw Self.error(status, content) }
        return content
    }

    /// The host's reason, if it is one of those that hosts of this version give.
    private static func error(_ status: Int, _ body: [UInt8]) -> TransportError {
        switch ControlJSON.decode(ControlResponse.Failure.self, from: body)?.code {
        case "authentication": TransportError(.authentication, "no device has this ID; culvert devices lists them")
        case "limit": TransportError(.limit, "an invite's life must be between 1 second and 30 days")
        case "framing": TransportError(.framing, "the host does not understand the request; is it an older version?")
        case "state": TransportError(.state, "the host could not read or write its database; look at its output")
        default: garbled
        }
    }

    private static let garbled = TransportError(.protocolViolation, "the host gave an answer that makes no sense")
    /// The largest answer: a list of ten thousand devices.
    private static let answerLimit = 4 * 1024 * 1024
}
