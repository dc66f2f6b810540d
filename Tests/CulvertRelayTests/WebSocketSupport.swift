import CulvertCore
import Testing

@testable import CulvertRelay

/// An event that outlives its buffer.
enum Received: Hashable {
    case binary([UInt8])
    case text
    case ping([UInt8])
    case pong
    case close(WebSocketCloseCode?)
    case fault(WebSocketFault)

    init(_ event: WebSocketEvent) {
        switch event {
        case .binary(let bytes): self = .binary(Array(bytes))
        case .text: self = .text
        case .ping(let bytes): self = .ping(Array(bytes))
        case .pong: self = .pong
        case .close(let code): self = .close(code)
        }
    }
}

/// Everything that comes out of `pieces`, up to and with the first fault.
func receive(_ pieces: [[UInt8]], from sender: RelaySide, limit: Int = RelayLimits.message) -> [Received] {
    var decoder = WebSocketDecoder(sender: sender, messageLimit: limit)
    var received: [Received] = []
    for var piece in pieces {
        let fault: WebSocketFault? = piece.withUnsafeMutableBytes { buffer in
            var input = buffer
            do throws(WebSocketFault) {
                while let event = try decoder.next(&input) { received.append(Received(event)) }
                #expect(input.isEmpty)
                return nil
            } catch {
                return error
            }
        }
        if let fault { return received + [.fault(fault)] }
    }
    return received
}

/// The mask of frames that a test writes.
let testMask = WebSocketMask(random: 0x1234_5678)

func frame(
    _ opcode: WebSocketOpcode, _ payload: [UInt8], final: Bool = true, masked: Bool = true
) -> [UInt8] {
    WebSocketEncoder.encode(opcode, payload, masked ? testMask : nil, isFinal: final)
}
