import CulvertCore
import CulvertIdentity
import CulvertTestSupport
import Testing

@testable import CulvertRelay

@Suite("Relay frames")
struct RelayFrameTests {
    static let publicKey = "197f6b23e16c8532c6abc838facd5ea789be0c76b2920334039bfa8b3d368d61"
    static let signature =
        "a28b5ebc6a930b5d80ad5aca2a8e48ad4a064e699c0866674c8b8e61a5f4ea940ee8b9f06732930250ac0735555abe77"
        + "e8df740165edc3163be432f0e4f3cf0f"

    /// The frames without datagrams as iroh writes them, with those who may send them.
    static func vectors() throws -> [(frame: RelayFrame, hex: String, rules: RelayRules)] {
        let node = try key().nodeID
        let challenge = try #require(RelayChallenge(bytes: Array(0..<16)))
        func handshake(_ sender: RelaySide) -> RelayRules {
            RelayRules(sender: sender, phase: .handshake, version: .v2)
        }
        func server(_ version: RelayVersion) -> RelayRules {
            RelayRules(sender: .server, phase: .established, version: version)
        }
        let payload: UInt64 = 0x2a2a_2a2a_2a2a_2a2a
        return [
            (.serverChallenge(challenge), "00000102030405060708090a0b0c0d0e0f", handshake(.server)),
            (.clientAuth(node, signature: .init(hex: signature)), "01\(publicKey)40\(signature)", handshake(.client)),
            (.serverConfirmsAuth, "02", handshake(.server)),
            (
                .serverDeniesAuth(reason: "signature invalid"), "03117369676e617475726520696e76616c6964",
                handshake(.server)
            ),
            (.endpointGone(PeerKey(node)), "08\(publicKey)", server(.v2)),
            (.ping(payload), "092a2a2a2a2a2a2a2a", server(.v1)),
            (.pong(payload), "0a2a2a2a2a2a2a2a2a", RelayRules(sender: .client, phase: .established, version: .v2)),
            (
                .health("Hello? Yes this is dog."), "0b48656c6c6f3f20596573207468697320697320646f672e", server(.v1)
            ),
            (
                .restarting(RelayRestart(reconnectIn: .milliseconds(10), tryFor: .milliseconds(20))),
                "0c0000000a00000014", server(.v2)
            ),
            (.status(.sameIDConnected), "0d01", server(.v2)),
            (.status(.rateLimited), "0d02", server(.v2)),
        ]
    }

    @Test("the vectors are written and read")
    func vectorsBothWays() throws {
        for (frame, hex, rules) in try Self.vectors() {
            #expect(Hex.encode(frame.encoded) == hex)
            #expect(try decode(.init(hex: hex), rules) == .frame(frame))
        }
    }

    @Test("a real client's proof is read, and its Ping answered byte for byte")
    func realExchange() throws {
        let rules = RelayRules(sender: .client, phase: .handshake, version: .v2)
        let proof =
            "01ed4928c628d1c2c6eae90338905995612959273a5c63f93636c14614ac8737d14063a21c44de5c42dd6da0a9c120c466743724"
            + "267a53da3a47eec38b6469195827e16f733c32737f3c97685bdca332e38b842a96b2bd571f3e740efa10aed87005"
        guard case .frame(.clientAuth(let node, _)) = try decode(.init(hex: proof), rules) else {
            Issue.record("not read")
            return
        }
        #expect(node == (try key(3).nodeID))
        #expect(Hex.encode(RelayFrame.ping(0x75_4262_33ae_aeb2_ac).encoded) == "0975426233aeaeb2ac")
    }

    /// The table of docs/protocol.md, Relay: who may send a type, before and after authentication.
    @Test("every type is allowed exactly where the protocol has it", arguments: RelayFrameType.allCases)
    func rules(type: RelayFrameType) {
        for version in RelayVersion.allCases {
            for sender in RelaySide.allCases {
                for phase in RelayPhase.allCases {
                    let isHandshake = type.rawValue <= 3
                    let fromClient = [1, 4, 5, 9, 10].contains(type.rawValue)
                    let fromServer = ![1, 4, 5].contains(type.rawValue)
                    let inVersion = type == .health ? version == .v1 : type == .status ? version == .v2 : true
                    let expected =
                        (phase == .handshake) == isHandshake && (sender == .client ? fromClient : fromServer)
                        && inVersion
                    let rules = RelayRules(sender: sender, phase: phase, version: version)
                    #expect(rules.allow(type) == expected)
                    if !expected {
                        #expect(failure { try decode([type.rawValue], rules) } == .protocolViolation)
                    }
                }
            }
        }
    }

    @Test("a type that is unknown, or not in its shortest form", arguments: [14, 63, 64, 0x49, 255])
    func unknownType(byte: UInt8) {
        let rules = RelayRules(sender: .server, phase: .established, version: .v2)
        #expect(failure { try decode([byte, 9, 0, 0, 0, 0, 0, 0, 0, 0], rules) } == .protocolViolation)
    }

