import CulvertCore
import CulvertIdentity

/// Why a relay refuses a client, in words that go over the wire.
package enum RelayDenial: String, Hashable, Sendable, CaseIterable {
    /// The answer to the challenge is not of the documented form.
    case malformed = "malformed client auth"
    /// The signature is not that of the key and the challenge.
    case signature = "signature invalid"
    /// The operator does not admit this node.
    case notAuthorized = "not authorized"

    /// The frame that tells the client, before the connection is closed.
    package var frame: [UInt8] { RelayFrame.serverDeniesAuth(reason: rawValue).encoded }
}

/// The server's side of a relay connection from the upgrade's answer to the confirmation, when no ``RelayTLSProof``
/// made it unnecessary.
package struct RelayServerHandshake: Sendable {
    /// What a frame means.
    package enum Step: Hashable, Sendable {
        /// The client has proved this key. Whether the node is admitted is for the operator's rules; then send
        /// ``RelayServerHandshake/confirmation`` and go on with a ``RelayServerSession``, or a ``RelayDenial/frame``.
        case proved(NodeID)
        /// Send the denial's frame and close.
        case denied(RelayDenial)
    }

    /// What tells the client that it may use the relay.
    package static let confirmation = RelayFrame.serverConfirmsAuth.encoded

    /// The challenge to send at once.
    package let greeting: [UInt8]
    /// When the client is given up.
    package let deadline: Instant
    private let challenge: RelayChallenge
    private let rules: RelayRules
    private var isAnswered = false

    /// A handshake that begins now, with a challenge that was never used before.
    package init(challenge: RelayChallenge, version: RelayVersion, at now: Instant) {
        self.challenge = challenge
        greeting = RelayFrame.serverChallenge(challenge).encoded
        rules = RelayRules(sender: .client, phase: .handshake, version: version)
        deadline = now + RelayLimits.handshakeTime
    }

    /// Takes a binary message; a text message is not one and must close the connection. Throws `framing` or
    /// `protocolViolation`, which close it without a denial.
    package mutating func receive(_ message: UnsafeRawBufferPointer) throws(TransportError) -> Step {
        guard !isAnswered else {
            throw TransportError(.protocolViolation, "the client answers the relay's challenge twice")
        }
        guard message.first == RelayFrameType.clientAuth.rawValue else {
            throw TransportError(.protocolViolation, "the client does not answer the relay's challenge")
        }
        isAnswered = true
        let answer: RelayMessage
        do {
            answer = try RelayMessage.decode(message, under: rules)
        } catch {
            return .denied(.malformed)
        }
        guard case .frame(.clientAuth(let nodeID, let signature)) = answer else { return .denied(.malformed) }
        guard RelayProof.verify(signature: signature, of: challenge, by: nodeID) else { return .denied(.signature) }
        return .proved(nodeID)
    }
}
