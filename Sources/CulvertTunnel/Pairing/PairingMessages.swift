import CulvertCore
import CulvertIdentity

/// What a device asks when it pairs (docs/protocol.md, Pairing).
package struct PairingRequest: Hashable, Sendable {
    /// The single-use token of the invite.
    package let pairingToken: String
    /// What the device calls itself, sanitised; nil when it did not say.
    package let deviceName: String?

    /// A request; `deviceName` is sanitised.
    package init(pairingToken: String, deviceName: String?) {
        self.pairingToken = pairingToken
        self.deviceName = deviceName.flatMap(DeviceName.sanitized)
    }

    private struct Wire: Codable {
        var v: Int
        var kind: String
        var pairingToken: String
        var deviceName: String?
    }

    /// Reads a frame. Throws `framing`.
    package init(_ frame: Frame) throws(TransportError) {
        let wire = try StrictJSON.decode(Wire.self, from: frame.header)
        guard wire.v == 1, wire.kind == "pairRequest" else {
            throw TransportError(.framing, "the message is not a pairing request of version 1")
        }
        guard !wire.pairingToken.isEmpty, wire.pairingToken.utf8.count <= TunnelLimits.pairingToken else {
            throw TransportError(.framing, "the pairing token has an impossible length")
        }
        self.init(pairingToken: wire.pairingToken, deviceName: wire.deviceName)
    }

    /// The frame. Throws `framing` when the token is empty or too long to be one.
    package func frame() throws(TransportError) -> Frame {
        guard !pairingToken.isEmpty, pairingToken.utf8.count <= TunnelLimits.pairingToken else {
            throw TransportError(.framing, "the pairing token has an impossible length")
        }
        return Frame(
            header: try StrictJSON.encode(
                Wire(v: 1, kind: "pairRequest", pairingToken: pairingToken, deviceName: deviceName)))
    }
}

/// What a device gets when pairing succeeded.
package struct PairingGrant: Hashable, Sendable {
    /// The device token; the host keeps only its hash.
    package let deviceToken: String
    /// Where the token is valid.
    package let transports: CredentialTransports

    /// A grant of `deviceToken` on `transports`.
    package init(deviceToken: String, transports: CredentialTransports) {
        self.deviceToken = deviceToken
        self.transports = transports
    }
}

/// Why the host does not pair a device.
package enum PairingRefusal: Hashable, Sendable, CaseIterable {
    /// The request is malformed.
    case malformed
    /// The request did not arrive in time.
    case timeout
    /// No invite has this token. A used or an expired invite may have been forgotten, so the advice is the same.
    case unknownInvite
    /// The invite was used before.
    case usedInvite
    /// The invite has expired.
    case expiredInvite
    /// The invite does not authorise the transport that the request came on.
    case forbiddenTransport
    /// Too many pairings from there failed.
    case blocked
    /// The host could not write its database. The invite is not used.
    case hostState

    /// Whether the attempt counts against its source. What the host is to blame for does not, and a blocked source was
    /// not heard.
    package var countsAsFailure: Bool {
        switch self {
        case .malformed, .timeout, .unknownInvite, .usedInvite, .expiredInvite, .forbiddenTransport: true
        case .blocked, .hostState: false
        }
    }

    /// The status on the wire, an HTTP status code.
    package var status: Int { parts.0 }
    /// One line for people.
    package var error: String { parts.1 }

    private var parts: (Int, String) {
        switch self {
        case .malformed: (400, "the pairing request is malformed")
        case .timeout: (408, "the pairing request did not arrive in time")
        case .unknownInvite: (401, "the invite is not known here; ask for a fresh one")
        case .usedInvite: (401, "the invite was used before; ask for a fresh one")
        case .expiredInvite: (401, "the invite has expired; ask for a fresh one")
        case .forbiddenTransport: (403, "the invite does not authorise this transport")
        case .blocked: (429, "too many pairings failed; wait two minutes")
        case .hostState: (503, "the host could not store the pairing; ask its owner to look at it")
        }
    }
}

/// The host's answer to a pairing request.
package enum PairingResponse: Hashable, Sendable {
    /// The device is paired.
    case granted(PairingGrant)
    /// The device is not paired. `status` is an HTTP status code.
    case refused(status: Int)

    private struct Wire: Codable {
        var v: Int
        var kind: String
        var ok: Bool
        var deviceToken: String?
        var credentialTransports: [String]?
        var status: Int?
        var error: String?
    }

    /// Reads a frame. Throws `framing`. The host's text is not kept: it may hold anything.
    package init(_ frame: Frame) throws(TransportError) {
        let wire = try StrictJSON.decode(Wire.self, from: frame.header)
        guard wire.v == 1, wire.kind == "pairResponse" else {
            throw TransportError(.framing, "the message is not a pairing response of version 1")
        }
        guard wire.ok else {
            self = .refused(status: wire.status ?? 500)
            return
        }
        // Whatever its form, it must fit into a preface and into a header field.
        guard let token = wire.deviceToken, !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            token.utf8.count + 7 <= TunnelLimits.authorization
        else { throw TransportError(.framing, "the pairing response carries no usable device token") }
        self = .granted(
            PairingGrant(
                deviceToken: token,
                transports: wire.credentialTransports.map(CredentialTransports.init(wire:)) ?? .tunnel))
    }

    /// The frame of a grant.
    package static func frame(_ grant: PairingGrant) throws(TransportError) -> Frame {
        Frame(
            header: try StrictJSON.encode(
                Wire(
                    v: 1, kind: "pairResponse", ok: true, deviceToken: grant.deviceToken,
                    credentialTransports: grant.transports.wire)))
    }

    /// The frame of a refusal.
    package static func frame(_ refusal: PairingRefusal) throws(TransportError) -> Frame {
        Frame(
            header: try StrictJSON.encode(
                Wire(v: 1, kind: "pairResponse", ok: false, status: refusal.status, error: refusal.error)))
    }
}

extension PairingRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Never the token.
    package var description: String { "PairingRequest" }
    /// Never the token.
    package var debugDescription: String { description }
    /// Never the token.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension PairingGrant: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Never the token.
    package var description: String { "PairingGrant" }
    /// Never the token.
    package var debugDescription: String { description }
    /// Never the token.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
