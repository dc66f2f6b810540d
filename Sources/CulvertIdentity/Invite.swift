import CulvertCore
import FoundationEssentials

/// A signed, single-use invitation to pair with a host. It carries a secret, so it never prints by accident.
public struct Invite: Sendable {
    /// The link, which is what people pass on.
    public let link: String
    /// What the invite says.
    public let payload: InvitePayload
    /// The key that signed it. A host of ours signs with its node key; deployed peers use a key of their own.
    public let signer: NodeID
    /// The host's checked address.
    public let endpoint: ValidatedEndpoint

    /// The longest time that an invite may be valid.
    public static let maximumLifetime = Duration.seconds(Limits.inviteLifetimeSeconds)

    /// The short name of the key that signed the invite.
    public var fingerprint: Fingerprint { Fingerprint(of: signer.bytes) }
}

extension Invite: Redacted {}

extension Invite {
    /// Signs `payload` with `key`.
    ///
    /// - Parameter allowInsecureRelay: the developer switch for `http://` and loopback relays.
    /// - Throws: `.metadata` when the payload is one that readers would refuse.
    public static func make(
        _ payload: InvitePayload, key: SecretKey, allowInsecureRelay: Bool = false
    ) throws(TransportError) -> Invite {
        guard DisplayName.isAcceptable(payload.name) else { throw InviteError.name }
        var expiresAt: String?
        if let date = payload.expiresAt {
            guard let text = RFC3339.text(date) else { throw InviteError.tooFarAhead }
            expiresAt = text
        }
        let endpoint = try endpoint(of: payload, requiredALPNs: [], allowInsecureRelay: allowInsecureRelay)
        let publicKey = key.nodeID.bytes
        let json = try encode(
            PayloadJSON(
                v: PayloadJSON.version, name: payload.name, pairingToken: payload.pairingToken.text,
                fingerprint: Fingerprint(of: publicKey).description, preference: payload.preference,
                expiresAt: expiresAt, transports: .init(iroh: payload.tunnel, http: payload.http)),
            limit: Limits.payloadBytes)
        let signedPayload = Base64URL.encode(json)
        let envelope = try encode(
            EnvelopeJSON(
                v: EnvelopeJSON.version, alg: EnvelopeJSON.algorithm, signedPayload: signedPayload,
                publicKey: Base64URL.encode(publicKey),
                signature: Base64URL.encode(key.sign(signedPayload.utf8))),
            limit: Limits.envelopeBytes)
        return Invite(
            link: InviteLink.text(envelope: envelope), payload: payload, signer: key.nodeID, endpoint: endpoint)
    }

    /// Reads and checks an invite link. The checks come in the order of ``InviteFault`` and the first that fails is
    /// the error.
    ///
    /// - Parameters:
    ///   - now: this machine's date, against which the expiry is checked with a tolerance of 60 s.
    ///   - requiredALPNs: groups of application protocols; of each group the host must offer at least one.
    ///   - allowInsecureRelay: the developer switch for `http://` and loopback relays.
    /// - Throws: `.metadata` with the first fault.
    public static func parse(
        _ text: String, now: UnixTime, requiredALPNs: [[String]] = [ALPN.pairing, ALPN.http],
        allowInsecureRelay: Bool = false
    ) throws(TransportError) -> Invite {
        let (json, signer) = try openEnvelope(InviteLink.envelope(text))
        let payload = try readPayload(json, signer: signer)
        if let expiresAt = payload.expiresAt { try checkExpiry(expiresAt, now: now) }
        let endpoint = try endpoint(of: payload, requiredALPNs: requiredALPNs, allowInsecureRelay: allowInsecureRelay)
        return Invite(link: text, payload: payload, signer: signer, endpoint: endpoint)
    }

    /// Shape, algorithm, signature: gives the payload's bytes and the key that signed them.
    private static func openEnvelope(_ bytes: [UInt8]) throws(TransportError) -> (json: [UInt8], signer: NodeID) {
        let envelope = try decode(EnvelopeJSON.self, bytes, orThrow: InviteError.envelope)
        guard envelope.v == EnvelopeJSON.version else { throw InviteError.envelopeVersion }
        guard let publicKey = Base64URL.decode(envelope.publicKey),
            let signature = Base64URL.decode(envelope.signature),
            let json = Base64URL.decode(envelope.signedPayload), json.count <= Limits.payloadBytes
        else { throw InviteError.envelope }
        guard envelope.alg == EnvelopeJSON.algorithm else { throw InviteError.algorithm }
        // The signature is over the text as it came, so no re-encoding of ours can matter.
        guard let signer = NodeID(bytes: publicKey),
            signer.verify(signature: signature, of: envelope.signedPayload.utf8)
        else { throw InviteError.signature }
        return (json, signer)
    }

