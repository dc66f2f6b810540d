/// The chunks of one queue in order: a growing ring of pointers, so that taking from the front moves nothing.
struct ChunkRing: ~Copyable {
    private var slots: UnsafeMutableBufferPointer<UnsafeMutableRawPointer>
    private var head = 0
    private(set) var count = 0

    init() {
        slots = UnsafeMutableBufferPointer(start: nil, count: 0)
    }

    deinit {
        slots.deallocate()
    }

    /// The chunk at `index` from the front, which must exist.
    subscript(index: Int) -> UnsafeMutableRawPointer {
        // The capacity is a power of two.
        slots[(head + index) & (slots.count - 1)]
    }

    mutating func append(_ chunk: UnsafeMutableRawPointer) {
        if count == slots.count { grow() }
        slots[(head + count) & (slots.count - 1)] = chunk
        count += 1
    }

    mutating func removeFirst() -> UnsafeMutableRawPointer {
        let chunk = self[0]
        head = (head + 1) & (slots.count - 1)
        count -= 1
        return chunk
    }

    mutating func removeLast() -> UnsafeMutableRawPointer {
        count -= 1
        return self[count]
    }

    private mutating func grow() {
        let larger = UnsafeMutableBufferPointer<UnsafeMutableRawPointer>.allocate(capacity: max(4, 2 * slots.count))
        for index in 0..<count { larger.initializeElement(at: index, to: self[index]) }
        slots.deallocate()
        slots = larger
        head = 0
    }
}
