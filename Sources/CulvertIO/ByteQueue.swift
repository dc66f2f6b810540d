import CLinux
import Glibc

/// Memory for byte queues, in chunks of one size. Freed chunks are kept for the next use, up to a bound. Confined to
/// one thread.
package final class ChunkPool {
    /// Bytes in a chunk.
    package static let chunkSize = 16 * 1024
    /// Chunks kept for reuse (4 MiB); more are given back to the system.
    private static let maximumKept = 256
    private var kept: [UnsafeMutableRawPointer] = []

    /// An empty pool.
    package init() {
        kept.reserveCapacity(Self.maximumKept)
    }

    deinit {
        for chunk in kept { chunk.deallocate() }
    }

    fileprivate func take() -> UnsafeMutableRawPointer {
        kept.popLast() ?? .allocate(byteCount: Self.chunkSize, alignment: 64)
    }

    fileprivate func give(_ chunk: UnsafeMutableRawPointer) {
        if kept.count < Self.maximumKept { kept.append(chunk) } else { chunk.deallocate() }
    }
}

/// Bytes in order, in chunks that never move while they hold bytes: sockets read into them, and QUIC refers to them
/// until they are acknowledged. All chunks are full except the last. Confined to one thread.
package final class ByteQueue {
    private let pool: ChunkPool
    /// A ring of chunks; its capacity is a power of two.
    private var ring: [UnsafeMutableRawPointer?] = []
    private var head = 0
    private var chunkCount = 0
    /// Bytes of the first chunk that are consumed.
    private var start = 0
    /// How many bytes there are.
    package private(set) var count = 0

    /// An empty queue with memory from `pool`.
    package init(pool: ChunkPool) {
        self.pool = pool
    }

    deinit {
        removeAll()
    }

    /// Whether there are no bytes.
    package var isEmpty: Bool { count == 0 }

    /// Appends a copy of `bytes`.
    package func append(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            let space = reserve(rest.count)
            space.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest.prefix(space.count)))
            count += space.count
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(space.count))
        }
    }

    /// Lets `fill` write up to `limit` bytes behind the last one; it returns how many it wrote, or a negative number
    /// for none, which is passed on.
    package func withFreeVectors(limit: Int, _ fill: (UnsafePointer<iovec>, Int) -> Int) -> Int {
        let free = chunkCount * ChunkPool.chunkSize - start - count
        let wanted = min(limit, IOLimits.vectors * ChunkPool.chunkSize)
        let added = max(0, (wanted - free + ChunkPool.chunkSize - 1) / ChunkPool.chunkSize)
        for _ in 0..<added { appendChunk() }
        let filled = withUnsafeTemporaryAllocation(of: iovec.self, capacity: IOLimits.vectors) { vectors in
            let used = collect(vectors, from: count, limit: wanted, end: count + wanted)
            return used.vectors == 0 ? 0 : fill(UnsafePointer(vectors.baseAddress.unsafelyUnwrapped), used.vectors)
        }
        if filled > 0 { count += filled }
        dropEmptyChunks()
        return filled
    }

    /// Gives the bytes from `offset` on, at most `maxBytes` in at most `maxVectors` pieces, and their number.
    package func withVectors<Result>(
        from offset: Int, maxBytes: Int, maxVectors: Int, _ body: (UnsafeBufferPointer<iovec>, Int) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(of: iovec.self, capacity: max(1, min(maxVectors, chunkCount))) { vectors in
            let used = collect(vectors, from: offset, limit: maxBytes, end: count)
            return body(UnsafeBufferPointer(rebasing: vectors.prefix(used.vectors)), used.bytes)
        }
    }

    /// A copy of `count` bytes from `offset` on, as many as there are.
    package func bytes(from offset: Int, count: Int) -> [UInt8] {
        withVectors(from: offset, maxBytes: count, maxVectors: .max) { vectors, total in
            var copy: [UInt8] = []
            copy.reserveCapacity(total)
            for vector in vectors { copy += UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len) }
            return copy
        }
    }

    /// Drops the first `count` bytes.
    package func consume(_ count: Int) {
        let dropped = min(count, self.count)
        self.count -= dropped
        start += dropped
        while start >= ChunkPool.chunkSize {
            releaseFirst()
            start -= ChunkPool.chunkSize
        }
        if self.count == 0 { removeAll() }
    }

    /// Drops all bytes.
    package func removeAll() {
        while chunkCount > 0 { releaseFirst() }
        start = 0
        count = 0
    }

    // MARK: Chunks

    private func collect(_ vectors: UnsafeMutableBufferPointer<iovec>, from offset: Int, limit: Int, end: Int)
        -> (vectors: Int, bytes: Int)
    {
        var position = start + offset
        var left = min(limit, end - offset)
        var used = 0
        var bytes = 0
        while left > 0, used < vectors.count {
            let inChunk = position % ChunkPool.chunkSize
            let index = (head + position / ChunkPool.chunkSize) & (ring.count - 1)
            let length = min(left, ChunkPool.chunkSize - inChunk)
            vectors[used] = iovec(iov_base: ring[index].map { $0 + inChunk }, iov_len: length)
            used += 1
            bytes += length
            position += length
            left -= length
        }
        return (used, bytes)
    }

    /// Free memory behind the last byte: up to `wanted` bytes in one piece.
    private func reserve(_ wanted: Int) -> UnsafeMutableRawBufferPointer {
        let position = start + count
        if position == chunkCount * ChunkPool.chunkSize { appendChunk() }
        let inChunk = position % ChunkPool.chunkSize
        let index = (head + position / ChunkPool.chunkSize) & (ring.count - 1)
        return UnsafeMutableRawBufferPointer(
            start: ring[index].map { $0 + inChunk }, count: min(wanted, ChunkPool.chunkSize - inChunk))
    }

    private func appendChunk() {
        if chunkCount == ring.count { grow() }
        ring[(head + chunkCount) & (ring.count - 1)] = pool.take()
        chunkCount += 1
    }

    private func grow() {
        var larger = [UnsafeMutableRawPointer?](repeating: nil, count: max(4, ring.count * 2))
        for index in 0..<chunkCount { larger[index] = ring[(head + index) & (ring.count - 1)] }
        ring = larger
        head = 0
    }

    private func releaseFirst() {
        if let chunk = ring[head] { pool.give(chunk) }
        ring[head] = nil
        head = (head + 1) & (ring.count - 1)
        chunkCount -= 1
    }

    /// Gives back chunks that were taken for reading and stayed empty.
    private func dropEmptyChunks() {
        let needed = (start + count + ChunkPool.chunkSize - 1) / ChunkPool.chunkSize
        while chunkCount > needed {
            chunkCount -= 1
            let index = (head + chunkCount) & (ring.count - 1)
            if let chunk = ring[index] { pool.give(chunk) }
            ring[index] = nil
        }
    }
}
