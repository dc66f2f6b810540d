import CulvertCore
import CulvertIdentity
import FoundationEssentials
import Testing

@Suite("Invites")
struct InviteTests {
    @Test("what a host makes, a client reads")
    func roundTrip() throws {
        let key = try Fixture.key()
        let payload = try Fixture.payload(key)
        let made = try Invite.make(payload, key: key)
        #expect(made.link.hasPrefix("culvert://connect?v=4&invite="))
        let read = try Invite.parse(made.link, now: Fixture.now)
        #expect(read.payload == payload)
        #expect(read.signer == key.nodeID)
        #expect(read.endpoint == made.endpoint)
        #expect(read.endpoint.nodeID == key.nodeID)
        #expect(read.endpoint.ticket == (try Fixture.ticket(key)))
        #expect(
            read.endpoint.relayURLs.map(\.text) == ["https://second.example.com/", "https://relay.example.com/"])
        #expect(try Invite.make(payload, key: key).link == made.link)
    }

    @Test("all optional parts come back")
    func optionalParts() throws {
        let key = try Fixture.key()
        let payload = InvitePayload(
            name: "東京", pairingToken: .generate(), preference: .tunnelAndHTTP, expiresAt: nil,
            tunnel: ServerMetadata(nodeID: key.nodeID),
            http: HTTPTransport(host: "studio.example", port: 7749, scheme: .https, tlsCertFingerprint: "sha256:x"))
        let read = try Invite.parse(Invite.make(payload, key: key).link, now: Fixture.now)
        #expect(read.payload == payload)
        #expect(read.endpoint.ticket == nil)
        #expect(read.endpoint.relayURLs == [])
    }

    @Test("the JSON has the documented fields and wire words")
    func wireForm() throws {
        let key = try Fixture.key()
        let payload = InvitePayload(
            name: "studio", pairingToken: try #require(PairingToken("pt_1")), preference: .tunnelAndHTTP,
            expiresAt: Fixture.now, tunnel: ServerMetadata(nodeID: key.nodeID, alpns: ["culvert/http/1"]))
        let link = try Invite.make(payload, key: key).link
        let envelope = try #require(Base64URL.decode(link.dropFirst("culvert://connect?v=4&invite=".count)))
        struct Envelope: Decodable {
            var v: Int
            var alg: String
            var signedPayload: String
            var publicKey: String
            var signature: String
        }
        let fields = try JSONDecoder().decode(Envelope.self, from: Data(envelope))
        #expect((fields.v, fields.alg) == (4, "ed25519"))
        #expect(fields.publicKey == Base64URL.encode(key.nodeID.bytes))
        let signature = try #require(Base64URL.decode(fields.signature))
        #expect(key.nodeID.verify(signature: signature, of: fields.signedPayload.utf8))
        let json = String(decoding: try #require(Base64URL.decode(fields.signedPayload)), as: UTF8.self)
        #expect(
            json == """
                {"expiresAt":"2026-01-02T03:04:05Z",\
                "fingerprint":"\(Fingerprint(of: key.nodeID.bytes))",\
                "name":"studio","pairingToken":"pt_1","preference":"irohPreferred",\
                "transports":{"iroh":{"addressMode":"node-id","alpns":["culvert/http/1"],\
                "nodeId":"\(key.nodeID)","version":2}},"v":4}
                """)
    }

    @Test("an invite of a deployed peer is read: other scheme, own signing key, no expiry, unknown fields")
    func deployedPeer() throws {
        var forgery = try Forgery()
        forgery.scheme = "oppi://connect"
        forgery.payload["expiresAt"] = nil
        forgery.payload["future"] = ["a": [1, "x"] as [Any]] as [String: Any]
        let other = try Fixture.key(7)
        forgery.payload["transports"] = ["iroh": try Forgery.metadata(other)]
        let invite = try forgery.parse()
        #expect(invite.endpoint.nodeID == other.nodeID)
        #expect(invite.signer != other.nodeID)
        #expect(invite.payload.expiresAt == nil)
    }

    @Test("a link may be pasted with white space, other case and other query items")
    func tolerantLinks() throws {
        let link = try Invite.make(Fixture.payload(Fixture.key()), key: Fixture.key()).link
        let tail = link.dropFirst("culvert://connect?v=4&".count)
        for variant in [
            " \(link)\n", "CULVERT://Connect?v=4&\(tail)", "oppi://connect?v=4&\(tail)",
            "culvert://connect/?v=4&\(tail)", "culvert://connect?\(tail)&v=4", "culvert://connect?v=4&x=y&\(tail)&z",
        ] {
            #expect(throws: Never.self) { try Invite.parse(variant, now: Fixture.now) }
        }
    }

    @Test("what a preference authorises")
    func preferences() {
        #expect(TransportPreference(rawValue: "httpOnly")?.credentialTransports == [.http])
        #expect(TransportPreference(rawValue: "irohOnly")?.credentialTransports == [.tunnel])
        #expect(TransportPreference(rawValue: "irohPreferred")?.credentialTransports == [.http, .tunnel])
        #expect(CredentialTransports([.http, .tunnel]).wire == ["http", "iroh"])
    }

    @Test("clocks may disagree by 60 seconds, either way and no more")
    func clockSkew() throws {
        let key = try Fixture.key()
        let link = try Invite.make(Fixture.payload(key), key: key).link
        func fault(at seconds: Int64) throws -> InviteFault? {
            CulvertIdentityTests.fault {
                try Invite.parse(link, now: Fixture.now + .seconds(seconds))
            }
        }
        #expect(try fault(at: 90) == nil)
        #expect(try fault(at: 150) == nil)
        #expect(try fault(at: 151) == .expired)
        let maximum = Invite.maximumLifetime.components.seconds
        #expect(maximum == 30 * 86_400)
        #expect(try fault(at: 90 - maximum - 60) == nil)
        #expect(try fault(at: 90 - maximum - 61) == .clock)
    }

    @Test("faults of time name the clock")
    func clockMessages() throws {
        let key = try Fixture.key()
        let link = try Invite.make(Fixture.payload(key), key: key).link
        for now in [UnixTime(seconds: 0), UnixTime(seconds: .max), UnixTime(seconds: .min)] {
            let error = #expect(throws: TransportError.self) { try Invite.parse(link, now: now) }
            #expect(error?.reason.contains("clocks") == true)
        }
    }

    @Test("a host cannot make an invite that clients refuse")
    func refusedAtTheSource() throws {
        let key = try Fixture.key()
        func make(
            name: String = "studio", preference: TransportPreference = .tunnelOnly, expiresAt: UnixTime? = nil,
            tunnel: ServerMetadata?, http: HTTPTransport? = nil
        ) -> InviteFault? {
            fault {
                try Invite.make(
                    InvitePayload(
                        name: name, pairingToken: .generate(), preference: preference, expiresAt: expiresAt,
                        tunnel: tunnel, http: http), key: key)
            }
        }
        let tunnel = ServerMetadata(ticket: try Fixture.ticket(key))
        #expect(make(tunnel: tunnel) == nil)
        #expect(make(name: "", tunnel: tunnel) == .envelope)
        #expect(make(name: "a\u{1b}", tunnel: tunnel) == .envelope)
        #expect(make(tunnel: nil) == .noTunnel)
        #expect(make(preference: .httpOnly, tunnel: tunnel) == .noTunnel)
        #expect(make(expiresAt: UnixTime(seconds: .max), tunnel: tunnel) == .clock)
        let insecure = ServerMetadata(
            nodeID: key.nodeID, relayURLs: [try RelayURL("http://127.0.0.1", allowInsecure: true)])
        #expect(make(tunnel: insecure) == .relayURL)
        let long = HTTPTransport(host: String(repeating: "a", count: 8192), port: 1, scheme: .https)
        #expect(make(tunnel: tunnel, http: long) == .envelope)
    }
}
