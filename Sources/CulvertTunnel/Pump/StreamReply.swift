import CulvertCore
import CulvertIO
import CulvertTransport

extension QUICStream {
    /// Sends `bytes` as the last ones and wants nothing more from the peer.
    package func reply(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { sendQueue.append($0) }
        finish()
        stopReceiving(.notNeeded)
    }

    /// Sends the answer to a request that is turned away (docs/protocol.md, Refusals).
    package func refuse(_ refusal: Refusal) {
        reply(refusal.response)
    }
}
