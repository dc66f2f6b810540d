import CGnuTLS
import CulvertCore
import CulvertIdentity

/// Owner of the GnuTLS credentials that prove a node's key as a raw public key (RFC 7250).
final class NodeCredentials {
    let handle: gnutls_certificate_credentials_t

    /// Credentials for `key`; throws `state` when GnuTLS refuses them, which means that the library is unusable.
    init(key: SecretKey) throws(TransportError) {
        var credentials: gnutls_certificate_credentials_t?
        guard gnutls_certificate_allocate_credentials(&credentials) == GNUTLS_E_SUCCESS, let credentials else {
            throw TransportError(.state, "GnuTLS could not make credentials: out of memory")
        }
        handle = credentials
        var publicKey = RawPublicKey.encode(key.nodeID)
        var privateKey = RawPublicKey.privateKeyPrefix + key.seed
        defer { privateKey.withUnsafeMutableBytes { gnutls_memset($0.baseAddress, 0, $0.count) } }
        let result = publicKey.withUnsafeMutableBytes { publicBytes in
            privateKey.withUnsafeMutableBytes { privateBytes in
                var spki = datum(publicBytes)
                var pkcs8 = datum(privateBytes)
                return gnutls_certificate_set_rawpk_key_mem(
                    credentials, &spki, &pkcs8, GNUTLS_X509_FMT_DER, nil, 0, nil, 0, 0)
            }
        }
        guard result == GNUTLS_E_SUCCESS else {
            throw TransportError(
                .state, "GnuTLS refused the identity key: is it built with Ed25519 and raw public keys?")
        }
    }

    deinit {
        gnutls_certificate_free_credentials(handle)
    }
}

/// An Ed25519 key as a raw public key: a SubjectPublicKeyInfo (RFC 8410 section 4).
enum RawPublicKey {
    /// DER of the SubjectPublicKeyInfo up to the 32 key bytes.
    private static let prefix: [UInt8] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]
    /// DER of the PKCS #8 private key (RFC 8410 section 7) up to the 32 seed bytes.
    static let privateKeyPrefix: [UInt8] = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
    ]

    static func encode(_ node: NodeID) -> [UInt8] {
        prefix + node.bytes
    }

    /// The node ID in a peer's SubjectPublicKeyInfo; nil when it is not an Ed25519 key.
    static func decode(_ der: UnsafeRawBufferPointer) -> NodeID? {
        guard der.count == prefix.count + 32, der.prefix(prefix.count).elementsEqual(prefix) else { return nil }
        return NodeID(bytes: Array(der.dropFirst(prefix.count)))
    }
}

/// A view of bytes for GnuTLS, which does not write through it.
func datum(_ bytes: UnsafeMutableRawBufferPointer) -> gnutls_datum_t {
    gnutls_datum_t(data: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), size: UInt32(bytes.count))
}
