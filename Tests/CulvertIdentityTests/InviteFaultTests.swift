import CulvertCore
import CulvertIdentity
import Testing

@Suite("Invite faults")
struct InviteFaultTests {
    /// Each spoils one thing; together, every fault is there, in the order of the checks.
    private static let spoilers: [(InviteFault, @Sendable (inout Forgery) throws -> Void)] = [
        (.envelope, { $0.envelopeVersion = "3" }),
        (.algorithm, { $0.algorithm = "p256" }),
        (.signature, { $0.tamperSignature = { $0.map { $0 ^ 1 } } }),
        (.fingerprint, { $0.payload["fingerprint"] = "sha256:AAAA" }),
        (.version, { $0.payload["v"] = 5 }),
        (.expired, { $0.payload["expiresAt"] = "2026-01-02T03:03:04Z" }),
        (.noTunnel, { $0.payload["preference"] = "httpOnly" }),
        (.nodeID, { try $0.setMetadata("nodeId", "8A88") }),
        (.alpn, { try $0.setMetadata("alpns", ["oppi/http/1"]) }),
        (.ticketMissing, { try $0.setMetadata("ticket", nil) }),
        (.ticket, { try $0.setMetadata("ticket", "endpointaaaa") }),
        (.ticketNode, { try $0.setMetadata("ticket", try Fixture.ticket(Fixture.key(2)).description) }),
        (.relayURL, { try $0.setMetadata("relayUrls", ["https://10.0.0.1"]) }),
    ]

    @Test("the unspoiled invite is accepted, so each refusal below has one cause")
    func unspoiled() throws {
        #expect(try Forgery().fault() == nil)
    }

    @Test("every fault is reached, and only the clock's is not in this table")
    func coverage() throws {
        for (expected, spoil) in Self.spoilers {
            var forgery = try Forgery()
            try spoil(&forgery)
            #expect(forgery.fault() == expected)
        }
        var forgery = try Forgery()
        forgery.payload["expiresAt"] = "2036-01-02T03:04:05Z"
        #expect(forgery.fault() == .clock)
        #expect(Set(Self.spoilers.map(\.0) + [.clock]) == Set(InviteFault.allCases))
    }

    @Test("of two faults the first in the documented order is the error")
    func precedence() throws {
        // The metadata's spoilers replace each other; `metadataOrder` has those.
        for (index, first) in Self.spoilers.enumerated() where first.0 != .relayURL {
            for second in Self.spoilers[(index + 1)...]
            where !(Self.isOfMetadata(first.0) && Self.isOfMetadata(second.0)) {
                var forgery = try Forgery()
                try second.1(&forgery)
                try first.1(&forgery)
                #expect(forgery.fault() == first.0, "\(first.0) and \(second.0)")
            }
        }
    }

    private static func isOfMetadata(_ fault: InviteFault) -> Bool {
        [.nodeID, .alpn, .ticketMissing, .ticket, .ticketNode, .relayURL].contains(fault)
    }

    @Test("the metadata's faults come in the documented order")
    func metadataOrder() throws {
        let key = try Fixture.key()
        // From the last check to the first, so that each new fault must win over all before it.
        let steps: [(String, Any?, InviteFault)] = [
            ("relayUrls", ["https://10.0.0.1"], .relayURL),
            ("ticket", try Fixture.ticket(Fixture.key(2)).description, .ticketNode),
            ("ticket", "endpointaaaa", .ticket),
            ("ticket", nil, .ticketMissing),
            ("alpns", [String](), .alpn),
            ("nodeId", key.nodeID.description.uppercased(), .nodeID),
            ("version", 3, .version),
        ]
        var metadata = try Forgery.metadata(key)
        for (field, value, expected) in steps {
            metadata[field] = value
            var forgery = try Forgery()
            forgery.payload["transports"] = ["iroh": metadata]
            #expect(forgery.fault() == expected)
        }
        // A version comes before the expiry, the metadata's version too.
        var forgery = try Forgery()
        try forgery.setMetadata("version", 3)
        forgery.payload["expiresAt"] = "2025-01-02T03:04:05Z"
        #expect(forgery.fault() == .version)
    }

