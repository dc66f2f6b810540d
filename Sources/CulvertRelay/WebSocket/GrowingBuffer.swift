/// Raw bytes that grow at the end. Its memory does not move while nothing is appended.
struct GrowingBuffer: ~Copyable {
    private var storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private(set) var count = 0

    init() {}

    deinit {
        storage.deallocate()
    }

    var isEmpty: Bool { count == 0 }
    /// Bytes of memory held.
    var capacity: Int { storage.count }

    /// What is in it; valid until the next change.
    var bytes: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(rebasing: storage[..<count]) }

    /// Copies `more` to the end. Memory at least doubles when it grows, but not beyond `expected`, which is how many
    /// bytes there will be in the end: what a peer announces costs nothing until it sends it.
    mutating func append(_ more: UnsafeRawBufferPointer, expecting expected: Int) {
        guard !more.isEmpty else { return }
        let needed = count + more.count
        if needed > storage.count {
            let grown = max(needed, min(expected, max(2 * storage.count, 1024)))
            let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: grown, alignment: 16)
            larger.copyMemory(from: UnsafeRawBufferPointer(bytes))
            storage.deallocate()
            storage = larger
        }
        UnsafeMutableRawBufferPointer(rebasing: storage[count..<needed]).copyMemory(from: more)
        count = needed
    }

    /// Forgets the bytes, and their memory when it is more than `retained`.
    mutating func removeAll(retaining retained: Int) {
        count = 0
        guard storage.count > retained else { return }
        storage.deallocate()
        storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }
}
