import CulvertCore
import CulvertIdentity

/// How a client proves to a relay that it has a node's secret key.
enum RelayProof {
    /// Part of the protocol: it keeps a signature for a relay from meaning anything elsewhere.
    private static let challengeContext = "iroh-relay handshake v1 challenge signature"

    static func sign(_ challenge: RelayChallenge, with key: SecretKey) -> [UInt8] {
        key.sign(message(challenge))
    }

    static func verify(signature: [UInt8], of challenge: RelayChallenge, by nodeID: NodeID) -> Bool {
        nodeID.verify(signature: signature, of: message(challenge))
    }

    private static func message(_ challenge: RelayChallenge) -> [UInt8] {
        BLAKE3.deriveKey(context: challengeContext.utf8, material: challenge.bytes)
    }
}

/// The proof that travels in a header of the upgrade request over TLS, and saves the challenge's round trip.
///
/// Both ends export the same 32 bytes from the TLS session (RFC 5705, RFC 8446 section 7.5). The client signs the first
/// half and shows the second, so the signature is worth nothing on another TLS session.
package struct RelayTLSProof: Hashable, Sendable {
    /// The request's field.
    package static let headerName = "x-iroh-relay-client-auth-v1"
    /// The exporter's label.
    package static let exporterLabel = "iroh-relay handshake v1"
    /// The exporter's context for a client: the bytes of its node ID.
    package static func exporterContext(_ nodeID: NodeID) -> [UInt8] { nodeID.bytes }

    private static let signedCount = RelayLimits.exporter / 2
    private static let shownCount = RelayLimits.exporter - signedCount
    private static let byteCount = NodeID.byteCount + 1 + SecretKey.signatureByteCount + shownCount

    /// Who claims to be there.
    package let nodeID: NodeID
    private let signature: [UInt8]
    private let shown: [UInt8]

    /// The client's proof; nil unless there are 32 bytes of `exported` keying material.
    package init?(key: SecretKey, exported: [UInt8]) {
        guard exported.count == RelayLimits.exporter else { return nil }
        nodeID = key.nodeID
        signature = key.sign(exported.prefix(Self.signedCount))
        shown = Array(exported.dropFirst(Self.signedCount))
    }

    /// A proof out of a request; nil when it is malformed. It proves nothing until ``verify(exported:)``.
    package init?(headerValue: String) {
        guard let bytes = Base64URL.decode(headerValue), bytes.count == Self.byteCount else { return nil }
        var reader = ByteReader(bytes)
        guard let key = reader.take(NodeID.byteCount), let nodeID = NodeID(bytes: key),
            reader.byte() == UInt8(SecretKey.signatureByteCount),
            let signature = reader.take(SecretKey.signatureByteCount), let shown = reader.take(reader.remaining)
        else { return nil }
        self.nodeID = nodeID
        self.signature = Array(signature)
        self.shown = Array(shown)
    }

    /// The field's value: 151 characters of base64url.
    package var headerValue: String {
        Base64URL.encode(nodeID.bytes + [UInt8(SecretKey.signatureByteCount)] + signature + shown)
    }

    /// Whether the proof belongs to the TLS session that `exported` these 32 bytes for ``exporterContext(_:)``. When it
    /// does not, the server sends a challenge as if there were none: a proxy may have ended the TLS session.
    package func verify(exported: [UInt8]) -> Bool {
        exported.count == RelayLimits.exporter && shown.elementsEqual(exported.dropFirst(Self.signedCount))
            && nodeID.verify(signature: signature, of: exported.prefix(Self.signedCount))
    }
}
