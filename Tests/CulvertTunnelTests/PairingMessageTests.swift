import CulvertCore
import CulvertIdentity
import Testing

@testable import CulvertTunnel

@Suite struct PairingMessageTests {
    private func text(_ frame: Frame) -> String { String(decoding: frame.header, as: UTF8.self) }

    private func frame(_ text: String) -> Frame { Frame(header: Array(text.utf8)) }

    @Test func wireForms() throws {
        #expect(
            text(try PairingRequest(pairingToken: "pt_1", deviceName: "lap\ttop").frame())
                == #"{"deviceName":"lap top","kind":"pairRequest","pairingToken":"pt_1","v":1}"#)
        #expect(
            text(try PairingRequest(pairingToken: "pt_1", deviceName: nil).frame())
                == #"{"kind":"pairRequest","pairingToken":"pt_1","v":1}"#)
        #expect(
            text(try PairingResponse.frame(PairingGrant(deviceToken: "dt_1", transports: [.http, .tunnel])))
                == #"{"credentialTransports":["http","iroh"],"deviceToken":"dt_1","kind":"pairResponse","ok":true,"v":1}"#
        )
        #expect(
            text(try PairingResponse.frame(.blocked))
                == #"{"error":"too many pairings failed; wait two minutes","kind":"pairResponse","ok":false,"status":429,"v":1}"#
        )
    }

    @Test func requestsComeBack() throws {
        for name in [nil, "laptop"] {
            let request = PairingRequest(pairingToken: "pt_1", deviceName: name)
            #expect(try PairingRequest(request.frame()) == request)
        }
        let other = try PairingRequest(
            frame(#"{"v":1,"kind":"pairRequest","pairingToken":"x","deviceName":"\u001b\n","clientNodeId":"y"}"#))
        #expect(other == PairingRequest(pairingToken: "x", deviceName: nil))
    }

    @Test(arguments: [
        #"{"v":2,"kind":"pairRequest","pairingToken":"x"}"#, #"{"v":1,"kind":"pairResponse","pairingToken":"x"}"#,
        #"{"v":1,"kind":"pairRequest"}"#, #"{"v":1,"kind":"pairRequest","pairingToken":""}"#,
        #"{"v":1,"kind":"pairRequest","pairingToken":7}"#,
        #"{"v":1,"kind":"pairRequest","pairingToken":"x","deviceName":1}"#,
        #"{"v":1,"kind":"pairRequest","pairingToken":"x","pairingToken":"y"}"#, "{}",
    ])
    func wrongRequests(header: String) {
        #expect(throws: TransportError.self) { try PairingRequest(frame(header)) }
    }

    @Test func pairingTokenAtItsLimitAndOnePast() throws {
        let longest = String(repeating: "x", count: TunnelLimits.pairingToken)
        let request = PairingRequest(pairingToken: longest, deviceName: nil)
        #expect(try PairingRequest(request.frame()) == request)
        #expect(throws: TransportError.self) {
            try PairingRequest(pairingToken: longest + "x", deviceName: nil).frame()
        }
        #expect(throws: TransportError.self) { try PairingRequest(pairingToken: "", deviceName: nil).frame() }
        #expect(throws: TransportError.self) {
            try PairingRequest(frame(#"{"v":1,"kind":"pairRequest","pairingToken":"\#(longest)x"}"#))
        }
    }

    @Test func responsesComeBack() throws {
        for transports: CredentialTransports in [[], .http, .tunnel, [.http, .tunnel]] {
            let grant = PairingGrant(deviceToken: "dt_1", transports: transports)
            #expect(try PairingResponse(PairingResponse.frame(grant)) == .granted(grant))
        }
        for refusal in PairingRefusal.allCases {
            #expect(try PairingResponse(PairingResponse.frame(refusal)) == .refused(status: refusal.status))
        }
        // Older hosts do not name the transports; unknown words are for later versions.
        #expect(
            try PairingResponse(frame(#"{"v":1,"kind":"pairResponse","ok":true,"deviceToken":"dt_1"}"#))
                == .granted(PairingGrant(deviceToken: "dt_1", transports: .tunnel)))
        #expect(CredentialTransports(wire: ["iroh", "carrier-pigeon"]) == .tunnel)
    }

    @Test(arguments: [
        #"{"v":1,"kind":"pairResponse"}"#, #"{"v":1,"kind":"pairResponse","ok":"true","deviceToken":"dt_1"}"#,
        #"{"v":1,"kind":"pairResponse","ok":true}"#, #"{"v":1,"kind":"pairResponse","ok":true,"deviceToken":""}"#,
        #"{"v":1,"kind":"pairResponse","ok":true,"deviceToken":"a b"}"#, #"{"v":1,"kind":"pairRequest","ok":false}"#,
        #"{"v":1,"kind":"pairResponse","ok":true,"deviceToken":"a\r\nb"}"#,
        #"{"v":2,"kind":"pairResponse","ok":false}"#,
    ])
    func wrongResponses(header: String) {
        #expect(throws: TransportError.self) { try PairingResponse(frame(header)) }
    }

    @Test func deviceTokenAtItsLimitAndOnePast() throws {
        func response(_ count: Int) throws -> PairingResponse {
            let token = String(repeating: "x", count: count)
            return try PairingResponse(frame(#"{"v":1,"kind":"pairResponse","ok":true,"deviceToken":"\#(token)"}"#))
        }
        _ = try response(TunnelLimits.authorization - 7)
        #expect(throws: TransportError.self) { try response(TunnelLimits.authorization - 6) }
    }

    @Test func tokensAreNeverPrinted() {
        let values: [Any] = [
            PairingRequest(pairingToken: "secret", deviceName: nil),
            PairingGrant(deviceToken: "secret", transports: []),
            PairingResponse.granted(PairingGrant(deviceToken: "secret", transports: [])),
            PairingDecision.granted(PairingGrant(deviceToken: "secret", transports: [])),
            PairingClient(PairingRequest(pairingToken: "secret", deviceName: nil)),
        ]
        for value in values {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] { #expect(!text.contains("secret")) }
        }
    }
}
