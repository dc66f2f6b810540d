import CulvertCore

/// The datagrams of one received frame, where they lie: nothing is copied, and the view is valid only as long as the
/// buffer that was decoded.
///
/// A relay passes on what follows the key without looking at it, so whatever is there may be a third node's doing: no
/// mark, segment size or emptiness is a fault of this connection.
package struct RelayDatagramView {
    /// On a server the node to send to, on a client the node that sent.
    package let peer: PeerKey
    /// The ECN byte as it is on the wire.
    package let ecnByte: UInt8
    /// Bytes of every datagram but the last, which may have fewer; 0 means that there is one datagram. nil for a frame
    /// of the type that holds one.
    package let segmentSize: UInt16?
    /// The bytes of all datagrams; may be empty.
    package let contents: UnsafeRawBufferPointer

    init(body: UnsafeRawBufferPointer, isBatch: Bool) throws(TransportError) {
        let start = RelayDatagramHeader.count(isBatch: isBatch) - 1
        guard body.count >= start else {
            throw TransportError(.framing, "the relay connection got a datagram frame that is too short")
        }
        peer = PeerKey(body)
        ecnByte = body[PeerKey.byteCount]
        segmentSize = isBatch ? body.bigEndian(at: PeerKey.byteCount + 1) : nil
        contents = UnsafeRawBufferPointer(rebasing: body[start...])
    }

    /// The ECN codepoint, as in the IP header (RFC 3168 section 5): 0 none, 1 ECT(1), 2 ECT(0), 3 CE.
    package var ecn: UInt8 { ecnByte & 3 }

    /// The header with which a relay passes the contents on, unchanged.
    package func forwarded(from source: PeerKey) -> RelayDatagramHeader {
        RelayDatagramHeader(sender: .server, peer: source, ecnByte: ecnByte, segmentSize: segmentSize)
    }

    /// The single datagrams.
    package var datagrams: Datagrams {
        let size = segmentSize.map(Int.init) ?? 0
        return Datagrams(rest: contents, size: size == 0 ? contents.count : size)
    }

    /// Goes through the datagrams of a frame, without copying; none of them is empty.
    package struct Datagrams: Sequence, IteratorProtocol {
        fileprivate var rest: UnsafeRawBufferPointer
        fileprivate let size: Int

        /// The next datagram.
        package mutating func next() -> UnsafeRawBufferPointer? {
            guard !rest.isEmpty else { return nil }
            let count = Swift.min(size, rest.count)
            defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
            return UnsafeRawBufferPointer(rebasing: rest[..<count])
        }
    }
}

/// What precedes the contents in a datagram frame to be sent.
package struct RelayDatagramHeader: Hashable, Sendable {
    /// Who sends the frame; decides its type.
    package var sender: RelaySide
    /// From a client the node to send to, from a server the node that sent.
    package var peer: PeerKey
    /// The ECN byte: 0 none, 1 ECT(1), 2 ECT(0), 3 CE.
    package var ecnByte: UInt8
    /// Bytes of every datagram but the last; nil for one datagram.
    package var segmentSize: UInt16?

    /// A header; the contents must be at most ``contentsLimit`` bytes and not empty.
    package init(sender: RelaySide, peer: PeerKey, ecnByte: UInt8 = 0, segmentSize: UInt16? = nil) {
        self.sender = sender
        self.peer = peer
        self.ecnByte = ecnByte
        self.segmentSize = segmentSize
    }

    /// Bytes of a header with its type.
    static func count(isBatch: Bool) -> Int { 1 + PeerKey.byteCount + 1 + (isBatch ? 2 : 0) }

    /// Bytes of the header with its type.
    package var count: Int { Self.count(isBatch: segmentSize != nil) }

    /// Bytes of contents that fit into the frame.
    package var contentsLimit: Int { RelayLimits.frame - count }

    /// The frame's type.
    package var type: RelayFrameType {
        switch (sender, segmentSize) {
        case (.client, nil): .clientToRelayDatagram
        case (.client, _): .clientToRelayDatagramBatch
        case (.server, nil): .relayToClientDatagram
        case (.server, _): .relayToClientDatagramBatch
        }
    }

    /// Writes type and header to the front of `room`, which must have ``count`` bytes.
    package func write(into room: UnsafeMutableRawBufferPointer) {
        precondition(room.count >= count, "too little room for a datagram header")
        room[0] = type.rawValue
        peer.write(into: UnsafeMutableRawBufferPointer(rebasing: room[1...]))
        room[1 + PeerKey.byteCount] = ecnByte
        if let segmentSize {
            room.storeBytes(of: segmentSize.bigEndian, toByteOffset: 2 + PeerKey.byteCount, as: UInt16.self)
        }
    }
}
