/// Something that waits for a time, and that a ``DeadlineHeap`` can hold.
package protocol Deadlined: AnyObject {
    /// Its place in the heap, nil when it is in none; belongs to the heap.
    var heapIndex: Int? { get set }
}

/// Things ordered by deadline and, for equal deadlines, by the order in which they were put in: a binary heap whose
/// elements know their place, so that moving one takes O(log n) and allocates nothing.
///
/// Entries carry their keys, so that comparing does not touch the elements.
package struct DeadlineHeap<Element: Deadlined> {
    private struct Entry {
        var deadline: Instant
        var sequence: UInt64
        var element: Element

        func isBefore(_ other: Entry) -> Bool {
            deadline != other.deadline ? deadline < other.deadline : sequence < other.sequence
        }
    }

    private var entries: [Entry] = []
    private var nextSequence: UInt64 = 0

    /// An empty heap.
    package init() {}

    /// The earliest deadline; ``Instant/never`` when nothing waits.
    package var nextDeadline: Instant { entries.first?.deadline ?? .never }

    /// How many elements wait.
    package var count: Int { entries.count }

    /// Marks a point in the order of ``set(_:for:)``; see ``popDue(at:setBefore:)``.
    package var mark: UInt64 { nextSequence }

    /// Has `element` wait for `deadline`, instead of what it waited for; ``Instant/never`` takes it out.
    package mutating func set(_ deadline: Instant, for element: Element) {
        guard deadline != .never else { return remove(element) }
        let sequence = nextSequence
        nextSequence += 1
        if let index = element.heapIndex {
            entries[index].deadline = deadline
            entries[index].sequence = sequence
            siftDown(siftUp(index))
        } else {
            entries.append(Entry(deadline: deadline, sequence: sequence, element: element))
            element.heapIndex = entries.count - 1
            siftUp(entries.count - 1)
        }
    }

    /// Takes `element` out, if it is in.
    package mutating func remove(_ element: Element) {
        guard let index = element.heapIndex else { return }
        element.heapIndex = nil
        let last = entries.removeLast()
        guard index < entries.count else { return }
        entries[index] = last
        last.element.heapIndex = index
        siftDown(siftUp(index))
    }

    /// Takes out and gives the first element that is due at `now` and was set before `mark`, so that elements which
    /// are set again at once cannot keep the caller busy for ever.
    package mutating func popDue(at now: Instant, setBefore mark: UInt64 = .max) -> Element? {
        guard let first = entries.first, first.deadline <= now, first.sequence < mark else { return nil }
        remove(first.element)
        return first.element
    }

    /// Takes out all elements.
    package mutating func removeAll() {
        for entry in entries { entry.element.heapIndex = nil }
        entries.removeAll()
    }

    /// Moves the entry towards the front; gives where it ends.
    @discardableResult
    private mutating func siftUp(_ start: Int) -> Int {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard entries[index].isBefore(entries[parent]) else { break }
            swap(index, parent)
            index = parent
        }
        return index
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            var first = index
            for child in 2 * index + 1...2 * index + 2
            where child < entries.count && entries[child].isBefore(entries[first]) {
                first = child
            }
            if first == index { return }
            swap(index, first)
            index = first
        }
    }

    private mutating func swap(_ left: Int, _ right: Int) {
        entries.swapAt(left, right)
        entries[left].element.heapIndex = left
        entries[right].element.heapIndex = right
    }
}
