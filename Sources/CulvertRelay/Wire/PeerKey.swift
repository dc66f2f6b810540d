import CulvertIdentity

/// The 32 bytes that name a node in a relay frame.
///
/// They are compared and forwarded only, so nothing checks that they are a point of the curve: a ``NodeID`` costs
/// microseconds, a relay handles a frame in less. A key that is no node's simply belongs to nobody.
package struct PeerKey: Hashable, Sendable {
    /// Bytes of a key.
    package static let byteCount = NodeID.byteCount

    // Words as they lie in memory: stored inline, loaded and stored without a loop.
    private var first: UInt64 = 0
    private var second: UInt64 = 0
    private var third: UInt64 = 0
    private var fourth: UInt64 = 0

    /// The key in the first 32 of `bytes`, which must have that many.
    package init(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count >= Self.byteCount, "too few bytes for a key")
        first = bytes.loadUnaligned(as: UInt64.self)
        second = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        third = bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
        fourth = bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
    }

    /// A node's key.
    package init(_ nodeID: NodeID) {
        self = nodeID.bytes.withUnsafeBytes { PeerKey($0) }
    }

    /// The node; nil when the bytes are no point of the curve. Not for every frame: it takes microseconds.
    package var nodeID: NodeID? { NodeID(bytes: bytes) }

    /// The bytes, as on the wire.
    package var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.byteCount) { room, count in
            write(into: UnsafeMutableRawBufferPointer(room))
            count = Self.byteCount
        }
    }

    /// Writes the bytes to the front of `room`, which must have 32.
    package func write(into room: UnsafeMutableRawBufferPointer) {
        precondition(room.count >= Self.byteCount, "too little room for a key")
        room.storeBytes(of: first, as: UInt64.self)
        room.storeBytes(of: second, toByteOffset: 8, as: UInt64.self)
        room.storeBytes(of: third, toByteOffset: 16, as: UInt64.self)
        room.storeBytes(of: fourth, toByteOffset: 24, as: UInt64.self)
    }
}
