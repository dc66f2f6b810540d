/// Something that wants to be woken at a time, and that a ``DeadlineHeap`` can hold.
public protocol Deadlined: AnyObject {
    /// When; ``Instant/never`` for not at all. Change it only through ``DeadlineHeap/set(_:for:)``.
    var deadline: Instant { get set }
    /// Its place in the heap; belongs to the heap.
    var heapIndex: Int? { get set }
}

/// Things ordered by deadline: a binary heap whose elements know their place, so that moving a deadline takes
/// O(log n) and allocates nothing.
public struct DeadlineHeap<Element: Deadlined> {
    private var elements: [Element] = []

    /// An empty heap.
    public init() {}

    /// The element that is due first.
    public var first: Element? { elements.first }

    /// The earliest deadline; ``Instant/never`` when nothing waits.
    public var nextDeadline: Instant { elements.first?.deadline ?? .never }

    /// How many elements wait.
    public var count: Int { elements.count }

    /// Moves `element` to `deadline`; adds it when it was not in the heap, removes it for ``Instant/never``.
    public mutating func set(_ deadline: Instant, for element: Element) {
        if deadline == .never {
            remove(element)
            return
        }
        let previous = element.deadline
        element.deadline = deadline
        if let index = element.heapIndex {
            if deadline < previous { siftUp(index) } else if deadline > previous { siftDown(index) }
        } else {
            element.heapIndex = elements.count
            elements.append(element)
            siftUp(elements.count - 1)
        }
    }

    /// Takes `element` out, if it is in.
    public mutating func remove(_ element: Element) {
        element.deadline = .never
        guard let index = element.heapIndex else { return }
        element.heapIndex = nil
        let last = elements.removeLast()
        guard last !== element else { return }
        elements[index] = last
        last.heapIndex = index
        siftUp(index)
        siftDown(last.heapIndex ?? index)
    }

    /// Takes out and returns an element that is due at `now`.
    public mutating func popDue(at now: Instant) -> Element? {
        guard let element = elements.first, element.deadline <= now else { return nil }
        remove(element)
        return element
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard elements[index].deadline < elements[parent].deadline else { return }
            swap(index, parent)
            index = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            var smallest = index
            let left = 2 * index + 1
            for child in left..<max(left, min(left + 2, elements.count)) {
                if elements[child].deadline < elements[smallest].deadline { smallest = child }
            }
            guard smallest != index else { return }
            swap(index, smallest)
            index = smallest
        }
    }

    private mutating func swap(_ first: Int, _ second: Int) {
        elements.swapAt(first, second)
        elements[first].heapIndex = first
        elements[second].heapIndex = second
    }
}
