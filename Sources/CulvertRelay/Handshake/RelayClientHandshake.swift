import CulvertCore
import CulvertIdentity

/// The client's side of a relay connection from the upgrade's answer to the confirmation.
package struct RelayClientHandshake: Sendable {
    /// What a frame means.
    package enum Step: Hashable, Sendable {
        /// Send this frame.
        case send([UInt8])
        /// The relay accepts this node; a ``RelayClientSession`` goes on from here.
        case confirmed
        /// The relay refuses this node, for this reason in its own words: not to be trusted, at most
        /// ``RelayLimits/denialReason`` bytes long.
        case denied(reason: String)
    }

    private enum State {
        case waiting
        case answered
        case done
    }

    /// When the relay is given up. The shell checks it; a handshake has no other timer.
    package let deadline: Instant
    private let key: SecretKey
    private let rules: RelayRules
    private let sentProof: Bool
    private var state = State.waiting

    /// A handshake that begins now. `sentProof` says whether a ``RelayTLSProof`` went with the request: only then may
    /// the relay confirm without a challenge.
    package init(key: SecretKey, version: RelayVersion, sentProof: Bool, at now: Instant) {
        self.key = key
        self.sentProof = sentProof
        rules = RelayRules(sender: .server, phase: .handshake, version: version)
        deadline = now + RelayLimits.handshakeTime
    }

    /// What a denial means to those who wait for the relay.
    package static let denied = TransportError(
        .authentication, "the relay refuses this node; ask its operator for access, or check the relay token")
    /// What passing the deadline means.
    package static let timedOut = TransportError(.timedOut, "the relay did not finish its handshake in time")

    /// Takes a binary message. Throws `framing` or `protocolViolation`; the connection must be closed then.
    package mutating func receive(_ message: UnsafeRawBufferPointer) throws(TransportError) -> Step {
        guard case .frame(let frame) = try RelayMessage.decode(message, under: rules) else { throw Self.outOfOrder }
        switch (frame, state) {
        case (.serverChallenge(let challenge), .waiting):
            state = .answered
            let signature = RelayProof.sign(challenge, with: key)
            return .send(RelayFrame.clientAuth(key.nodeID, signature: signature).encoded)
        case (.serverConfirmsAuth, .waiting) where sentProof, (.serverConfirmsAuth, .answered):
            state = .done
            return .confirmed
        case (.serverDeniesAuth(let reason), .waiting), (.serverDeniesAuth(let reason), .answered):
            state = .done
            let kept = reason.utf8.prefix(RelayLimits.denialReason)
            return .denied(reason: String(decoding: kept, as: UTF8.self))
        default:
            // A second challenge belongs here too: one connection needs one signature.
            throw Self.outOfOrder
        }
    }

    private static let outOfOrder = TransportError(.protocolViolation, "the relay's handshake is out of order")
}
