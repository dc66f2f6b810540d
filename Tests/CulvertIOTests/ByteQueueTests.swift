import CulvertTestSupport
import Glibc
import Testing

@testable import CulvertIO

struct ByteQueueTests {
    /// Random appends, reads into free space, looks at any offset and consumption, against an array.
    @Test(arguments: 0..<24) func behavesLikeAnArray(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let pool = ChunkPool()
        var model: [UInt8] = []
        var next: UInt8 = 0
        func fresh(_ count: Int) -> [UInt8] {
            (0..<count).map { _ in
                next &+= 7; return next
            }
        }
        do {
            let queue = ByteQueue(pool: pool)
            for _ in 0..<200 {
                let size = Int.random(in: 0...(Bool.random(using: &random) ? 100 : 50_000), using: &random)
                switch UInt8.random(in: 0..<7, using: &random) {
                case 0, 1:
                    let bytes = fresh(size)
                    bytes.withUnsafeBytes { queue.append($0) }
                    model += bytes
                case 2, 3:
                    let filled = queue.withFreeVectors(max: size) { vectors in
                        let room = vectors.reduce(0) { $0 + $1.iov_len }
                        #expect(room == size)
                        let bytes = fresh(Int.random(in: 0...room, using: &random))
                        scatter(bytes, vectors)
                        model += bytes
                        return bytes.count
                    }
                    #expect(filled <= size)
                case 4:
                    let offset = Int.random(in: 0...model.count, using: &random)
                    let limit = Int.random(in: 1...5, using: &random)
                    let seen = queue.withVectors(from: offset, maxBytes: size, maxVectors: limit) { vectors in
                        #expect(vectors.count <= limit)
                        return vectors.flatMap { Array(UnsafeRawBufferPointer(start: $0.iov_base, count: $0.iov_len)) }
                    }
                    #expect(seen == Array(model[offset...].prefix(seen.count)))
                    #expect(seen.count == min(size, model.count - offset) || limit * IOLimits.chunkBytes >= seen.count)
                default:
                    let count = min(size, model.count)
                    queue.consume(count)
                    model.removeFirst(count)
                }
                #expect(queue.count == model.count)
                #expect(queue.isEmpty == model.isEmpty)
                // As many chunks as the bytes need, and one more when they begin inside one.
                #expect(pool.chunksInUse <= (model.count + IOLimits.chunkBytes - 1) / IOLimits.chunkBytes + 1)
                if model.isEmpty { #expect(pool.chunksInUse == 0) }
            }
        }
        #expect(pool.chunksInUse == 0)
    }

    @Test func bytesDoNotMoveUntilConsumed() {
        let queue = ByteQueue(pool: ChunkPool())
        let bytes = [UInt8](repeating: 1, count: 20_000)
        bytes.withUnsafeBytes { queue.append($0) }
        let before = queue.withVectors(from: 19_000, maxBytes: 1) { $0[0].iov_base }
        for _ in 0..<100 { bytes.withUnsafeBytes { queue.append($0) } }
        queue.consume(19_000)
        #expect(queue.withVectors(from: 0, maxBytes: 1) { $0[0].iov_base } == before)
    }

    @Test func vectorsStopAtTheirLimits() {
        let queue = ByteQueue(pool: ChunkPool())
        [UInt8](repeating: 1, count: 20 * IOLimits.chunkBytes).withUnsafeBytes { queue.append($0) }
        #expect(queue.withVectors(from: 0, maxBytes: .max, maxVectors: 100) { $0.count } == IOLimits.vectors)
        #expect(queue.withVectors(from: queue.count, maxBytes: 10) { $0.count } == 0)
        #expect(queue.withVectors(from: 5, maxBytes: 0) { $0.count } == 0)
        queue.withFreeVectors(max: .max) {
            #expect($0.count == IOLimits.vectors)
            return -Int(EAGAIN)
        }
        #expect(queue.count == 20 * IOLimits.chunkBytes)
        queue.removeAll()
        #expect(queue.isEmpty)
    }

    @Test func thePoolKeepsABoundedNumberOfChunks() {
        let pool = ChunkPool()
        let queue = ByteQueue(pool: pool)
        let chunk = [UInt8](repeating: 1, count: IOLimits.chunkBytes)
        for _ in 0..<IOLimits.pooledChunks + 1 { chunk.withUnsafeBytes { queue.append($0) } }
        #expect(pool.chunksInUse == IOLimits.pooledChunks + 1)
        queue.removeAll()
        #expect(pool.chunksKept == IOLimits.pooledChunks)
    }

    private func scatter(_ bytes: [UInt8], _ vectors: UnsafeMutableBufferPointer<iovec>) {
        var rest = bytes[...]
        for vector in vectors {
            let part = rest.prefix(vector.iov_len)
            UnsafeMutableRawBufferPointer(start: vector.iov_base, count: part.count).copyBytes(from: part)
            rest = rest.dropFirst(part.count)
        }
    }
}
