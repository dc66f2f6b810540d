import CNgtcp2

/// A connection ID of up to 20 bytes (RFC 9000 section 5.1), as a key of the routing table.
struct ConnectionID: Hashable {
    private var words: (UInt64, UInt64, UInt32) = (0, 0, 0)
    let count: Int

    init(_ bytes: UnsafeRawBufferPointer) {
        count = min(bytes.count, Int(NGTCP2_MAX_CIDLEN))
        let length = count
        withUnsafeMutableBytes(of: &words) {
            $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(length)))
        }
    }

    init(_ id: ngtcp2_cid) {
        self = withUnsafeBytes(of: id.data) { data in
            ConnectionID(UnsafeRawBufferPointer(rebasing: data.prefix(id.datalen)))
        }
    }

    var ngtcp2: ngtcp2_cid {
        var id = ngtcp2_cid()
        id.datalen = count
        withUnsafeBytes(of: words) { source in
            withUnsafeMutableBytes(of: &id.data) {
                $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: source.prefix(count)))
            }
        }
        return id
    }

    static func == (left: ConnectionID, right: ConnectionID) -> Bool {
        left.count == right.count && left.words == right.words
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
    }
}

/// The 16 bytes by which a peer that lost its state ends a connection (RFC 9000 section 10.3).
///
/// Tokens are looked up in a hash table keyed per process, so that the time of a look-up says nothing about them.
struct ResetToken: Hashable {
    private let words: (UInt64, UInt64)

    init(_ bytes: UnsafeRawPointer) {
        words = (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    static func == (left: ResetToken, right: ResetToken) -> Bool { left.words == right.words }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
    }
}