    /// Fingerprint, version, then the form of everything else.
    private static func readPayload(_ json: [UInt8], signer: NodeID) throws(TransportError) -> InvitePayload {
        let head = try decode(PayloadHead.self, json, orThrow: InviteError.payload)
        guard let fingerprint = head.fingerprint, Fingerprint(fingerprint) == Fingerprint(of: signer.bytes) else {
            throw InviteError.fingerprint
        }
        guard head.v == PayloadJSON.version else { throw InviteError.version }
        let payload = try decode(PayloadJSON.self, json, orThrow: InviteError.payload)
        try payload.transports.iroh?.checkVersion()
        guard DisplayName.isAcceptable(payload.name) else { throw InviteError.name }
        guard let pairingToken = PairingToken(payload.pairingToken) else { throw InviteError.payload }
        var expiresAt: UnixTime?
        if let text = payload.expiresAt {
            guard let date = RFC3339.date(text) else { throw InviteError.payload }
            expiresAt = date
        }
        return InvitePayload(
            name: payload.name, pairingToken: pairingToken, preference: payload.preference, expiresAt: expiresAt,
            tunnel: payload.transports.iroh, http: payload.transports.http)
    }

    private static func checkExpiry(_ expiresAt: UnixTime, now: UnixTime) throws(TransportError) {
        let skew = Duration.seconds(Limits.clockSkewSeconds)
        guard now <= expiresAt + skew else { throw InviteError.expired }
        // No host issues an invite for longer, so this machine's clock must be behind, or the host's ahead.
        guard expiresAt <= now + maximumLifetime + skew else { throw InviteError.clock }
    }

    private static func endpoint(
        of payload: InvitePayload, requiredALPNs: [[String]], allowInsecureRelay: Bool
    ) throws(TransportError) -> ValidatedEndpoint {
        guard payload.preference.credentialTransports.contains(.tunnel), let tunnel = payload.tunnel else {
            throw InviteError.noTunnel
        }
        return try tunnel.validate(requiredALPNs: requiredALPNs, allowInsecureRelay: allowInsecureRelay)
    }
}

// MARK: - JSON

/// The envelope's JSON, version 4.
private struct EnvelopeJSON: Codable {
    static let version = 4
    static let algorithm = "ed25519"

    var v: Int
    var alg: String
    var signedPayload: String
    var publicKey: String
    var signature: String
}

extension Invite {
    private static func encode(_ value: some Encodable, limit: Int) throws(TransportError) -> [UInt8] {
        let encoder = JSONEncoder()
        // The same invite gives the same link, and slashes in URLs cost no second character.
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else { throw InviteError.payload }
        guard data.count <= limit else { throw InviteError.tooLarge }
        return Array(data)
    }

    private static func decode<Value: Decodable>(
        _ type: Value.Type, _ json: [UInt8], orThrow error: TransportError
    ) throws(TransportError) -> Value {
        guard let value = try? JSONDecoder().decode(type, from: Data(json)) else { throw error }
        return value
    }
}

private enum InviteError {
    static let envelope = TransportError(.metadata(.envelope), "the invite is damaged; copy the link again, whole")
    static let envelopeVersion = TransportError(
        .metadata(.envelope), "the invite is of another version than 4; update Culvert on both sides")
    static let payload = TransportError(
        .metadata(.envelope), "the invite is signed but its content is malformed; make another one on the host")
    static let name = TransportError(
        .metadata(.envelope),
        "the server's name is not 1 to 128 bytes of printable text; give the host another one and invite again")
    static let tooLarge = TransportError(
        .metadata(.envelope), "the invite would be too large; give the host a shorter name or fewer relays")
    static let algorithm = TransportError(
        .metadata(.algorithm), "the invite is signed with an algorithm that this version does not know; update it")
    static let signature = TransportError(
        .metadata(.signature), "the invite's signature is wrong: the link was damaged or forged; ask for another one")
    static let fingerprint = TransportError(
        .metadata(.fingerprint), "the invite's fingerprint is not that of its key; ask for another one")
    static let version = TransportError(
        .metadata(.version), "the invite's content is of another version than 4; update Culvert on both sides")
    static let expired = TransportError(
        .metadata(.expired),
        "the invite has expired; make another one on the host, or check the clocks of both machines if it is fresh")
    static let clock = TransportError(
        .metadata(.clock),
        "the invite's expiry is more than 30 days ahead of this machine's clock; check the clocks of both machines")
    static let tooFarAhead = TransportError(.metadata(.clock), "the invite's expiry is no date that can be written")
    static let noTunnel = TransportError(
        .metadata(.noTunnel), "the invite offers no tunnel to the host; make another one that does")
}
