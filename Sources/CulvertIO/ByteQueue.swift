import Glibc

/// Bytes in order, in chunks that never move: QUIC keeps pointers into them until the peer has acknowledged them.
///
/// All chunks but the last are full, so that the byte at any offset is found in O(1). Chunks come from a pool and go
/// back to it as soon as their last byte is consumed. Confined to its loop; nothing is allocated in the steady state.
///
/// The queue itself has no bound: its users stop filling it at theirs (see `count`).
package final class ByteQueue {
    private let pool: ChunkPool
    private var chunks = ChunkRing()
    /// How many bytes at the front of the first chunk are consumed.
    private var consumed = 0
    /// How many bytes are queued.
    package private(set) var count = 0
    private let scratch: UnsafeMutableBufferPointer<iovec>

    /// An empty queue with chunks of `pool`.
    package init(pool: ChunkPool) {
        self.pool = pool
        scratch = .allocate(capacity: IOLimits.vectors)
    }

    deinit {
        while chunks.count > 0 { pool.give(chunks.removeFirst()) }
        scratch.deallocate()
    }

    /// Whether nothing is queued.
    package var isEmpty: Bool { count == 0 }

    /// Copies `bytes` to the end.
    package func append(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            let end = consumed + count
            if end == chunks.count * IOLimits.chunkBytes { chunks.append(pool.take()) }
            let offset = end % IOLimits.chunkBytes
            let part = min(rest.count, IOLimits.chunkBytes - offset)
            let target = UnsafeMutableRawBufferPointer(start: chunks[end / IOLimits.chunkBytes] + offset, count: part)
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<part]))
            rest = UnsafeRawBufferPointer(rebasing: rest[part...])
            count += part
        }
    }

    /// Offers free space behind the end, `max` bytes or what ``IOLimits/vectors`` vectors hold, and appends as many bytes
    /// as `body` says it has filled from the front. `body` must not touch the queue. Returns what `body` returned.
    @discardableResult
    package func withFreeVectors(max: Int, _ body: (UnsafeMutableBufferPointer<iovec>) -> Int) -> Int {
        var offered = 0
        var vectors = 0
        while offered < max, vectors < IOLimits.vectors {
            let end = consumed + count + offered
            if end == chunks.count * IOLimits.chunkBytes { chunks.append(pool.take()) }
            let offset = end % IOLimits.chunkBytes
            let part = min(max - offered, IOLimits.chunkBytes - offset)
            scratch[vectors] = iovec(iov_base: chunks[end / IOLimits.chunkBytes] + offset, iov_len: part)
            vectors += 1
            offered += part
        }
        let filled = body(UnsafeMutableBufferPointer(rebasing: scratch[..<vectors]))
        precondition(filled <= offered, "more bytes reported than there was room for")
        count += Swift.max(filled, 0)
        trimUnused()
        return filled
    }

    /// Points at up to `maxBytes` queued bytes from `offset` on, in up to `maxVectors` vectors (at most
    /// ``IOLimits/vectors``). The vectors hold only during the call; the bytes stay where they are until consumed.
    package func vectors(from offset: Int, maxBytes: Int, maxVectors: Int) -> UnsafeBufferPointer<iovec> {
        precondition(offset >= 0 && offset <= count, "an offset behind the end")
        var position = consumed + offset
        var left = min(maxBytes, count - offset)
        var used = 0
        while left > 0, used < min(maxVectors, IOLimits.vectors) {
            let start = position % IOLimits.chunkBytes
            let part = min(left, IOLimits.chunkBytes - start)
            scratch[used] = iovec(iov_base: chunks[position / IOLimits.chunkBytes] + start, iov_len: part)
            used += 1
            position += part
            left -= part
        }
        return UnsafeBufferPointer(rebasing: scratch[..<used])
    }

    /// Calls `body` with ``vectors(from:maxBytes:maxVectors:)``; `body` must not touch the queue.
    @inlinable
    package func withVectors<R>(
        from offset: Int, maxBytes: Int, maxVectors: Int = 16, _ body: (UnsafeBufferPointer<iovec>) -> R
    ) -> R {
        body(vectors(from: offset, maxBytes: maxBytes, maxVectors: maxVectors))
    }

    /// A copy of `count` bytes from `offset` on, or of as many as there are.
    package func bytes(from offset: Int, count: Int) -> [UInt8] {
        var copy: [UInt8] = []
        while copy.count < min(count, self.count - offset) {
            let left = count - copy.count
            for vector in vectors(from: offset + copy.count, maxBytes: left, maxVectors: IOLimits.vectors) {
                copy += UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len)
            }
        }
        return copy
    }

    /// Drops `n` bytes from the front, at most ``count``; pointers into them are void then.
    package func consume(_ n: Int) {
        precondition(n >= 0 && n <= count, "more bytes consumed than there are")
        count -= n
        consumed += n
        while consumed >= IOLimits.chunkBytes {
            pool.give(chunks.removeFirst())
            consumed -= IOLimits.chunkBytes
        }
        if count == 0 {
            consumed = 0
            trimUnused()
        }
    }

    /// Drops everything.
    package func removeAll() {
        consume(count)
    }

    /// Gives back the chunks behind the end.
    private func trimUnused() {
        let end = consumed + count
        let needed = count == 0 ? 0 : (end + IOLimits.chunkBytes - 1) / IOLimits.chunkBytes
        while chunks.count > needed { pool.give(chunks.removeLast()) }
        if count == 0 { consumed = 0 }
    }
}
