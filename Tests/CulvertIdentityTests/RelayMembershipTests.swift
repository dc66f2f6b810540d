import CulvertCore
import CulvertIdentity
import CulvertTestSupport
import Testing

@Suite("Relay membership")
struct RelayMembershipTests {
    private let alice: NodeID
    private let bob: NodeID

    init() throws {
        alice = try Fixture.key(1).nodeID
        bob = try Fixture.key(2).nodeID
    }

    private func relay(_ name: String) throws -> RelayURL {
        try RelayURL("https://\(name).example", allowInsecure: false)
    }

    private func relays(_ names: String...) throws -> [RelayURL] { try names.map { try relay($0) } }

    /// `+a` for an installation, `-a` for a removal.
    private func text(_ actions: [RelayMembership.Action]) -> [String] {
        actions.map { ($0.verb == .install ? "+" : "-") + $0.relay.host.prefix { $0 != "." } }
    }

    private func names(_ membership: RelayMembership) -> [String] {
        membership.desired.map { String($0.host.prefix { $0 != "." }) }
    }

    private func refusal(_ membership: RelayMembership, _ owner: NodeID) -> TransportError? {
        do {
            _ = try membership.relays(toDial: owner)
            return nil
        } catch {
            return error
        }
    }

    @Test("the desired set is the union over the owners, and a shared relay is installed once")
    func union() throws {
        var membership = RelayMembership(side: .client)
        #expect(membership.endpointStarted().isEmpty)
        #expect(text(try membership.set(relays("b", "a", "b"), for: alice)) == ["+a", "+b"])
        #expect(text(try membership.set(relays("b", "c"), for: bob)) == ["+c"])
        #expect(names(membership) == ["a", "b", "c"])
        #expect(membership.activeOwners == [alice, bob])
    }

    @Test("a shared relay stays while any owner uses it")
    func sharing() throws {
        var membership = RelayMembership(side: .client)
        _ = membership.endpointStarted()
        _ = try membership.set(relays("a", "shared"), for: alice)
        _ = try membership.set(relays("shared"), for: bob)
        #expect(text(membership.remove(alice)) == ["-a"])
        #expect(membership.remove(alice).isEmpty)
        #expect(text(membership.remove(bob)) == ["-shared"])
        #expect(membership.desired.isEmpty)
    }

    @Test("replacing an owner's relays removes those without an owner, before it installs others")
    func replacement() throws {
        var membership = RelayMembership(side: .client)
        _ = membership.endpointStarted()
        _ = try membership.set(relays("x", "y"), for: alice)
        _ = try membership.set(relays("y"), for: bob)
        #expect(text(try membership.set(relays("a"), for: alice)) == ["-x", "+a"])
        #expect(try membership.set(relays("a"), for: alice).isEmpty)
        #expect(text(try membership.set([], for: alice)) == ["-a"])
        #expect(refusal(membership, alice) == nil)
    }

    @Test("configured relays add to the defaults on a client and replace them on a host")
    func configured() throws {
        let client = RelayMembership(defaults: try relays("default"), custom: try relays("custom"), side: .client)
        #expect(names(client) == ["custom", "default"])
        let host = RelayMembership(defaults: try relays("default"), custom: try relays("custom"), side: .host)
        #expect(names(host) == ["custom"])
        let plain = RelayMembership(defaults: try relays("default"), side: .host)
        #expect(names(plain) == ["default"])
    }

    @Test("a configured relay belongs to no owner and is never removed")
    func configuredStay() throws {
        var membership = RelayMembership(defaults: try relays("default"), side: .client)
        #expect(text(membership.endpointStarted()) == ["+default"])
        #expect(try membership.set(relays("default"), for: alice).isEmpty)
        #expect(membership.remove(alice).isEmpty)
        #expect(names(membership) == ["default"])
    }

    @Test("a recycled endpoint is told everything again")
    func recycling() throws {
        var membership = RelayMembership(defaults: try relays("default"), side: .client)
        #expect(try membership.set(relays("a"), for: alice).isEmpty)  // No endpoint yet.
        let first = membership.endpointStarted()
        #expect(text(first) == ["+a", "+default"])
        _ = try membership.set(relays("b"), for: bob)
        let second = membership.endpointStarted()
        #expect(text(second) == ["+a", "+b", "+default"])
        let before = try #require(first.first).generation
        let after = try #require(second.first).generation
        #expect(before < after)
        #expect(membership.currentGeneration == after)
    }

