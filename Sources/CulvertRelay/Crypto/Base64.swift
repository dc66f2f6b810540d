import CulvertCore

/// RFC 4648 section 4, with padding, as WebSocket's handshake uses it.
enum Base64 {
    static func encode(_ bytes: some Collection<UInt8>) -> String {
        let text = Base64URL.encode(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        return String(text) + String(repeating: "=", count: (3 - bytes.count % 3) % 3)
    }

    /// nil unless `text` is exactly what ``encode(_:)`` gives for some bytes.
    static func decode(_ text: String) -> [UInt8]? {
        guard !text.contains("-"), !text.contains("_"), text.utf8.count % 4 == 0 else { return nil }
        let bare = text.hasSuffix("==") ? text.dropLast(2) : text.hasSuffix("=") ? text.dropLast() : text[...]
        let urlSafe = String(bare.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
        guard let bytes = Base64URL.decode(urlSafe), encode(bytes) == text else { return nil }
        return bytes
    }
}
