import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertTunnel

@Suite struct PairingExchangeTests {
    private let request = PairingRequest(pairingToken: "pt_1", deviceName: "laptop")
    private let grant = PairingGrant(deviceToken: "dt_1", transports: .tunnel)

    @Test func theWholeExchange() throws {
        var client = PairingClient(request)
        var server = PairingServer()
        let question = try #require(try client.takeRequest())
        var heard: [PairingRequest] = []
        let action = server.receive(question) {
            heard.append($0); return .granted(grant)
        }
        guard case .answer(let answer, .granted(grant)) = action else {
            Issue.record("no answer: \(action)")
            return
        }
        #expect(heard == [request])
        #expect(try client.receive(answer.dropLast()) == .wait)
        #expect(try client.receive(answer.suffix(1)) == .paired(grant))
    }

    @Test func theRequestIsHandedOutOnce() throws {
        var client = PairingClient(request)
        #expect(client.lost.kind == .unavailable)
        #expect(client.lost.kind.mayFallBack)
        #expect(try client.takeRequest() != nil)
        #expect(try client.takeRequest() == nil)
        #expect(
            client.lost == TransportError(.authentication, "the pairing's result is unknown; ask for a fresh invite"))
        #expect(!client.lost.kind.mayFallBack)
    }

    @Test func aRequestThatCannotBeWrittenIsNotSent() {
        var client = PairingClient(PairingRequest(pairingToken: "", deviceName: nil))
        #expect(throws: TransportError.self) { try client.takeRequest() }
        #expect(client.lost.kind == .unavailable)
    }

    @Test(arguments: [
        (400, ErrorKind.protocolViolation), (401, .authentication), (403, .authentication), (408, .protocolViolation),
        (429, .authentication), (500, .state), (503, .state), (302, .authentication), (-1, .authentication),
        (Int.max, .authentication),
    ])
    func refusalsByStatus(status: Int, kind: ErrorKind) throws {
        var client = PairingClient(request)
        _ = try client.takeRequest()
        let header = #"{"v":1,"kind":"pairResponse","ok":false,"status":\#(status),"error":"10.1.2.3 dt_secret"}"#
        let error = #expect(throws: TransportError.self) {
            try client.receive(Frame(header: Array(header.utf8)).encoded)
        }
        #expect(error?.kind == kind)
        #expect(error?.kind.mayFallBack == false)
        // What the host writes does not reach logs.
        #expect(error?.reason.contains("secret") == false)
    }

    @Test func aMalformedAnswer() throws {
        for bytes: [UInt8] in [
            [0, 0, 0, 0], [0xff, 0xff, 0xff, 0xff], [0, 0, 0, 2, 0x7b, 0x7d], Array("HTTP/1.1".utf8),
        ] {
            var client = PairingClient(request)
            _ = try client.takeRequest()
            let error = #expect(throws: TransportError.self) { try client.receive(bytes) }
            #expect(error?.kind == .framing)
        }
    }

    @Test func theServerDecidesOnce() throws {
        var server = PairingServer()
        let bytes = try request.frame().encoded
        var calls = 0
        for _ in 0..<3 {
            _ = server.receive(bytes + bytes) { _ in
                calls += 1; return .refused(.usedInvite)
            }
        }
        #expect(calls == 1)
        #expect(server.receive(bytes) { _ in .granted(grant) } == .done)
        #expect(server.ended() == .done)
        #expect(server.expired() == .done)
    }

    private func refusal(_ action: PairingServer.Action) throws -> PairingRefusal? {
        guard case .answer(let bytes, .refused(let refusal)) = action else { return nil }
        var frames = FrameDecoder(headerLimit: 4096, bodyLimit: 0)
        guard case .complete(let frame, _) = try frames.feed(bytes) else { return nil }
        #expect(try PairingResponse(frame) == .refused(status: refusal.status))
        return refusal
    }

    @Test func everyEndHasAnAnswer() throws {
        var early = PairingServer()
        #expect(try refusal(early.ended()) == .malformed)
        var slow = PairingServer()
        #expect(slow.receive([0, 0]) { _ in .granted(grant) } == .wait)
        #expect(try refusal(slow.expired()) == .timeout)
        var wrong = PairingServer()
        #expect(try refusal(wrong.receive([0, 0, 0, 0]) { _ in .granted(grant) }) == .malformed)
    }

    @Test func headerAtItsLimitAndOnePast() throws {
        let fixed = #"{"v":1,"kind":"pairRequest","pairingToken":"pt_1","pad":""}"#
        let pad = String(repeating: "p", count: TunnelLimits.pairingHeader - fixed.utf8.count)
        var server = PairingServer()
        let longest = Frame(header: Array((fixed.dropLast(2) + pad + #""}"#).utf8))
        #expect(longest.header.count == TunnelLimits.pairingHeader)
        guard case .answer(_, .granted) = server.receive(longest.encoded, decide: { _ in .granted(grant) }) else {
            Issue.record("the longest request was refused")
            return
        }
        server = PairingServer()
        #expect(try refusal(server.receive([0, 0, 0x40, 0x01]) { _ in .granted(grant) }) == .malformed)
    }

    @Test func damageNeverCrashesAndCutsDoNotMatter() throws {
        var random = SplitMix64(seed: 8)
        let question = try request.frame().encoded
        let answer = try PairingResponse.frame(grant).encoded
        for round in 0..<2000 {
            var bytes = round % 2 == 0 ? question : answer
            for _ in 0..<round % 4 { bytes = random.damaged(bytes) }
            var whole = PairingServer()
            var cut = PairingServer()
            let expected = whole.receive(bytes) { _ in .granted(grant) }
            var action = PairingServer.Action.wait
            for piece in random.chunks(bytes) where action == .wait {
                action = cut.receive(piece) { _ in .granted(grant) }
            }
            #expect(action == expected)
            var client = PairingClient(request)
            _ = try client.takeRequest()
            if let progress = try? client.receive(bytes), case .paired(let grant) = progress {
                #expect(!grant.deviceToken.isEmpty)
            }
        }
    }
}
