import CulvertCore
import CulvertIdentity
import FoundationEssentials
import Testing

/// Values that the tests share.
enum Fixture {
    /// The day on which the tests take place: 2026-01-02T03:04:05Z.
    static let now = UnixTime(seconds: 1_767_323_045)

    /// The key of the ticket vectors: seed 32 x 01, or 32 x another byte.
    static func key(_ byte: UInt8 = 1) throws -> SecretKey {
        try #require(SecretKey(seed: [UInt8](repeating: byte, count: 32)))
    }

    static func ticket(_ key: SecretKey) throws -> EndpointTicket {
        try EndpointTicket(
            nodeID: key.nodeID,
            addresses: [
                .relay("https://relay.example.com"),
                .direct(SocketAddress(.v4(0xc0a8_0105), port: 4433)),
            ])
    }

    static func payload(_ key: SecretKey) throws -> InvitePayload {
        InvitePayload(
            name: "studio", pairingToken: try #require(PairingToken("pt_secret-of-the-test")),
            preference: .tunnelOnly, expiresAt: now + .seconds(90),
            tunnel: ServerMetadata(
                ticket: try ticket(key),
                relayURLs: [try RelayURL("https://second.example.com", allowInsecure: false)]))
    }
}

/// An invite that is put together by hand, so that a test can spoil one part and keep the rest right.
struct Forgery {
    var scheme = "culvert://connect"
    var linkVersion = "4"
    var envelopeVersion = "4"
    var algorithm = "ed25519"
    var payload: [String: Any] = [:]
    /// Replaces the payload's JSON.
    var payloadText: String?
    var publicKey: [UInt8]
    /// Changes the signed text after it was signed.
    var tamper: (String) -> String = { $0 }
    var tamperSignature: ([UInt8]) -> [UInt8] = { $0 }
    private let key: SecretKey

    init() throws {
        key = try Fixture.key()
        publicKey = key.nodeID.bytes
        payload = [
            "v": 4, "name": "studio", "pairingToken": "pt_1", "preference": "irohOnly",
            "fingerprint": Fingerprint(of: key.nodeID.bytes).description, "expiresAt": "2026-01-02T03:05:35Z",
            "transports": ["iroh": try Self.metadata(key)],
        ]
    }

    static func metadata(_ key: SecretKey) throws -> [String: Any] {
        [
            "version": 2, "nodeId": key.nodeID.description, "alpns": ["oppi/http/1", "oppi/pair/1"],
            "addressMode": "ticket", "ticket": try Fixture.ticket(key).description,
            "relayUrls": ["https://second.example.com"],
        ]
    }

    /// Sets a field of the metadata; nil removes it.
    mutating func setMetadata(_ field: String, _ value: Any?) throws {
        var metadata = try Self.metadata(key)
        metadata[field] = value
        payload["transports"] = ["iroh": metadata]
    }

    var envelope: String {
        let json = payloadText ?? JSONText.object(payload)
        let signed = Base64URL.encode(json.utf8)
        let signature = Base64URL.encode(tamperSignature(key.sign(signed.utf8)))
        return """
            {"v":\(envelopeVersion),"alg":"\(algorithm)","signedPayload":"\(tamper(signed))",\
            "publicKey":"\(Base64URL.encode(publicKey))","signature":"\(signature)"}
            """
    }

    var link: String { "\(scheme)?v=\(linkVersion)&invite=\(Base64URL.encode(envelope.utf8))" }

    func parse(allowInsecureRelay: Bool = false) throws(TransportError) -> Invite {
        try Invite.parse(link, now: Fixture.now, allowInsecureRelay: allowInsecureRelay)
    }

    /// The fault with which the invite is refused; nil when it is accepted.
    func fault() -> InviteFault? {
        CulvertIdentityTests.fault { try parse() }
    }
}

/// JSON of loosely typed values, which only tests need.
enum JSONText {
    static func object(_ fields: [String: Any]) -> String {
        "{" + fields.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\(value($0.value))" }.joined(separator: ",") + "}"
    }

    private static func value(_ value: Any) -> String {
        switch value {
        case let number as Int: String(number)
        case let text as String: "\"\(text)\""
        case let list as [Any]: "[" + list.map { Self.value($0) }.joined(separator: ",") + "]"
        case let fields as [String: Any]: object(fields)
        default: "null"
        }
    }
}

/// The fault that `body` throws; nil when it throws nothing.
func fault<T>(_ body: () throws -> T) -> InviteFault? {
    do {
        _ = try body()
        return nil
    } catch {
        if case .metadata(let fault)? = (error as? TransportError)?.kind { return fault }
        Issue.record("not a fault of the invite: \(error)")
        return nil
    }
}
