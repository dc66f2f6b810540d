import CulvertCore

/// The device's side of pairing: sends the request once, on one stream, and understands the answer.
///
/// An invite works once. So the request is never sent again, on this stream or another, and from the moment it has
/// been handed out every failure has a kind that forbids trying another route.
package struct PairingClient: Sendable {
    /// What came of some bytes.
    package enum Progress: Hashable, Sendable {
        /// The answer is not complete.
        case wait
        /// The device is paired; store the token before anything else.
        case paired(PairingGrant)
    }

    private let request: PairingRequest
    private var isSent = false
    private var frames = FrameDecoder(headerLimit: TunnelLimits.pairingHeader, bodyLimit: TunnelLimits.pairingBody)

    /// A client that will send `request`.
    package init(_ request: PairingRequest) {
        self.request = request
    }

    /// The bytes to send; the stream's sending side ends after them, deployed hosts wait for that. Nil when they were
    /// taken before. Throws `framing` when the request cannot be written.
    package mutating func takeRequest() throws(TransportError) -> [UInt8]? {
        guard !isSent else { return nil }
        let bytes = try request.frame().encoded
        isSent = true
        return bytes
    }

    /// Takes the next bytes of the answer; what follows the frame is not read. Throws `authentication` or another
    /// kind that never falls back.
    package mutating func receive(_ bytes: some Collection<UInt8>) throws(TransportError) -> Progress {
        let response: PairingResponse
        do {
            guard case .complete(let frame, _) = try frames.feed(bytes) else { return .wait }
            response = try PairingResponse(frame)
        } catch {
            throw TransportError(.framing, "the host's answer to the pairing is malformed; ask for a fresh invite")
        }
        switch response {
        case .granted(let grant): return .paired(grant)
        case .refused(let status): throw Self.error(status)
        }
    }

    /// What the failure is when the stream or the connection ended, or the time ran out, before an answer.
    ///
    /// Before the request went out the host was merely not reached. Afterwards nobody knows whether the invite is
    /// used: that is an `authentication` failure, which no route may retry.
    package var lost: TransportError {
        isSent
            ? TransportError(.authentication, "the pairing's result is unknown; ask for a fresh invite")
            : TransportError(.unavailable, "the connection to the host ended before the pairing began")
    }

    private static func error(_ status: Int) -> TransportError {
        switch status {
        case 400, 408: TransportError(.protocolViolation, "the host did not understand the pairing request")
        case 401: TransportError(.authentication, "the invite is unknown, used or expired; ask for a fresh one")
        case 403: TransportError(.authentication, "the invite does not authorise the tunnel; ask for another one")
        case 429:
            TransportError(.authentication, "too many pairings failed; wait two minutes and ask for a fresh invite")
        case 500...599: TransportError(.state, "the host could not store the pairing; ask its owner to look at it")
        default: TransportError(.authentication, "the host refused the pairing; ask for a fresh invite")
        }
    }
}