    @Test("every fault has its own message, of one line")
    func messages() throws {
        var reasons: Set<String> = []
        for (_, spoil) in Self.spoilers {
            var forgery = try Forgery()
            try spoil(&forgery)
            let error = #expect(throws: TransportError.self) { try forgery.parse() }
            let reason = try #require(error?.reason)
            #expect(!reason.contains("\n") && !reason.hasSuffix(".") && reason.first?.isLowercase == true)
            reasons.insert(reason)
        }
        #expect(reasons.count == Self.spoilers.count)
    }

    @Test(
        "links of another form are refused",
        arguments: [
            "", "?", "culvert://connect", "culvert://connect?", "culvert://connect?v=4",
            "culvert://connect?invite=AAAA",
            "culvert://connect?v=4&invite=", "culvert://connect?v=4&invite=e30", "culvert://connect?v=4&invite=%41",
            "https://connect?v=4&invite=e30", "culvert://other?v=4&invite=e30", "culvert:connect?v=4&invite=e30",
            "culvert://connect?v=3&invite=e30", "culvert://connect?v=04&invite=e30",
            "culvert://connect?v=4&v=4&invite=e30", "culvert://connect?v=4&invite=e30&invite=e30",
        ])
    func links(text: String) {
        #expect(fault { try Invite.parse(text, now: Fixture.now) } == .envelope)
    }

    @Test("a link with a second invite or version is refused, since readers could differ about which one counts")
    func repeatedItems() throws {
        let link = try Forgery().link
        #expect(fault { try Invite.parse(link + "&x=y", now: Fixture.now) } == nil)
        for extra in ["&v=4", "&v=", "&invite=e30", "&invite="] {
            #expect(fault { try Invite.parse(link + extra, now: Fixture.now) } == .envelope)
        }
    }

    @Test("parts of the wrong type or size are refused")
    func shapes() throws {
        func expect(
            _ expected: InviteFault, _ what: String, _ spoil: (inout Forgery) throws -> Void
        ) throws {
            var forgery = try Forgery()
            try spoil(&forgery)
            #expect(forgery.fault() == expected, "\(what)")
        }
        try expect(.envelope, "link version") { $0.linkVersion = "3" }
        try expect(.envelope, "version as text") { $0.envelopeVersion = "\"4\"" }
        try expect(.algorithm, "upper case") { $0.algorithm = "Ed25519" }
        try expect(.signature, "short signature") { $0.tamperSignature = { $0.dropLast() } }
        try expect(.signature, "long signature") { $0.tamperSignature = { $0 + [0] } }
        try expect(.signature, "no signature") { $0.tamperSignature = { _ in [] } }
        try expect(.signature, "short key") { $0.publicKey.removeLast() }
        try expect(.signature, "other key") { $0.publicKey = try Fixture.key(2).nodeID.bytes }
        try expect(.signature, "no point") { $0.publicKey = [2] + [UInt8](repeating: 0, count: 31) }
        try expect(.signature, "re-serialised payload") { forgery in
            forgery.tamper = { signed in
                Base64URL.encode((Base64URL.decode(signed) ?? []) + Array(" ".utf8))
            }
        }
        try expect(.envelope, "padded payload") { $0.tamper = { $0 + "=" } }
        try expect(.envelope, "payload is no JSON") { $0.payloadText = "hello" }
        try expect(.envelope, "payload is a list") { $0.payloadText = "[]" }
        try expect(.fingerprint, "no fingerprint") { $0.payload["fingerprint"] = nil }
        try expect(.fingerprint, "other fingerprint") {
            $0.payload["fingerprint"] = Fingerprint(of: [1]).description
        }
        try expect(.version, "no version") { $0.payload["v"] = nil }
        try expect(.version, "version as text") { $0.payload["v"] = "4" }
        try expect(.envelope, "no name") { $0.payload["name"] = nil }
        try expect(.envelope, "control character in the name") { $0.payload["name"] = "a\\u001b[2J" }
        try expect(.envelope, "long name") { $0.payload["name"] = String(repeating: "a", count: 129) }
        try expect(.envelope, "empty pairing token") { $0.payload["pairingToken"] = "" }
        try expect(.envelope, "unknown preference") { $0.payload["preference"] = "fastest" }
        try expect(.envelope, "date of no known form") { $0.payload["expiresAt"] = "tomorrow" }
        try expect(.envelope, "no transports") { $0.payload["transports"] = nil }
        try expect(.noTunnel, "empty transports") { $0.payload["transports"] = [String: Any]() }
        try expect(.envelope, "unknown address mode") { try $0.setMetadata("addressMode", "radio") }
        try expect(.ticketMissing, "empty ticket") { try $0.setMetadata("ticket", "") }
        try expect(.alpn, "endless protocols") {
            try $0.setMetadata("alpns", ["oppi/http/1", "oppi/pair/1"] + [String](repeating: "x", count: 31))
        }
    }

