import CSodium

/// The only source of randomness of this module.
package enum Random {
    /// `count` bytes from the operating system's generator, fit for keys. Aborts the process when there is none,
    /// which libsodium does on purpose.
    package static func bytes(_ count: Int) -> [UInt8] {
        Sodium.start()
        var bytes = [UInt8](repeating: 0, count: count)
        randombytes_buf(&bytes, count)
        return bytes
    }
}

/// SHA-256 (FIPS 180-4).
package enum SHA256 {
    /// Bytes of a digest.
    package static let count = 32

    /// The digest of `bytes`.
    package static func digest(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        let input = Array(bytes)
        var digest = [UInt8](repeating: 0, count: count)
        crypto_hash_sha256(&digest, input, UInt64(input.count))
        return digest
    }
}

/// The C library's one-time set-up.
enum Sodium {
    // Hashing and signatures work without it, it only picks faster code and opens the random source; libsodium
    // itself aborts when that source is missing. So there is no failure to report here.
    private static let started: Bool = sodium_init() >= 0

    /// Sets libsodium up once; later calls cost a load.
    static func start() {
        _ = started
    }
}
