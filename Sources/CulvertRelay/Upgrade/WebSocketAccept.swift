import CulvertCore

/// The two values by which a server shows that it read the request (RFC 6455 section 1.3).
enum WebSocketAccept {
    /// Bytes of the nonce in `Sec-WebSocket-Key`.
    static let nonceCount = 16
    private static let suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key`.
    static func value(forKey key: String) throws(TransportError) -> String {
        Base64.encode(try SHA1.digest((key + suffix).utf8))
    }

    /// Whether `key` is the base64 text of 16 bytes.
    static func isKey(_ key: String) -> Bool {
        Base64.decode(key)?.count == nonceCount
    }
}
