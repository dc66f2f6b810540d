import CulvertCore
import Testing

@Suite("Deadline heap")
struct DeadlineHeapTests {
    final class Item: Deadlined {
        let number: Int
        var deadline = Instant.never
        var heapIndex: Int?
        init(_ number: Int) { self.number = number }
    }

    /// SplitMix64.
    struct Random: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var z = state
            z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
            z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
            return z ^ (z >> 31)
        }
    }

    @Test("agrees with a sorted list, whatever is set, moved, removed and taken", arguments: 0..<40 as Range<UInt64>)
    func model(seed: UInt64) {
        var random = Random(state: seed)
        var heap = DeadlineHeap<Item>()
        let items = (0..<50).map(Item.init)
        var model: [Int: Instant] = [:]
        for _ in 0..<2000 {
            let item = items[Int.random(in: 0..<items.count, using: &random)]
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                heap.remove(item)
                model[item.number] = nil
            case 1:
                heap.set(.never, for: item)
                model[item.number] = nil
            case 2:
                let now = Instant(nanoseconds: UInt64.random(in: 0..<100, using: &random))
                let popped = heap.popDue(at: now)
                let earliest = model.values.min()
                #expect((popped != nil) == (earliest.map { $0 <= now } ?? false))
                if let popped {
                    #expect(model[popped.number] == earliest)
                    #expect(popped.deadline == .never && popped.heapIndex == nil)
                    model[popped.number] = nil
                }
            default:
                let deadline = Instant(nanoseconds: UInt64.random(in: 0..<100, using: &random))
                heap.set(deadline, for: item)
                model[item.number] = deadline
            }
            #expect(heap.count == model.count)
            #expect(heap.nextDeadline == model.values.min() ?? .never)
            for item in items { #expect(item.deadline == model[item.number] ?? .never) }
        }
        var last = Instant(nanoseconds: 0)
        while let item = heap.popDue(at: Instant(nanoseconds: 1000)) {
            let deadline = model.removeValue(forKey: item.number) ?? .never
            #expect(deadline >= last)
            last = deadline
        }
        #expect(model.isEmpty && heap.first == nil)
    }
}
