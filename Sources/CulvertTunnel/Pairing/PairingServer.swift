import CulvertCore

/// What the host decided about a pairing request.
package enum PairingDecision: Hashable, Sendable {
    /// The invite is redeemed and the token stored.
    case granted(PairingGrant)
    /// Nothing has changed.
    case refused(PairingRefusal)
}

/// The host's side of pairing: one request in, one answer out, whatever the bytes.
package struct PairingServer: Sendable {
    /// What to do with the stream.
    package enum Action: Hashable, Sendable {
        /// The request is not complete.
        case wait
        /// Send the bytes and end the stream. `decision` is for counting failures and for telling the owner.
        case answer([UInt8], PairingDecision)
        /// The answer was given before; there is nothing more to do.
        case done
    }

    private var frames = FrameDecoder(headerLimit: TunnelLimits.pairingHeader, bodyLimit: TunnelLimits.pairingBody)
    private var isDone = false

    /// A server at the start of a stream.
    package init() {}

    /// Takes the next bytes of the request; what follows the frame is not read. `decide` is called at most once in
    /// the life of the stream, with a well-formed request.
    package mutating func receive(
        _ bytes: some Collection<UInt8>, decide: (PairingRequest) -> PairingDecision
    ) -> Action {
        guard !isDone else { return .done }
        do {
            guard case .complete(let frame, _) = try frames.feed(bytes) else { return .wait }
            let request = try PairingRequest(frame)
            return answer(decide(request))
        } catch {
            return answer(.refused(.malformed))
        }
    }

    /// The stream's receiving side ended without a complete request.
    package mutating func ended() -> Action {
        isDone ? .done : answer(.refused(.malformed))
    }

    /// ``TunnelLimits/pairingTime`` is over.
    package mutating func expired() -> Action {
        isDone ? .done : answer(.refused(.timeout))
    }

    private mutating func answer(_ decision: PairingDecision) -> Action {
        isDone = true
        do {
            let frame =
                switch decision {
                case .granted(let grant): try PairingResponse.frame(grant)
                case .refused(let refusal): try PairingResponse.frame(refusal)
                }
            return .answer(frame.encoded, decision)
        } catch {
            // Writing strings and numbers as JSON does not fail; an empty answer is a refusal to every reader.
            return .answer([], decision)
        }
    }
}
