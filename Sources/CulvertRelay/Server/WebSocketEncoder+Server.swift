extension WebSocketEncoder {
    /// Room that ``writeHead(_:contentsCount:into:)`` needs at most.
    package static let serverHeadCount = RelayLimits.webSocketHeader + RelayDatagramHeader.count(isBatch: true)

    /// Writes what precedes the contents of a server's datagram frame, which is not masked, to the front of `room`;
    /// returns how many bytes that is. The contents follow as they are, so they need not be copied in between.
    package static func writeHead(
        _ header: RelayDatagramHeader, contentsCount: Int, into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        let outer = WebSocketHeader(opcode: .binary, mask: nil, payloadCount: header.count + contentsCount)
        outer.write(into: room)
        header.write(into: UnsafeMutableRawBufferPointer(rebasing: room[outer.count...]))
        return outer.count + header.count
    }
}

extension RelayDatagramView {
    /// How many datagrams there are.
    package var datagramCount: Int {
        let size = segmentSize.map(Int.init) ?? 0
        guard !contents.isEmpty else { return 0 }
        return size == 0 ? 1 : (contents.count + size - 1) / size
    }
}
