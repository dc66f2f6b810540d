import CGnuTLS
import CulvertCore

/// SHA-1 (FIPS 180-4), for the WebSocket handshake only: it guards against confused servers, not attackers.
enum SHA1 {
    static let count = 20

    /// The digest. Throws `state` when GnuTLS has SHA-1 disabled.
    static func digest(_ bytes: some Sequence<UInt8>) throws(TransportError) -> [UInt8] {
        let input = Array(bytes)
        var digest = [UInt8](repeating: 0, count: count)
        guard gnutls_hash_fast(GNUTLS_DIG_SHA1, input, input.count, &digest) == GNUTLS_E_SUCCESS else {
            throw TransportError(.state, "GnuTLS refuses SHA-1, which WebSocket needs; check the crypto policy")
        }
        return digest
    }
}
