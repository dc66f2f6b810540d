/// Hands out chunks of ``IOLimits/chunkBytes`` bytes and keeps a bounded number of returned ones for reuse.
///
/// Confined to its loop, as are the queues that use it. One pool serves all queues of a loop.
package final class ChunkPool {
    private var free: [UnsafeMutableRawPointer] = []
    /// How many chunks are with queues now.
    package private(set) var chunksInUse = 0

    /// An empty pool.
    package init() {
        free.reserveCapacity(IOLimits.pooledChunks)
    }

    deinit {
        for chunk in free { chunk.deallocate() }
    }

    /// How many returned chunks wait for reuse.
    package var chunksKept: Int { free.count }

    func take() -> UnsafeMutableRawPointer {
        chunksInUse += 1
        return free.popLast() ?? .allocate(byteCount: IOLimits.chunkBytes, alignment: 16)
    }

    func give(_ chunk: UnsafeMutableRawPointer) {
        chunksInUse -= 1
        if free.count < IOLimits.pooledChunks {
            free.append(chunk)
        } else {
            chunk.deallocate()
        }
    }
}
