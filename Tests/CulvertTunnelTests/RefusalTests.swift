import FoundationEssentials
import Testing

@testable import CulvertTunnel

@Suite struct RefusalTests {
    @Test(arguments: [
        (Refusal.badPreface, 400, "bad_preface"), (.prefaceTimeout, 408, "preface_timeout"),
        (.missingBearer, 401, "missing_bearer"), (.unknownToken, 401, "unknown_token"),
        (.forbiddenTransport, 403, "forbidden_transport"), (.bindingMissing, 403, "binding_missing"),
        (.bindingMismatch, 403, "binding_mismatch"), (.targetUnreachable, 503, "target_unreachable"),
        (.hostUnreachable, 503, "host_unreachable"), (.hostNotLoopback, 403, "host_not_loopback"),
        (.otherUser, 403, "other_user"), (.localToken, 401, "local_token"), (.badRequest, 400, "bad_request"),
        (.headTooLarge, 431, "head_too_large"), (.headTimeout, 408, "head_timeout"), (.limit, 503, "limit"),
    ])
    func statusAndCode(refusal: Refusal, status: Int, code: String) {
        #expect(refusal.status == status)
        #expect(refusal.code == code)
    }

    @Test func everyRefusalIsInTheTable() {
        #expect(Refusal.allCases.count == 16)
        #expect(Set(Refusal.allCases.map(\.code)).count == 16)
    }

    @Test(arguments: Refusal.allCases)
    func theResponseIsWellFormed(refusal: Refusal) throws {
        struct Body: Decodable, Equatable {
            var error: String
            var code: String
        }
        let text = String(decoding: refusal.response, as: UTF8.self)
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1)
        try #require(parts.count == 2)
        let lines = parts[0].split(separator: "\r\n").map(String.init)
        let body = Array(parts[1].utf8)
        #expect(lines[0].hasPrefix("HTTP/1.1 \(refusal.status) "))
        #expect(lines.contains("Content-Length: \(body.count)"))
        #expect(lines.contains("Content-Type: application/json"))
        #expect(lines.contains("Connection: close"))
        #expect(lines.contains("WWW-Authenticate: Bearer") == (refusal.status == 401))
        #expect(
            try JSONDecoder().decode(Body.self, from: Data(body)) == Body(error: refusal.error, code: refusal.code))
        #expect(refusal.response.allSatisfy { $0 < 0x7f })
    }

    @Test func exactBytes() {
        #expect(
            String(decoding: Refusal.limit.response, as: UTF8.self) == """
                HTTP/1.1 503 Service Unavailable\r
                Content-Type: application/json\r
                Content-Length: 87\r
                Connection: close\r
                \r
                {"code":"limit","error":"too many connections are open; close some or raise the limit"}
                """)
    }

    @Test func whatTheStoreDecides() {
        #expect(HostStore.Authorization.unknown.refusal == .unknownToken)
        #expect(HostStore.Authorization.revoked(deviceID: "x").refusal == .unknownToken)
        #expect(HostStore.Authorization.forbiddenTransport.refusal == .forbiddenTransport)
        #expect(HostStore.Authorization.bindingMissing.refusal == .bindingMissing)
        #expect(HostStore.Authorization.bindingMismatch.refusal == .bindingMismatch)
        #expect(HostStore.Authorization.allowed(deviceID: "x").refusal == nil)
    }
}
