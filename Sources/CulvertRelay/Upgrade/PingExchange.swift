import CulvertCore
import CulvertIdentity

/// Requests for a relay's `/ping` on one connection, and how their answers end.
package struct PingExchange: Sendable {
    private var reader = HeadReader()
    /// Bytes of an answer's body that have not come yet.
    private var body = 0

    /// An exchange on a fresh connection.
    package init() {}

    /// A request to `relay`; after the last one it closes the connection.
    package static func request(to relay: RelayURL, isLast: Bool) -> [UInt8] {
        let connection = isLast ? "Connection: close\r\n" : ""
        return Array("GET /ping HTTP/1.1\r\nHost: \(relay.authority)\r\n\(connection)\r\n".utf8)
    }

    /// Takes bytes from the front of `input`; true when an answer has begun, which is what ends the round trip.
    ///
    /// - Throws: `unavailable` when a relay cannot answer at present, `protocolViolation` when what answers is none.
    package mutating func next(_ input: inout UnsafeRawBufferPointer) throws(TransportError) -> Bool {
        let rest = min(body, input.count)
        body -= rest
        input = UnsafeRawBufferPointer(rebasing: input[rest...])
        guard !input.isEmpty else { return false }
        let head: MessageHead?
        do throws(HeadFault) { head = try reader.next(&input) } catch { throw Self.noRelay }
        guard let head else { return false }
        switch head.status?.code {
        case 200, 204: break
        case 429, .some(500...599): throw TransportError(.unavailable, "the relay is overloaded or out of order")
        default: throw Self.noRelay
        }
        body = head.single("content-length").flatMap { Int($0) } ?? 0
        guard (0...RelayLimits.head).contains(body), head.values("transfer-encoding").isEmpty else {
            throw Self.noRelay
        }
        return true
    }

    private static let noRelay = TransportError(
        .protocolViolation, "the relay URL leads to a server that does not speak the relay protocol")
}
