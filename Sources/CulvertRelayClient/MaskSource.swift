import CulvertIO
import CulvertRelay

/// Unpredictable masks for a client's WebSocket frames (RFC 6455 section 5.3), many from one call of the system.
struct MaskSource {
    private var words = [UInt32](repeating: 0, count: 256)
    private var used = 256

    mutating func next() -> WebSocketMask {
        if used == words.count {
            words.withUnsafeMutableBytes { SystemRandom.fill($0) }
            used = 0
        }
        defer { used += 1 }
        return WebSocketMask(random: words[used])
    }
}
