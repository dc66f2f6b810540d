import CulvertCore

/// A binary heap of armed timers, ordered by deadline and, for equal deadlines, by the order of arming.
///
/// Entries carry their keys, so that comparing does not touch the timers.
struct TimerHeap {
    private struct Entry {
        var deadline: UInt64
        var sequence: UInt64
        var timer: LoopTimer

        func isBefore(_ other: Entry) -> Bool {
            deadline != other.deadline ? deadline < other.deadline : sequence < other.sequence
        }
    }

    private var entries: [Entry] = []
    private var nextSequence: UInt64 = 0

    /// The earliest deadline; ``Instant/never`` when nothing is armed.
    var first: Instant { Instant(nanoseconds: entries.first?.deadline ?? .max) }

    /// Marks a point in the order of arming; see ``popExpired(at:armedBefore:)``.
    var mark: UInt64 { nextSequence }

    /// Adds `timer`, or moves it when it is there already.
    ///
    /// The key is not earlier than `now`: otherwise a timer that rearms itself in the past would stay ahead of all
    /// others for ever.
    mutating func insert(_ timer: LoopTimer, at deadline: Instant, now: Instant) {
        let key = max(deadline, now).nanoseconds
        let sequence = nextSequence
        nextSequence += 1
        let index = timer.heapIndex
        if index >= 0 {
            entries[index].deadline = key
            entries[index].sequence = sequence
            siftDown(siftUp(index))
        } else {
            entries.append(Entry(deadline: key, sequence: sequence, timer: timer))
            timer.heapIndex = entries.count - 1
            siftUp(entries.count - 1)
        }
    }

    mutating func remove(_ timer: LoopTimer) {
        let index = timer.heapIndex
        guard index >= 0 else { return }
        timer.heapIndex = -1
        let last = entries.removeLast()
        guard index < entries.count else { return }
        entries[index] = last
        last.timer.heapIndex = index
        siftDown(siftUp(index))
    }

    /// Takes out the first timer whose deadline is not after `now` and that was armed before `mark`, so that timers
    /// which rearm themselves at once cannot hold up the loop.
    mutating func popExpired(at now: Instant, armedBefore mark: UInt64) -> LoopTimer? {
        guard let first = entries.first, first.deadline <= now.nanoseconds, first.sequence < mark else { return nil }
        remove(first.timer)
        return first.timer
    }

    /// Takes out all timers, for the end of the loop.
    mutating func removeAll() {
        for entry in entries { entry.timer.heapIndex = -1 }
        entries.removeAll()
    }

    /// Moves the entry towards the front; where it ends.
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
            var least = index
            for child in (2 * index + 1)...(2 * index + 2)
            where child < entries.count && entries[child].isBefore(entries[least]) {
                least = child
            }
            if least == index { return }
            swap(index, least)
            index = least
        }
    }

    private mutating func swap(_ left: Int, _ right: Int) {
        entries.swapAt(left, right)
        entries[left].timer.heapIndex = left
        entries[right].timer.heapIndex = right
    }
}
