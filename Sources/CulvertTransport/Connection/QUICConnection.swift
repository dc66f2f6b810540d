import CNgtcp2
import CulvertCore
import CulvertIO
import CulvertIdentity

/// One QUIC connection: datagrams, a path and the time go in; datagrams, events and the next deadline come out.
///
/// It has no socket, no clock and no random source of its own, and is confined to the thread of its owner. It owns
/// one `ngtcp2_conn` and one TLS session; both are freed with it.
package final class QUICConnection: Deadlined {
    /// Who is told about streams and the end.
    package var handler: (any ConnectionHandler)?
    /// The peer's proven identity; nil until the handshake got that far.
    package private(set) var peer: NodeID?
    /// The application protocol; nil until the handshake is complete.
    package private(set) var alpn: String?
    /// Whether this side answered, rather than dialled.
    package let isServer: Bool
    /// The path that packets take.
    package internal(set) var path: NetworkPath

    /// The endpoint that routes the packets.
    weak var owner: (any ConnectionOwner)?
    let pool: ChunkPool
    let entropy: Entropy
    let resetKey: [UInt8]
    /// The owner of the C object; see ``ConnectionHandle``.
    let core: ConnectionHandle
    private let expectedPeer: NodeID?

    /// How far the connection has come.
    var state = State.handshaking
    /// The time of the call in progress.
    var now: Instant
    /// Place in the endpoint's heap.
    package var heapIndex: Int?
    /// Whether the endpoint's list of connections with something to send holds this one.
    var isAwaitingFlush = false

    /// Streams by number, kept alive until ngtcp2 is done with their bytes.
    var streams: [Int64: QUICStream] = [:]
    /// Streams that have something to send, in the order in which they get their turn.
    var sendOrder = SendOrder()
    /// Bytes that stream handlers were given and have not consumed.
    var unreadCount = 0
    /// Connection window withheld from the peer while too much is unread.
    var withheldCredit: UInt64 = 0
    /// Streams whose handlers wait for room in their send queues.
    var roomSeekers: [QUICStream] = []
    /// Streams that the peer asked to stop, noticed on writing, whose handlers have to be told.
    var stoppedStreams: [QUICStream] = []
    /// Where ngtcp2 writes the path of a packet.
    let writePath = PathBuffer()
    /// Whether a path was validated, so that ``path`` may be out of date.
    var pathMayHaveChanged = false
    /// The connection IDs under which the endpoint routes packets here.
    var routedIDs: [ConnectionID] = []
    /// The reset tokens that the endpoint takes as the end of this connection.
    var expectedTokens: [ResetToken] = []

    /// How far a connection has come.
    enum State {
        case handshaking, established
        /// A CONNECTION_CLOSE has to be sent, then it is over.
        case closing(CloseCause, ConnectionEnd)
        case ended(ConnectionEnd)
    }

    /// What a CONNECTION_CLOSE frame says.
    enum CloseCause {
        case application(CloseCode)
        case library(Int32)
        case alert(UInt8)
    }

    /// The side of the connection.
    enum Role {
        /// Dials a known node.
        case client(expecting: NodeID)
        /// Answers the Initial packet with `header`; `originalID` is the first destination ID if a Retry came between.
        case server(header: ngtcp2_pkt_hd, originalID: ngtcp2_cid?)
    }

    /// What the endpoint gives each of its connections.
    struct Surroundings {
        var credentials: NodeCredentials
        var entropy: Entropy
        var pool: ChunkPool
        var resetKey: [UInt8]
        /// Streams that the peer may have open at a time.
        var maximumStreams: Int
    }

    /// A connection that has not sent anything yet.
    init(_ role: Role, path: NetworkPath, alpns: [String], in surroundings: Surroundings, now: Instant)
        throws(TransportError)
    {
        pool = surroundings.pool
        entropy = surroundings.entropy
        resetKey = surroundings.resetKey
        self.path = path
        self.now = now
        switch role {
        case .client(let node): (isServer, expectedPeer) = (false, node)
        case .server: (isServer, expectedPeer) = (true, nil)
        }
        core = try ConnectionHandle(role, path: path, alpns: alpns, in: surroundings, now: now)
        core.attach(self)
    }

    /// ngtcp2's connection.
    var handle: OpaquePointer { core.connection }

    /// The connection IDs by which the peer may address this side.
    var localIDs: [ConnectionID] {
        var ids = [ngtcp2_cid](repeating: ngtcp2_cid(), count: ngtcp2_conn_get_num_scid(handle))
        ngtcp2_conn_get_scid(handle, &ids)
        return ids.map { ConnectionID($0) }
    }

    /// Whether the handshake is complete and nothing ended the connection.
    package var isEstablished: Bool {
        if case .established = state { true } else { false }
    }

    /// Whether the handshake is under way.
    var isHandshaking: Bool {
        if case .handshaking = state { true } else { false }
    }

    /// Whether all that is left to send is the end.
    var isClosing: Bool {
        if case .closing = state { true } else { false }
    }

    /// Why the connection is over, once it is.
    var end: ConnectionEnd? {
        if case .ended(let end) = state { end } else { nil }
    }

    /// The smoothed round-trip time (RFC 9002 section 5).
    package var roundTripTime: Duration {
        var statistics = ngtcp2_conn_stat()
        ngtcp2_conn_get_conn_stat_versioned(handle, NGTCP2_CONN_STAT_VERSION, &statistics)
        return .nanoseconds(Int64(clamping: statistics.smoothed_rtt))
    }

    /// What is known of the path that packets take.
    package var pathState: PathState { PathState(isRelayed: path.isRelayed, roundTripTime: roundTripTime) }

    /// Three probe timeouts (RFC 9000 section 10.2): how long packets for an ended connection may still arrive.
    var lingerTime: Duration {
        .nanoseconds(Int64(clamping: 3 * ngtcp2_conn_get_pto(handle)))
    }

    /// Decides about the key that the peer proved; called by TLS in the middle of the handshake.
    func verifyPeer(_ node: NodeID?) -> Bool {
        guard let node else {
            fail(TransportError(.peerIdentity, "the peer has no Ed25519 key"))
            return false
        }
        if let expectedPeer, node != expectedPeer {
            fail(TransportError(.peerIdentity, "another node than the expected one answered"))
            return false
        }
        peer = node
        return true
    }

    /// The reason that is already known when ngtcp2 reports a failure; it is more exact than ngtcp2's.
    private(set) var knownFailure: TransportError?

    /// Notes why the call in progress is about to fail.
    func fail(_ error: TransportError) {
        if knownFailure == nil { knownFailure = error }
    }

    /// The handshake is complete on this side.
    func completeHandshake() -> Bool {
        guard let selected = core.session.selectedALPN else {
            fail(TransportError(.alpn, "the peer speaks none of our protocols"))
            return false
        }
        guard peer != nil else {
            fail(TransportError(.peerIdentity, "the peer proved no identity"))
            return false
        }
        alpn = selected
        state = .established
        ngtcp2_conn_set_keep_alive_timeout(handle, UInt64(TransportLimits.keepAlive.nanoseconds))
        owner?.connectionLeftHandshake(self)
        handler?.connectionEstablished(self)
        return true
    }

    /// Tells the endpoint ngtcp2's next deadline.
    func refreshDeadline() {
        guard end == nil else { return }
        owner?.connection(self, wantsWakeAt: Instant(nanoseconds: ngtcp2_conn_get_expiry(handle)))
    }
}
