import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertTunnel

@Suite struct TunnelPrefaceTests {
    private func feed(_ header: String, then rest: [UInt8] = []) -> TunnelPrefaceDecoder.Progress {
        var decoder = TunnelPrefaceDecoder()
        return decoder.feed(Frame(header: Array(header.utf8)).encoded + rest)
    }

    @Test func wireForm() throws {
        let json = #"{"authorization":"Bearer dt_abc","kind":"httpTunnel","v":1}"#
        #expect(try TunnelPreface(deviceToken: "dt_abc").encoded() == [0, 0, 0, 59] + Array(json.utf8))
    }

    @Test func readsWhatItWritesAndLeavesTheTunnelsBytes() throws {
        let preface = TunnelPreface(deviceToken: "dt_" + String(repeating: "x", count: 43))
        var decoder = TunnelPrefaceDecoder()
        let bytes = try preface.encoded()
        #expect(decoder.feed(bytes + Array("GET / HTTP/1.1".utf8)) == .complete(preface, consumed: bytes.count))
    }

    @Test func deployedPeersOrderAndUnknownFields() {
        #expect(
            feed(
                #"{"v":1,"kind":"httpTunnel","authorization":"Bearer dt_1","trace":{"id":7},"bodyLength":0}"#, then: [1]
            )
                == .complete(TunnelPreface(deviceToken: "dt_1"), consumed: 93))
    }

    @Test(arguments: [
        (#"{"v":2,"kind":"httpTunnel","authorization":"Bearer t"}"#, Refusal.badPreface),
        (#"{"v":"1","kind":"httpTunnel","authorization":"Bearer t"}"#, .badPreface),
        (#"{"v":1,"kind":"pairRequest","authorization":"Bearer t"}"#, .badPreface),
        (#"{"v":1,"kind":"HTTPTunnel","authorization":"Bearer t"}"#, .badPreface),
        (#"{"v":1,"authorization":"Bearer t"}"#, .badPreface),
        (#"{"kind":"httpTunnel","authorization":"Bearer t"}"#, .badPreface),
        (#"{"v":1,"kind":"httpTunnel","authorization":["Bearer t"]}"#, .badPreface),
        (#"{"v":1,"kind":"httpTunnel","authorization":"Bearer t","authorization":"Bearer u"}"#, .badPreface),
        (#"{"v":1,"kind":"httpTunnel","authorization":"Bearer t","bodyLength":1}"#, .badPreface),
        ("not json", .badPreface), ("[1]", .badPreface),
        (#"{"v":1,"kind":"httpTunnel"}"#, .missingBearer),
        (#"{"v":1,"kind":"httpTunnel","authorization":null}"#, .missingBearer),
        (#"{"v":1,"kind":"httpTunnel","authorization":""}"#, .missingBearer),
        (#"{"v":1,"kind":"httpTunnel","authorization":"Bearer "}"#, .missingBearer),
        (#"{"v":1,"kind":"httpTunnel","authorization":"Bearer"}"#, .missingBearer),
        (#"{"v":1,"kind":"httpTunnel","authorization":"bearer t"}"#, .missingBearer),
        (#"{"v":1,"kind":"httpTunnel","authorization":"Basic dDp0"}"#, .missingBearer),
    ])
    func faults(header: String, refusal: Refusal) {
        #expect(feed(header) == .refused(refusal))
    }

    @Test func bearerAtItsLimitAndOnePast() throws {
        let longest = String(repeating: "x", count: TunnelLimits.authorization - 7)
        let bytes = try TunnelPreface(deviceToken: longest).encoded()
        var decoder = TunnelPrefaceDecoder()
        #expect(decoder.feed(bytes) == .complete(TunnelPreface(deviceToken: longest), consumed: bytes.count))
        #expect(throws: TransportError.self) { try TunnelPreface(deviceToken: longest + "x").encoded() }
        #expect(throws: TransportError.self) { try TunnelPreface(deviceToken: "").encoded() }
        #expect(feed(#"{"v":1,"kind":"httpTunnel","authorization":"Bearer \#(longest)x"}"#) == .refused(.badPreface))
        // Bytes count, not characters.
        let wide = String(repeating: "é", count: 260)
        #expect(feed(#"{"v":1,"kind":"httpTunnel","authorization":"Bearer \#(wide)"}"#) == .refused(.badPreface))
    }

    @Test func headerAtItsLimitAndOnePast() {
        let frame = #"{"v":1,"kind":"httpTunnel","authorization":"Bearer t","pad":""}"#
        let pad = String(repeating: "p", count: TunnelLimits.prefaceHeader - frame.utf8.count)
        let longest = frame.dropLast(2) + pad + #""}"#
        #expect(longest.utf8.count == TunnelLimits.prefaceHeader)
        #expect(feed(String(longest)) == .complete(TunnelPreface(deviceToken: "t"), consumed: 4100))
        var decoder = TunnelPrefaceDecoder()
        #expect(decoder.feed([0, 0, 0x10, 0x01]) == .refused(.badPreface))
        decoder = TunnelPrefaceDecoder()
        #expect(decoder.feed([0, 0, 0, 0]) == .refused(.badPreface))
    }

    @Test func theTokenIsNeverPrinted() {
        let preface = TunnelPreface(deviceToken: "dt_secret")
        var dumped = ""
        dump(preface, to: &dumped)
        for text in ["\(preface)", String(reflecting: preface), dumped] { #expect(!text.contains("secret")) }
    }

    private func outcome(_ pieces: [ArraySlice<UInt8>]) -> TunnelPrefaceDecoder.Progress {
        var decoder = TunnelPrefaceDecoder()
        var used = 0
        for piece in pieces {
            switch decoder.feed(piece) {
            case .needMore: used += piece.count
            case .complete(let preface, let consumed): return .complete(preface, consumed: used + consumed)
            case .refused(let refusal): return .refused(refusal)
            }
        }
        return .needMore
    }

    @Test func theCutsDoNotMatterAndDamageNeverCrashes() throws {
        var random = SplitMix64(seed: 4)
        let good = try TunnelPreface(deviceToken: "dt_0123456789").encoded() + Array("GET /".utf8)
        for round in 0..<3000 {
            var bytes = good
            for _ in 0..<round % 4 { bytes = random.damaged(bytes) }
            let whole = outcome([bytes[...]])
            #expect(outcome(random.chunks(bytes)) == whole)
            if round % 4 == 0 { #expect(whole == .complete(TunnelPreface(deviceToken: "dt_0123456789"), consumed: 70)) }
        }
    }
}