    @Test("an empty message is no frame")
    func empty() {
        let rules = RelayRules(sender: .server, phase: .established, version: .v2)
        #expect(failure { try decode([], rules) } == .framing)
    }

    @Test("a body of another length than the type's is malformed, and status alone may be followed by more")
    func lengths() throws {
        for (frame, hex, rules) in try Self.vectors() {
            let bytes = [UInt8](hex: hex)
            if frame.type != .health {
                for count in 1..<bytes.count {
                    let cut = Array(bytes[..<count])
                    #expect(failure { try decode(cut, rules) } == .framing, "\(frame.type) \(count)")
                }
            }
            switch frame.type {
            case .health: continue
            case .status: #expect(try decode(bytes + [0], rules) == .frame(frame))
            default: #expect(failure { try decode(bytes + [0], rules) } == .framing, "\(frame.type)")
            }
        }
    }

    @Test("a body of 65,536 bytes is read, one byte more is refused")
    func bodyLimit() throws {
        let rules = RelayRules(sender: .server, phase: .established, version: .v1)
        let longest = String(repeating: "x", count: 65_536)
        #expect(try decode(RelayFrame.health(longest).encoded, rules) == .frame(.health(longest)))
        #expect(failure { try decode(RelayFrame.health(longest + "x").encoded, rules) } == .framing)
        let datagrams = [6] + [UInt8](repeating: 1, count: 65_536)
        #expect(throws: Never.self) { try decode(datagrams, rules) }
        #expect(failure { try decode(datagrams + [1], rules) } == .framing)
    }

    @Test("text that is not UTF-8 and a key that is no point of the curve are malformed")
    func contents() throws {
        let server = RelayRules(sender: .server, phase: .established, version: .v1)
        #expect(failure { try decode([11, 0x41, 0xff], server) } == .framing)
        let handshake = RelayRules(sender: .server, phase: .handshake, version: .v1)
        #expect(failure { try decode([3, 1, 0xc3], handshake) } == .framing)
        #expect(failure { try decode([3, 0x81, 0, 0x41], handshake) } == .framing)
        let client = RelayRules(sender: .client, phase: .handshake, version: .v1)
        let noPoint = [2] + [UInt8](repeating: 0, count: 31)
        try #require(NodeID(bytes: noPoint) == nil)
        #expect(failure { try decode([1] + noPoint + [64] + .init(hex: Self.signature), client) } == .framing)
        let good = [1] + .init(hex: Self.publicKey) + [63] + .init(hex: Self.signature)
        #expect(failure { try decode(good, client) } == .framing)
    }

    @Test("an unknown status is read, and durations that do not fit are written as the longest")
    func extremes() throws {
        let rules = RelayRules(sender: .server, phase: .established, version: .v2)
        #expect(try decode([13, 200], rules) == .frame(.status(RelayStatus(rawValue: 200))))
        let restart = RelayRestart(reconnectIn: .seconds(-1), tryFor: .seconds(1 << 40))
        #expect(Hex.encode(RelayFrame.restarting(restart).encoded) == "0c00000000ffffffff")
    }

    @Test("a status is a byte in version 2 and text in version 1", arguments: [0, 1, 2, 3])
    func reports(byte: UInt8) throws {
        let status = RelayStatus(rawValue: byte)
        #expect(RelayFrame.report(status, version: .v2) == .status(status))
        guard case .health(let text) = RelayFrame.report(status, version: .v1) else {
            Issue.record("no text")
            return
        }
        #expect(!text.isEmpty)
    }

    @Test("the newest version in common is chosen")
    func negotiation() {
        #expect(RelayVersion.negotiate(offered: ["iroh-relay-v2", "iroh-relay-v1"]) == .v2)
        #expect(RelayVersion.negotiate(offered: ["iroh-relay-v1", "iroh-relay-v2"]) == .v2)
        #expect(RelayVersion.negotiate(offered: ["iroh-relay-v1", "iroh-relay-v3"]) == .v1)
        #expect(RelayVersion.negotiate(offered: ["iroh-relay-v3", "Iroh-relay-v1", ""]) == nil)
    }

    @Test("damaged frames are read as something, or refused with a typed fault", arguments: 0..<200)
    func damage(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for (_, hex, rules) in try Self.vectors() {
            let damaged = random.damaged(.init(hex: hex))
            do {
                let decoded = try decode(damaged, rules)
                guard case .frame(let frame) = decoded, frame.type != .status else { continue }
                #expect(frame.encoded == damaged)  // Nothing has two forms.
            } catch let error as TransportError {
                #expect(error.kind == .framing || error.kind == .protocolViolation)
            }
        }
    }
}
