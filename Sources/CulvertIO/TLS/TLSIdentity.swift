import CGnuTLS
import CulvertCore
import Glibc

/// Whom a TLS server claims to be: a certificate chain and its key. Immutable, so that any loop may use it.
// @unchecked: GnuTLS's credentials may be shared between threads as long as nobody changes them, and nobody does after
// `init`.
package final class TLSIdentity: @unchecked Sendable {
    let handle: gnutls_certificate_credentials_t
    /// When the certificate ends.
    package let expiry: UnixTime

    /// The identity of PEM text. Throws `state` when it cannot be read or the key is another certificate's.
    package init(certificatePEM: [UInt8], keyPEM: [UInt8]) throws(TransportError) {
        var allocated: gnutls_certificate_credentials_t?
        guard gnutls_certificate_allocate_credentials(&allocated) == GNUTLS_E_SUCCESS, let handle = allocated else {
            throw TransportError(.limit, "there is not enough memory for TLS")
        }
        let result = Self.withDatum(certificatePEM) { certificate in
            Self.withDatum(keyPEM) { gnutls_certificate_set_x509_key_mem(handle, certificate, $0, GNUTLS_X509_FMT_PEM) }
        }
        // The index of the pair, or an error.
        guard result >= 0, let expiry = Self.expiry(of: handle, UInt32(result)) else {
            gnutls_certificate_free_credentials(handle)
            throw result == GNUTLS_E_CERTIFICATE_KEY_MISMATCH
                ? TransportError(.state, "the TLS key does not belong to the certificate")
                : TransportError(
                    .state, "the TLS certificate and key cannot be read; both must be PEM, without a password")
        }
        self.handle = handle
        self.expiry = expiry
    }

    deinit {
        gnutls_certificate_free_credentials(handle)
    }

    private static func expiry(of handle: gnutls_certificate_credentials_t, _ index: UInt32) -> UnixTime? {
        var list: UnsafeMutablePointer<gnutls_x509_crt_t?>?
        var count: UInt32 = 0
        guard gnutls_certificate_get_x509_crt(handle, index, &list, &count) == GNUTLS_E_SUCCESS, let list else {
            return nil
        }
        defer {
            for index in 0..<Int(count) { gnutls_x509_crt_deinit(list[index]) }
            // GnuTLS allocates by malloc(3) unless told otherwise, which nobody does here.
            free(list)
        }
        guard count > 0 else { return nil }
        let time = gnutls_x509_crt_get_expiration_time(list[0])
        return time == -1 ? nil : UnixTime(seconds: Int64(time))
    }

    static func withDatum<R>(_ bytes: [UInt8], _ body: (UnsafePointer<gnutls_datum_t>) -> R) -> R {
        var copy = bytes
        return copy.withUnsafeMutableBufferPointer { bytes in
            withUnsafePointer(to: gnutls_datum_t(data: bytes.baseAddress, size: UInt32(bytes.count)), body)
        }
    }
}

/// Whom a TLS client believes. Immutable, so that any loop may use it.
// @unchecked: as for ``TLSIdentity``.
package final class TLSTrust: @unchecked Sendable {
    let handle: gnutls_certificate_credentials_t

    /// Trusts the system's authorities, or only those in `authoritiesPEM`. Throws `state` when there are none.
    package init(authoritiesPEM: [UInt8]? = nil) throws(TransportError) {
        var allocated: gnutls_certificate_credentials_t?
        guard gnutls_certificate_allocate_credentials(&allocated) == GNUTLS_E_SUCCESS, let handle = allocated else {
            throw TransportError(.limit, "there is not enough memory for TLS")
        }
        self.handle = handle
        let count =
            if let authoritiesPEM {
                TLSIdentity.withDatum(authoritiesPEM) {
                    gnutls_certificate_set_x509_trust_mem(handle, $0, GNUTLS_X509_FMT_PEM)
                }
            } else {
                gnutls_certificate_set_x509_system_trust(handle)
            }
        guard count > 0 else {
            throw authoritiesPEM == nil
                ? TransportError(.state, "this system has no certificate authorities; install ca-certificates")
                : TransportError(.state, "there is no certificate in the file of certificate authorities")
        }
    }

    deinit {
        gnutls_certificate_free_credentials(handle)
    }
}
