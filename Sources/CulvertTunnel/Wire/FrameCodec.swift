import CulvertCore

/// One message of the preface and pairing protocols (docs/protocol.md, Pairing).
package struct Frame: Hashable, Sendable {
    /// The JSON header as it was on the wire.
    package var header: [UInt8]
    /// The bytes after it, as many as the header's `bodyLength` says; none when it says nothing.
    package var body: [UInt8]

    /// A frame; `header` must be JSON that names `body`'s length unless that is empty.
    package init(header: [UInt8], body: [UInt8] = []) {
        self.header = header
        self.body = body
    }

    /// The wire form: the header's length in four bytes, most significant first, then header and body.
    package var encoded: [UInt8] {
        let length = UInt32(header.count)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(4 + header.count + body.count)
        for shift: UInt32 in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: length >> shift)) }
        bytes.append(contentsOf: header)
        bytes.append(contentsOf: body)
        return bytes
    }
}

/// Takes the bytes of a stream as they come and gives frames.
///
/// A length that is zero or over its limit is refused as soon as it is known: before the header, or the body, that it
/// announces has arrived. What it keeps is bounded by the limits.
package struct FrameDecoder: Sendable {
    /// What came of some bytes.
    package enum Progress: Hashable, Sendable {
        /// All bytes were taken and the frame is not complete.
        case needMore
        /// The frame is complete; its last byte is byte `consumed` of those just fed, and the rest was not touched.
        case complete(Frame, consumed: Int)
    }

    private enum State {
        case length
        case header(Int)
        case body(header: [UInt8], Int)
        case failed(TransportError)
    }

    private struct BodyLength: Decodable {
        var bodyLength: Int?
    }

    private let headerLimit: Int
    private let bodyLimit: Int
    private var state = State.length
    private var pending: [UInt8] = []

    /// A decoder for frames with a header of 1 to `headerLimit` bytes and a body of at most `bodyLimit`.
    package init(headerLimit: Int, bodyLimit: Int) {
        self.headerLimit = headerLimit
        self.bodyLimit = bodyLimit
    }

    /// Whether no byte of a frame has arrived.
    package var isEmpty: Bool {
        if case .length = state { pending.isEmpty } else { false }
    }

    /// Takes the next bytes of the stream. Throws `framing`, and the same again ever after. After a complete frame
    /// the decoder is ready for the next one.
    package mutating func feed(_ bytes: some Collection<UInt8>) throws(TransportError) -> Progress {
        var rest = bytes[...]
        while true {
            switch state {
            case .failed(let error):
                throw error
            case .length:
                guard take(4, from: &rest) else { return .needMore }
                let length = pending.reduce(0) { $0 << 8 | Int($1) }
                pending.removeAll(keepingCapacity: true)
                guard length > 0 else { throw fail(TransportError(.framing, "the message's header is empty")) }
                guard length <= headerLimit else {
                    throw fail(TransportError(.framing, "the message's header is too long"))
                }
                state = .header(length)
            case .header(let length):
                guard take(length, from: &rest) else { return .needMore }
                let header = pending
                pending.removeAll(keepingCapacity: true)
                state = .body(header: header, try bodyLength(header))
            case .body(let header, let length):
                guard take(length, from: &rest) else { return .needMore }
                let frame = Frame(header: header, body: pending)
                pending.removeAll(keepingCapacity: true)
                state = .length
                return .complete(frame, consumed: bytes.distance(from: bytes.startIndex, to: rest.startIndex))
            }
        }
    }

    /// Moves bytes to `pending` until it has `count`; false when there are too few.
    private mutating func take<Slice: Collection<UInt8>>(_ count: Int, from rest: inout Slice) -> Bool
    where Slice.SubSequence == Slice {
        let part = rest.prefix(count - pending.count)
        pending.append(contentsOf: part)
        rest = rest[part.endIndex...]
        return pending.count == count
    }

    private mutating func bodyLength(_ header: [UInt8]) throws(TransportError) -> Int {
        let length: Int
        do {
            length = try StrictJSON.decode(BodyLength.self, from: header).bodyLength ?? 0
        } catch {
            throw fail(error)
        }
        guard length >= 0 else { throw fail(TransportError(.framing, "the message's body length is negative")) }
        guard length <= bodyLimit else { throw fail(TransportError(.framing, "the message's body is too long")) }
        return length
    }

    private mutating func fail(_ error: TransportError) -> TransportError {
        state = .failed(error)
        pending = []
        return error
    }
}
