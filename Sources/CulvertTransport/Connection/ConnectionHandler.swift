import CulvertCore
import CulvertIO
import CulvertIdentity

/// What a connection tells its user. All calls come on the thread that drives the connection.
package protocol ConnectionHandler: AnyObject {
    /// The handshake is complete and the peer is who it claims to be. Called once, before any stream.
    func connectionEstablished(_ connection: QUICConnection)
    /// The server has accepted this client's identity too (RFC 9001 section 4.1.2); comes after
    /// ``connectionEstablished(_:)``, and not on servers.
    func connectionConfirmed(_ connection: QUICConnection)
    /// The peer opened a stream; set its handler before returning.
    func connection(_ connection: QUICConnection, accepted stream: QUICStream)
    /// The peer allows more streams than before.
    func connectionMayOpenStreams(_ connection: QUICConnection)
    /// Packets now travel on another path.
    func connectionPathChanged(_ connection: QUICConnection)
    /// The connection is over; its streams were told before. The last call.
    func connectionClosed(_ connection: QUICConnection, reason: ConnectionEnd)
}

// What most users have no use for.
extension ConnectionHandler {
    /// Nothing.
    package func connectionConfirmed(_ connection: QUICConnection) {}
    /// Nothing.
    package func connectionMayOpenStreams(_ connection: QUICConnection) {}
    /// Nothing.
    package func connectionPathChanged(_ connection: QUICConnection) {}
}

/// Why a connection ended.
package enum ConnectionEnd: Hashable, Sendable {
    /// This side closed it.
    case closedLocally
    /// The peer's application closed it.
    case closedByPeer(CloseCode)
    /// It failed, on this side or the peer's.
    case failed(TransportError)

    /// The error for someone who still needed the connection.
    package var error: TransportError {
        switch self {
        case .closedLocally: TransportError(.cancelled, "the connection was closed")
        case .closedByPeer(.revoked): TransportError(.revoked, "the host has revoked this device")
        case .closedByPeer(.unknownDevice):
            TransportError(.authentication, "the host does not know this device; ask for a fresh invite and pair again")
        case .closedByPeer(.refused): TransportError(.limit, "the host is full; try again later")
        case .closedByPeer: TransportError(.unavailable, "the peer closed the connection")
        case .failed(let error): error
        }
    }
}

/// The application error codes with which connections are closed.
package struct CloseCode: RawRepresentable, Hashable, Sendable {
    /// The code on the wire.
    package let rawValue: UInt64

    /// The code `rawValue`.
    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Nothing is wrong: this side is done.
    package static let done = CloseCode(rawValue: 0)
    /// The host revoked the device.
    package static let revoked = CloseCode(rawValue: 1)
    /// The host does not take this connection.
    package static let refused = CloseCode(rawValue: 2)
    /// The connection belongs to no device that the host knows.
    package static let unknownDevice = CloseCode(rawValue: 3)
}

/// What a connection needs of the endpoint that routes its packets.
protocol ConnectionOwner: AnyObject {
    /// Packets to `id` belong to `connection` from now on.
    func connection(_ connection: QUICConnection, issued id: ConnectionID)
    /// Packets to `id` belong to nobody any more.
    func connection(_ connection: QUICConnection, retired id: ConnectionID)
    /// A stateless reset with `token` ends `connection`.
    func connection(_ connection: QUICConnection, expects token: ResetToken)
    /// A stateless reset with `token` means nothing any more.
    func connection(_ connection: QUICConnection, forgets token: ResetToken)
    /// The connection has something to send.
    func connectionWantsFlush(_ connection: QUICConnection)
    /// The connection wants to be woken at `deadline`.
    func connection(_ connection: QUICConnection, wantsWakeAt deadline: Instant)
    /// The handshake is complete, so the connection no longer counts among those in progress.
    func connectionLeftHandshake(_ connection: QUICConnection)
    /// The connection is over. `closePacket` repeats the last word to a peer that has not heard it.
    func connection(_ connection: QUICConnection, endedWith closePacket: [UInt8]?)
}

/// Where connections get unpredictable bytes from; tests hand in a seeded one.
package final class Entropy {
    private let source: (UnsafeMutableRawBufferPointer) -> Void

    /// Entropy that `source` writes over a whole buffer.
    package init(_ source: @escaping (UnsafeMutableRawBufferPointer) -> Void) {
        self.source = source
    }

    /// The operating system's.
    package static var system: Entropy { Entropy(SystemRandom.fill) }

    /// Fills the buffer.
    func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        source(bytes)
    }

    /// `count` fresh bytes.
    func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            source(UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count))
            filled = count
        }
    }
}
