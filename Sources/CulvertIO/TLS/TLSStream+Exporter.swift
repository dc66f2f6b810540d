import CGnuTLS

extension TLSStream {
    /// `count` bytes that only the two ends of this session know (RFC 5705); nil before the handshake is over.
    package func exportKeyingMaterial(label: String, context: [UInt8], count: Int) -> [UInt8]? {
        guard isOpen else { return nil }
        var exported = [CChar](repeating: 0, count: count)
        let result = context.withUnsafeBytes { context in
            gnutls_prf_rfc5705(
                session, label.utf8.count, label, context.count, context.bindMemory(to: CChar.self).baseAddress, count,
                &exported)
        }
        return result == GNUTLS_E_SUCCESS ? exported.map { UInt8(bitPattern: $0) } : nil
    }
}