    @Test("a ticket is checked in the other address mode too")
    func ticketInNodeIDMode() throws {
        for (ticket, expected) in [
            (try Fixture.ticket(Fixture.key(2)).description, InviteFault.ticketNode), ("endpointaaaa", .ticket),
        ] {
            var metadata = try Forgery.metadata(Fixture.key())
            metadata["addressMode"] = "node-id"
            metadata["ticket"] = ticket
            var forgery = try Forgery()
            forgery.payload["transports"] = ["iroh": metadata]
            #expect(forgery.fault() == expected)
        }
    }

    @Test("at most eight different relays, duplicates folded, the ticket's under the same rules")
    func relays() throws {
        let key = try Fixture.key()
        func invite(_ relays: [String], ticketRelay: String) throws -> Forgery {
            var metadata = try Forgery.metadata(key)
            metadata["relayUrls"] = relays
            metadata["ticket"] = try EndpointTicket(nodeID: key.nodeID, addresses: [.relay(ticketRelay)]).description
            var forgery = try Forgery()
            forgery.payload["transports"] = ["iroh": metadata]
            return forgery
        }
        let eight = (1...8).map { "https://r\($0).example" }
        let folded = try invite(eight + ["https://R1.example:443/"], ticketRelay: "https://r2.example").parse()
        #expect(folded.endpoint.relayURLs.map(\.text) == eight.map { $0 + "/" })
        #expect(try invite(eight + ["https://r9.example"], ticketRelay: eight[0]).fault() == .relayURL)
        #expect(try invite(eight, ticketRelay: "https://r9.example").fault() == .relayURL)
        let local = try invite([], ticketRelay: "http://127.0.0.1:4701")
        #expect(local.fault() == .relayURL)
        #expect(throws: Never.self) { try local.parse(allowInsecureRelay: true) }
    }

    @Test("sizes are bounded at the link, the envelope and the payload")
    func sizes() throws {
        // Padding in an unknown field takes the payload to exactly its limit and one past it.
        for (size, expected) in [(8192, nil), (8193, InviteFault.envelope)] {
            var forgery = try Forgery()
            forgery.payload["x"] = ""
            let bare = JSONText.object(forgery.payload).utf8.count
            forgery.payload["x"] = String(repeating: "x", count: size - bare)
            #expect(forgery.fault() == expected)
        }
        // So does white space, unsigned, in the envelope.
        for (size, expected) in [(12_288, nil), (12_289, InviteFault.envelope)] {
            let envelope = try Forgery().envelope
            let padded = envelope + String(repeating: " ", count: size - envelope.utf8.count)
            let link = "culvert://connect?v=4&invite=" + Base64URL.encode(padded.utf8)
            #expect(fault { try Invite.parse(link, now: Fixture.now) } == expected)
        }
        for (size, expected) in [(16_448, nil), (16_449, InviteFault.envelope)] {
            let link = try Forgery().link
            let padded = link + String(repeating: " ", count: size - link.utf8.count)
            #expect(fault { try Invite.parse(padded, now: Fixture.now) } == expected)
        }
    }
}
