import CulvertIdentity
import CulvertTestSupport
import Testing

@testable import CulvertRelay

private final class Link: Hashable {
    static func == (one: Link, other: Link) -> Bool { one === other }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

private func key(_ number: UInt8) -> PeerKey {
    [UInt8](repeating: number, count: PeerKey.byteCount).withUnsafeBytes { PeerKey($0) }
}

struct RelayRegistryTests {
    @Test func theNewestConnectionIsTheRouteAndTheOlderComesBack() {
        var registry = RelayRegistry<Link>()
        let old = Link()
        let new = Link()
        #expect(registry.join(key(1), by: old).displaced == nil)
        #expect(registry.join(key(1), by: new).displaced === old)
        #expect(registry.route(from: key(2), to: key(1)) === new)
        let departure = registry.leave(key(1), by: new)
        #expect(departure.restored === old && departure.told.isEmpty)
        #expect(registry.route(from: key(2), to: key(1)) === old)
    }

    @Test func anOlderConnectionLeavesWithoutAnyWord() {
        var registry = RelayRegistry<Link>()
        let old = Link()
        let new = Link()
        _ = registry.join(key(1), by: old)
        _ = registry.join(key(1), by: new)
        let departure = registry.leave(key(1), by: old)
        #expect(departure.restored == nil && departure.told.isEmpty)
        #expect(registry.route(from: key(1), to: key(1)) === new)
    }

    @Test func onlyThoseWhoWereSentToAreToldAndOnlyOnce() {
        var registry = RelayRegistry<Link>()
        let links = (0..<4).map { _ in Link() }
        for (index, link) in links.enumerated() { _ = registry.join(key(UInt8(index)), by: link) }
        for _ in 0..<3 { _ = registry.route(from: key(0), to: key(1)) }
        _ = registry.route(from: key(0), to: key(9))
        _ = registry.route(from: key(2), to: key(0))
        _ = registry.route(from: key(0), to: key(3))
        _ = registry.leave(key(3), by: links[3])
        let told = registry.leave(key(0), by: links[0]).told
        #expect(told.count == 1 && told.first === links[1])
        #expect(registry.leave(key(0), by: links[0]).told.isEmpty, "it has left already")
    }

    @Test func thereIsABoundOnConnectionsOfOneNode() {
        var registry = RelayRegistry<Link>()
        let links = (0...RelayServerLimits.connectionsPerNode).map { _ in Link() }
        for link in links.dropLast() { #expect(registry.join(key(1), by: link).evicted == nil) }
        #expect(registry.join(key(1), by: links[links.count - 1]).evicted === links[0])
    }

    @Test func whatIsRememberedIsBoundedAndForgetsThoseWhoLeft() {
        var registry = RelayRegistry<Link>()
        let source = Link()
        _ = registry.join(key(0), by: source)
        var generator = SplitMix64(seed: 3)
        let peers = (0...RelayServerLimits.rememberedPeers).map { _ in
            (generator.bytes(32).withUnsafeBytes { PeerKey($0) }, Link())
        }
        for (peer, link) in peers { _ = registry.join(peer, by: link) }
        for (peer, _) in peers.dropLast() { _ = registry.route(from: key(0), to: peer) }
        let (last, lastLink) = peers[peers.count - 1]
        _ = registry.route(from: key(0), to: last)
        _ = registry.leave(peers[0].0, by: peers[0].1)
        _ = registry.route(from: key(0), to: last)
        let told = registry.leave(key(0), by: source).told
        #expect(told.count == RelayServerLimits.rememberedPeers)
        #expect(told.contains { $0 === lastLink })
    }

    @Test(arguments: 0..<50) func agreesWithASimpleModel(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var registry = RelayRegistry<Link>()
        var model: [UInt8: [Link]] = [:]
        var sentTo: [UInt8: Set<UInt8>] = [:]
        for _ in 0..<400 {
            let node = UInt8.random(in: 0..<6, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0:
                guard model[node, default: []].count < RelayServerLimits.connectionsPerNode else { continue }
                let link = Link()
                #expect(registry.join(key(node), by: link).displaced === model[node]?.last)
                model[node, default: []].append(link)
            case 1:
                guard let link = model[node]?.randomElement(using: &generator) else { continue }
                let wasLast = model[node]?.last === link
                model[node]?.removeAll { $0 === link }
                let departure = registry.leave(key(node), by: link)
                if model[node]?.isEmpty == true {
                    model[node] = nil
                    let expected = Set((sentTo.removeValue(forKey: node) ?? []).compactMap { model[$0]?.last })
                    #expect(Set(departure.told) == expected && departure.told.count == expected.count)
                } else {
                    #expect(departure.restored === (wasLast ? model[node]?.last : nil))
                }
            default:
                let other = UInt8.random(in: 0..<6, using: &generator)
                guard model[node] != nil else { continue }
                #expect(registry.route(from: key(node), to: key(other)) === model[other]?.last)
                if model[other] != nil { sentTo[node, default: []].insert(other) }
            }
            #expect(registry.count == model.count)
        }
    }
}
