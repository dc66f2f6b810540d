/// A certificate that signs itself, for localhost and 127.0.0.1, and its key, which guards nothing.
public enum TestCertificate {
    /// The certificate.
    public static let certificatePEM = Array(
        """
        -----BEGIN CERTIFICATE-----
        MIIBkTCCATegAwIBAgIUdtNtTsUXnLe4JTgdWLLlr0jogvwwCgYIKoZIzj0EAwIw
        DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMzAxMDA5MTlaGA8yMTI2MTEwNjEwMDkx
        OVowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPAn
        AIPNuTFcGxoo1YzqBqyCkW1Hm+YURWOagOkWHLwdDLyRc84w3n3iEWyoHzrL5EBx
        PqkEMo8pAGbq+GbYqFejbzBtMB0GA1UdDgQWBBQ1P6c30KmKr5tzsdW/OFoRUXi4
        7TAfBgNVHSMEGDAWgBQ1P6c30KmKr5tzsdW/OFoRUXi47TAPBgNVHRMBAf8EBTAD
        AQH/MBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAAATAKBggqhkjOPQQDAgNIADBF
        AiBnlTTY0dp69ME9xWDVXICID3x5Kf7m0nF9geMLRYE5lQIhAPzgVpTFmBBnPJO4
        h0JpdFsxV06NGdBstw1uwMIl8/83
        -----END CERTIFICATE-----

        """.utf8)

    /// The key.
    public static let keyPEM = Array(
        """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgbBxOjk7R7/BWtQ9m
        DquAT38R6YwDkO99mOuGpqUOihGhRANCAATwJwCDzbkxXBsaKNWM6gasgpFtR5vm
        FEVjmoDpFhy8HQy8kXPOMN594hFsqB86y+RAcT6pBDKPKQBm6vhm2KhX
        -----END PRIVATE KEY-----

        """.utf8)
}
