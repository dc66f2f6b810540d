import CulvertCore
import CulvertTestSupport
import Testing

@Suite("Deadline heap")
struct DeadlineHeapTests {
    private final class Waiter: Deadlined {
        var heapIndex: Int?
    }

    @Test("it orders like a sorted list, whatever is set, moved and taken out", arguments: 0..<50 as Range<UInt64>)
    func ordersLikeASortedList(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var heap = DeadlineHeap<Waiter>()
        let waiters = (0..<40).map { _ in Waiter() }
        var model: [(deadline: UInt64, order: Int, waiter: Waiter)] = []
        for order in 0..<600 {
            let waiter = try #require(waiters.randomElement(using: &random))
            switch UInt8.random(in: 0..<10, using: &random) {
            case 0..<6:
                let deadline = UInt64.random(in: 0..<50, using: &random)
                heap.set(Instant(nanoseconds: deadline), for: waiter)
                model.removeAll { $0.waiter === waiter }
                model.append((deadline, order, waiter))
            case 6: heap.remove(waiter); model.removeAll { $0.waiter === waiter }
            case 7: heap.set(.never, for: waiter); model.removeAll { $0.waiter === waiter }
            default:
                model.sort { ($0.deadline, $0.order) < ($1.deadline, $1.order) }
                let due = model.first.flatMap { $0.deadline <= 30 ? $0.waiter : nil }
                #expect(heap.popDue(at: Instant(nanoseconds: 30)) === due)
                if due != nil { model.removeFirst() }
            }
            #expect(heap.count == model.count)
            #expect(heap.nextDeadline.nanoseconds == model.map(\.deadline).min() ?? .max)
        }
        heap.removeAll()
        #expect(waiters.allSatisfy { $0.heapIndex == nil })
    }

    @Test("what is set after the mark waits for the next round")
    func mark() {
        var heap = DeadlineHeap<Waiter>()
        let (early, late) = (Waiter(), Waiter())
        heap.set(Instant(nanoseconds: 1), for: early)
        let mark = heap.mark
        heap.set(Instant(nanoseconds: 1), for: late)
        #expect(heap.popDue(at: Instant(nanoseconds: 5), setBefore: mark) === early)
        #expect(heap.popDue(at: Instant(nanoseconds: 5), setBefore: mark) == nil)
        #expect(heap.popDue(at: Instant(nanoseconds: 5)) === late)
    }
}
