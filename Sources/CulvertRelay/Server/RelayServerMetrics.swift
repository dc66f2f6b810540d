/// What a relay server counts. None of it tells who its clients are.
package struct RelayServerMetrics: Sendable {
    /// Why a connection was not taken, or ended by the relay's decision.
    package enum Refusal: String, CaseIterable, Sendable {
        /// There are as many connections as the operator allows.
        case full
        /// There are as many from this address.
        case addressFull = "address_full"
        /// Not a request that the relay understands.
        case malformed
        /// The token is missing or wrong.
        case token
        /// The proof of the node's key is wrong.
        case proof
        /// The node is not admitted.
        case node
        /// The handshake took too long.
        case handshakeTime = "handshake_time"
        /// Frames that break the protocol.
        case protocolFault = "protocol"
        /// No answer to a Ping.
        case silent
        /// Took nothing for too long although something waited.
        case stalled
        /// Too many connections of one node.
        case nodeFull = "node_full"
        /// TLS could not be agreed on.
        case tls
    }

    /// Connections taken.
    package var connections = 0
    /// Clients admitted.
    package var clientsAdmitted = 0
    /// HTTP requests answered that were no WebSocket.
    package var requests = 0
    /// Frames with datagrams passed on, the datagrams in them, and their bytes.
    package var framesForwarded = 0
    package var datagramsForwarded = 0
    package var bytesForwarded = 0
    /// Datagrams for nodes that are not here.
    package var datagramsUnknown = 0
    /// Datagrams for clients whose queue was full.
    package var datagramsOverflowed = 0
    /// How often a client was held to its rate.
    package var throttled = 0
    /// How often accepting rested for want of descriptors.
    package var acceptPauses = 0
    /// STUN requests answered, and datagrams to the STUN port that got no answer.
    package var stunAnswered = 0
    package var stunIgnored = 0
    private var refusals = [Int](repeating: 0, count: Refusal.allCases.count)

    /// Nothing has happened.
    package init() {}

    /// Counts a refusal.
    package mutating func refused(_ reason: Refusal) {
        if let index = Refusal.allCases.firstIndex(of: reason) { refusals[index] += 1 }
    }

    /// How often it was refused for `reason`.
    package func count(_ reason: Refusal) -> Int {
        Refusal.allCases.firstIndex(of: reason).map { refusals[$0] } ?? 0
    }
}
