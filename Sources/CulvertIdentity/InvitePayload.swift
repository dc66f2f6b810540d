import CulvertCore

/// The transports that an invite authorises. The raw values are historical wire names.
public enum TransportPreference: String, Codable, Hashable, Sendable {
    /// HTTPS only.
    case httpOnly
    /// The tunnel only.
    case tunnelOnly = "irohOnly"
    /// Both. The wire name sounds like an order of preference and is none.
    case tunnelAndHTTP = "irohPreferred"

    /// What a device that pairs with this invite may use.
    public var credentialTransports: CredentialTransports {
        switch self {
        case .httpOnly: [.http]
        case .tunnelOnly: [.tunnel]
        case .tunnelAndHTTP: [.tunnel, .http]
        }
    }
}

/// The HTTPS way to a host, as an invite describes it. Read and kept; nothing here acts on it.
public struct HTTPTransport: Hashable, Sendable, Codable {
    /// The protocol's scheme.
    public enum Scheme: String, Codable, Sendable {
        /// Plain HTTP, which is never selected.
        case http
        /// HTTPS.
        case https
    }

    /// Host name or IP address.
    public let host: String
    /// TCP port.
    public let port: UInt16
    /// Plain or HTTPS.
    public let scheme: Scheme
    /// The pin of the host's certificate.
    public let tlsCertFingerprint: String?

    /// The transport to `host` and `port`.
    public init(host: String, port: UInt16, scheme: Scheme, tlsCertFingerprint: String? = nil) {
        self.host = host
        self.port = port
        self.scheme = scheme
        self.tlsCertFingerprint = tlsCertFingerprint
    }
}

/// What an invite says, without its signature.
public struct InvitePayload: Sendable, Equatable {
    /// The server's name.
    public let name: String
    /// The single-use secret.
    public let pairingToken: PairingToken
    /// The transports that the invite authorises.
    public let preference: TransportPreference
    /// When the invite ends; nil for invites of peers that do not say so.
    public let expiresAt: UnixTime?
    /// The way by tunnel.
    public let tunnel: ServerMetadata?
    /// The way by HTTPS.
    public let http: HTTPTransport?

    /// An invite's content; ``Invite/make(_:key:allowInsecureRelay:)`` checks it.
    public init(
        name: String, pairingToken: PairingToken, preference: TransportPreference, expiresAt: UnixTime?,
        tunnel: ServerMetadata?, http: HTTPTransport? = nil
    ) {
        self.name = name
        self.pairingToken = pairingToken
        self.preference = preference
        self.expiresAt = expiresAt
        self.tunnel = tunnel
        self.http = http
    }
}

/// The payload's JSON, version 4.
struct PayloadJSON: Codable {
    static let version = 4

    struct Transports: Codable {
        var iroh: ServerMetadata?
        var http: HTTPTransport?
    }

    var v: Int
    var name: String
    var pairingToken: String
    var fingerprint: String
    var preference: TransportPreference
    var expiresAt: String?
    var transports: Transports
}

/// The part of the payload that is looked at before it is known to be of this version.
struct PayloadHead: Decodable {
    let v: Int?
    let fingerprint: String?

    private enum CodingKeys: CodingKey {
        case v
        case fingerprint
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        // A value of another type is as good as none; which fault that is depends on the field.
        v = try? container.decode(Int.self, forKey: .v)
        fingerprint = try? container.decode(String.self, forKey: .fingerprint)
    }
}
