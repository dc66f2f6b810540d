import CulvertCore
import Testing

@testable import Culvert

@Suite("HTTP target")
struct HTTPTargetTests {
    @Test(
        "what may be shared",
        arguments: [
            ("http://127.0.0.1:8080", HTTPTarget.tcp(host: "127.0.0.1", port: 8080), "http://127.0.0.1:8080"),
            ("http://127.0.0.1:8080/", .tcp(host: "127.0.0.1", port: 8080), "http://127.0.0.1:8080"),
            ("http://localhost", .tcp(host: "localhost", port: 80), "http://localhost:80"),
            ("http://a-b_c.Example:1", .tcp(host: "a-b_c.Example", port: 1), "http://a-b_c.Example:1"),
            ("http://[::1]:65535", .tcp(host: "::1", port: 65535), "http://[::1]:65535"),
            ("http://[::1]", .tcp(host: "::1", port: 80), "http://[::1]:80"),
            ("unix:/run/app.sock", .unix(path: "/run/app.sock"), "unix:/run/app.sock"),
        ] as [(String, HTTPTarget, String)])
    func accepted(text: String, target: HTTPTarget, description: String) throws {
        #expect(try HTTPTarget(text) == target)
        #expect(target.description == description)
        #expect(try HTTPTarget(description) == target)
    }

    @Test(
        "what may not",
        arguments: [
            "", "http://", "http:///", "https://localhost", "HTTP://localhost", "localhost:80", "http://:80",
            "http://localhost:", "http://localhost:0", "http://localhost:65536", "http://localhost:-1",
            "http://localhost:8080/path", "http://localhost?x", "http://user@localhost", "http://a b", "http://::1:80",
            "http://[::1", "http://::1]", "http://[localhost]x", "http://[::1]8080", "http://exa\u{e4}mple",
            "http://" + String(repeating: "a", count: 254), "unix:", "unix:run/app.sock", "unix:/a\0b",
            "unix:/" + String(repeating: "a", count: 107),
        ])
    func refused(text: String) async {
        #expect(await failure { () throws in try HTTPTarget(text) } == .framing)
    }

    @Test("the longest names and paths")
    func limits() throws {
        #expect(throws: Never.self) { try HTTPTarget("http://" + String(repeating: "a", count: 253)) }
        #expect(throws: Never.self) { try HTTPTarget("unix:/" + String(repeating: "a", count: 106)) }
    }
}

@Suite("Reconnecting")
struct ReconnectScheduleTests {
    @Test("at once, then ever later up to 16 s, and from the start after a success")
    func pauses() {
        var schedule = ReconnectSchedule()
        let expected: [Duration] = [0, 1, 2, 4, 8, 16, 16, 16].map { .seconds($0) }
        #expect(expected.indices.map { _ in schedule.next() } == expected)
        schedule.reset()
        #expect(schedule.next() == .zero)
        #expect(schedule.next() == .seconds(1))
    }
}

@Suite("Control messages")
struct ControlMessageTests {
    @Test(
        "requests come out as they went in",
        arguments: [
            ControlRequest.devices, .revoke(deviceID: "abcdefgh"), .rename(deviceID: "a", name: "Anna's \"phone\"\n"),
            .makeInvite(validForSeconds: nil), .makeInvite(validForSeconds: 90), .makeInvite(validForSeconds: -1),
        ])
    func requests(request: ControlRequest) {
        let (method, path, body) = request.http
        #expect(ControlRequest(method: method, path: path, body: body) == request)
    }

    @Test("an invite may be asked for without a body")
    func emptyInvite() {
        #expect(ControlRequest(method: "POST", path: "/v1/invites", body: []) == .makeInvite(validForSeconds: nil))
    }

    @Test(
        "other requests are not known",
        arguments: [
            ("GET", "/"), ("GET", "/v1"), ("GET", "/v2/devices"), ("GET", "/v1/devices/a"), ("POST", "/v1/devices"),
            ("DELETE", "/v1/devices"), ("DELETE", "/v1/devices/a/b"), ("PATCH", "/v1/devices/a"),
            ("get", "/v1/devices"),
            ("GET", "/v1/invites"), ("POST", "/v1/invites/a"),
        ])
    func unknown(method: String, path: String) {
        #expect(ControlRequest(method: method, path: path, body: []) == nil)
    }

    @Test(
        "a body that is not what the request needs is refused",
        arguments: ["{", "[]", "{\"validForSeconds\":\"1\"}", "7"])
    func bodies(body: String) {
        #expect(ControlRequest(method: "POST", path: "/v1/invites", body: Array(body.utf8)) == nil)
        #expect(ControlRequest(method: "PATCH", path: "/v1/devices/a", body: Array(body.utf8)) == nil)
    }

    @Test("answers")
    func answers() throws {
        let devices = [
            Device(
                id: "abcdefgh", name: "phone", createdAt: UnixTime(seconds: 1), lastSeenAt: nil, isConnected: true,
                isRevoked: false)
        ]
        let success = ControlResponse.success(devices)
        #expect(success.status == 200)
        #expect(ControlJSON.decode([Device].self, from: success.body) == devices)
        #expect(ControlResponse.done.status == 204 && ControlResponse.done.body.isEmpty)
        let kinds: [(ErrorKind, Int)] = [(.authentication, 404), (.framing, 400), (.limit, 400), (.state, 503)]
        for (kind, status) in kinds {
            let answer = ControlResponse.failure(TransportError(kind, "why"))
            #expect(answer.status == status)
            let failure = try #require(ControlJSON.decode(ControlResponse.Failure.self, from: answer.body))
            #expect(failure.code == kind.name && failure.error == "why")
        }
    }
}