    @Test("without an endpoint changes are kept for the next one")
    func stopped() throws {
        var membership = RelayMembership(side: .client)
        _ = membership.endpointStarted()
        _ = try membership.set(relays("a"), for: alice)
        membership.endpointStopped()
        #expect(membership.currentGeneration == nil)
        #expect(refusal(membership, alice)?.kind == .cancelled)
        #expect(membership.remove(alice).isEmpty)
        #expect(try membership.set(relays("b"), for: bob).isEmpty)
        #expect(membership.retry().isEmpty)
        #expect(text(membership.endpointStarted()) == ["+b"])
    }

    @Test("an owner is dialed only with its relays installed, and the error says nothing about them")
    func failure() throws {
        var membership = RelayMembership(side: .client)
        #expect(refusal(membership, alice)?.kind == .cancelled)
        _ = membership.endpointStarted()
        let actions = try membership.set(relays("a", "b"), for: alice)
        _ = try membership.set(relays("b"), for: bob)
        #expect(refusal(membership, alice) == nil)
        membership.failed(try #require(actions.first))
        let error = try #require(refusal(membership, alice))
        #expect(error.kind == .unavailable)
        #expect(!error.reason.contains("example") && !error.reason.contains("http"))
        #expect(refusal(membership, bob) == nil)
        #expect(text(membership.retry()) == ["+a"])
        #expect(refusal(membership, alice) == nil)
    }

    @Test("a failed installation is tried again with the next change")
    func failureThenChange() throws {
        var membership = RelayMembership(side: .client)
        _ = membership.endpointStarted()
        membership.failed(try #require(try membership.set(relays("a"), for: alice).first))
        #expect(text(try membership.set(relays("b"), for: bob)) == ["+a", "+b"])
    }

    @Test("a failed installation that nobody wants any more needs no removal")
    func failureThenRemoval() throws {
        var membership = RelayMembership(side: .client)
        _ = membership.endpointStarted()
        membership.failed(try #require(try membership.set(relays("a"), for: alice).first))
        #expect(membership.remove(alice).isEmpty)
    }

    @Test("reports about an endpoint of the past, and about removals, change nothing")
    func lateReports() throws {
        var membership = RelayMembership(side: .client)
        _ = membership.endpointStarted()
        let old = try membership.set(relays("a"), for: alice)
        let new = membership.endpointStarted()
        membership.failed(try #require(old.first))
        #expect(refusal(membership, alice) == nil)
        let removals = membership.remove(alice)
        _ = try membership.set(relays("a"), for: alice)
        membership.failed(try #require(removals.first))
        #expect(refusal(membership, alice) == nil)
        membership.failed(try #require(new.first))
        #expect(refusal(membership, alice) != nil)
    }

    @Test("an owner may have eight relays and not nine; a refusal changes nothing")
    func limit() throws {
        var membership = RelayMembership(side: .client)
        _ = membership.endpointStarted()
        let eight = try (1...8).map { try relay("r\($0)") }
        _ = try membership.set(eight + [eight[0]], for: alice)
        #expect(fault { try membership.set(eight + relays("r9"), for: alice) } == .relayURL)
        #expect(membership.desired.count == 8)
    }

    /// A model that is told only what an endpoint is told must hold exactly the desired set.
    @Test("an endpoint that follows the actions has the desired set, whatever happens", arguments: 0..<200)
    func model(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let owners = try (1...4).map { try Fixture.key(UInt8($0)).nodeID }
        let pool = try ["a", "b", "c", "d", "e"].map { try relay($0) }
        let defaults = Bool.random(using: &random) ? [pool[0]] : []
        var membership = RelayMembership(defaults: defaults, side: .client)
        var wanted: [NodeID: Set<RelayURL>] = [:]
        var endpoint: Set<RelayURL>?

        for _ in 0..<40 {
            let owner = owners[Int.random(in: 0..<4, using: &random)]
            var actions: [RelayMembership.Action] = []
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                endpoint = []
                actions = membership.endpointStarted()
            case 1:
                endpoint = nil
                membership.endpointStopped()
            case 2, 3:
                wanted[owner] = nil
                actions = membership.remove(owner)
            default:
                let chosen = pool.filter { _ in Bool.random(using: &random) }
                wanted[owner] = Set(chosen)
                actions = try membership.set(chosen, for: owner)
            }
            for action in actions {
                #expect(action.generation == membership.currentGeneration)
                switch action.verb {
                case .install: #expect(endpoint?.insert(action.relay).inserted == true)
                case .remove: #expect(endpoint?.remove(action.relay) != nil)
                }
            }
            let union = wanted.values.reduce(Set(defaults)) { $0.union($1) }
            #expect(Set(membership.desired) == union)
            if let endpoint { #expect(endpoint == union) }
        }
    }
}
