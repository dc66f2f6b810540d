import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertTunnel

@Suite struct StrictJSONTests {
    private struct Message: Codable, Equatable {
        var v: Int
        var text: String?
    }

    private func decode(_ text: String) throws -> Message {
        try StrictJSON.decode(Message.self, from: Array(text.utf8))
    }

    @Test func readsWhatItWrites() throws {
        let message = Message(v: 1, text: "a/b \"\u{1f600}\" \u{0} é")
        #expect(try StrictJSON.decode(Message.self, from: StrictJSON.encode(message)) == message)
        #expect(try StrictJSON.encode(Message(v: 1, text: "a/b")) == Array(#"{"text":"a/b","v":1}"#.utf8))
    }

    @Test(arguments: [
        #"{"v":1}"#, " \t\r\n{ \"v\" : 1 , \"x\" : [ 1 , -0.5e+3 , true , null , { } , [ ] ] } ",
        #"{"v":1,"unknown":{"v":2}}"#, #"{"v":1,"text":null}"#, #"{"\u0076":1}"#, #"{"v":1e0}"#,
    ])
    func accepted(text: String) throws {
        #expect(try decode(text) == Message(v: 1, text: nil))
    }

    @Test(arguments: [
        "", " ", "{", "}", "[]", "null", "1", #""v""#, #"{"v":1"#, #"{"v":1}}"#, #"{"v":1} x"#, #"{"v":1,}"#,
        #"{,"v":1}"#,
        #"{"v" 1}"#, #"{v:1}"#, #"{'v':1}"#, #"{"v":01}"#, #"{"v":+1}"#, #"{"v":.5}"#, #"{"v":1.}"#, #"{"v":1e}"#,
        #"{"v":-}"#,
        #"{"v":1 /* one */}"#, #"{"v":NaN}"#, #"{"v":tru}"#, #"{"v":1,"text":"\x"}"#, #"{"v":1,"text":"\ud800"}"#,
        #"{"v":1,"text":"\udc00\ud800"}"#, #"{"v":1,"text":"\u12g4"}"#, #"{"v":1,"text":"open}"#,
        "{\"v\":1,\"text\":\"\n\"}",
        "\u{feff}{\"v\":1}", "{\"v\":1}\0",
    ])
    func malformed(text: String) {
        #expect(throws: TransportError(.framing, "the message's header is not one well-formed JSON object")) {
            try decode(text)
        }
    }

    @Test(arguments: [
        #"{"v":1,"v":1}"#, #"{"v":1,"\u0076":2}"#, #"{"v":1,"x":{"a":1,"a":2}}"#, #"{"v":1,"é":1,"e\u0301":1}"#,
        #"{"v":1,"":1,"":1}"#, #"{"v":1,"x":[{"a":1,"b":2,"a":3}]}"#,
    ])
    func repeatedKeys(text: String) {
        #expect(throws: TransportError.self) { try decode(text) }
    }

    @Test(arguments: [
        "{}", #"{"v":"1"}"#, #"{"v":true}"#, #"{"v":null}"#, #"{"v":1.5}"#, #"{"v":1,"text":1}"#, #"{"V":1}"#,
    ])
    func missingFieldsAndWrongTypes(text: String) {
        #expect(throws: TransportError(.framing, "the message's header lacks a field or has one of the wrong type")) {
            try decode(text)
        }
    }

    @Test func nestingAtItsLimitAndOnePast() throws {
        func nested(_ depth: Int) -> String {
            #"{"v":1,"x":"# + String(repeating: "[", count: depth - 1) + String(repeating: "]", count: depth - 1) + "}"
        }
        _ = try decode(nested(TunnelLimits.jsonDepth))
        #expect(throws: TransportError.self) { try decode(nested(TunnelLimits.jsonDepth + 1)) }
        #expect(throws: TransportError.self) { try decode(String(repeating: #"{"v":"#, count: 4000)) }
    }

    @Test func otherEncodingsAreRefused() {
        for bytes: [UInt8] in [
            [0x7b, 0xff, 0x7d], [0x7b, 0, 0x7d, 0], [0xff, 0xfe, 0x7b, 0], [0x22, 0xc0, 0x80, 0x22],
        ] {
            #expect(throws: TransportError.self) { try StrictJSON.decode(Message.self, from: bytes) }
        }
    }

    @Test func damageNeverCrashes() throws {
        var random = SplitMix64(seed: 3)
        let good = Array(#"{"v":1,"text":"\u00e9\ud83d\ude00","x":[1,{"a":-2.5e-3},null,true]}"#.utf8)
        var accepted = 0
        for round in 0..<10000 {
            var bytes = good
            for _ in 0...round % 3 { bytes = random.damaged(bytes) }
            if (try? StrictJSON.decode(Message.self, from: bytes)) != nil { accepted += 1 }
        }
        #expect((1..<9000).contains(accepted))
    }
}
