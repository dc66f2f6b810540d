/// What arrived on a WebSocket. Bytes are valid until the decoder is used again, or the input they lie in.
package enum WebSocketEvent {
    /// A message of bytes.
    case binary(UnsafeRawBufferPointer)
    /// A message of text, which the relay protocol has no use for; it was not looked at.
    case text
    /// Answer with a Pong of the same bytes. Only the last of several needs an answer (RFC 6455 section 5.5.3).
    case ping(UnsafeRawBufferPointer)
    /// An answer to a Ping, or none.
    case pong
    /// The other side closes: answer with the same code and close. Nothing follows.
    case close(WebSocketCloseCode?)
}

/// Takes the bytes of one direction of a WebSocket as they come (RFC 6455 section 5) and gives messages.
///
/// A frame that lies in the input as a whole is unmasked there and not copied. What is copied: a frame that arrives in
/// parts, and a message that was sent in fragments. Memory is bounded by the message limit and by what really arrived.
/// The result does not depend on how the bytes were cut.
package struct WebSocketDecoder: ~Copyable {
    private struct Fragments {
        var isText: Bool
        var count: Int
    }

    private let expectsMask: Bool
    private let messageLimit: Int
    /// The beginning of a frame whose end has not arrived, or a frame that was completed here and given out.
    private var frame = GrowingBuffer()
    /// The header of what is in `frame`, once it is complete.
    private var header: WebSocketHeader?
    private var isFrameGiven = false
    /// The fragments so far, or a message that was completed here and given out.
    private var message = GrowingBuffer()
    private var fragments: Fragments?
    private var fault: WebSocketFault?
    private var isClosed = false

    /// A decoder for what `sender` sends: clients mask, servers do not.
    package init(sender: RelaySide, messageLimit: Int = RelayLimits.message) {
        expectsMask = sender == .client
        self.messageLimit = messageLimit
    }

    /// Bytes of memory that it holds.
    package var retainedBytes: Int { frame.capacity + message.capacity }

    /// Gives back the memory that is kept for speed. For connections that have become quiet.
    package mutating func trim() {
        release(retaining: 0)
    }

    /// Takes bytes from the front of `input` up to the end of the next event and returns that; nil when all of `input`
    /// was taken and no event is complete. Throws the same fault again ever after; takes and gives nothing after a
    /// Close.
    package mutating func next(_ input: inout UnsafeMutableRawBufferPointer) throws(WebSocketFault) -> WebSocketEvent? {
        if let fault { throw fault }
        release(retaining: RelayLimits.retainedBuffer)
        do throws(WebSocketFault) {
            while !isClosed {
                guard let (header, payload) = try nextFrame(&input) else { return nil }
                header.mask?.apply(to: payload)
                if let event = try event(of: header, UnsafeRawBufferPointer(payload)) { return event }
                release(retaining: RelayLimits.retainedBuffer)
            }
            input = UnsafeMutableRawBufferPointer(rebasing: input[input.endIndex...])
            return nil
        } catch {
            fault = error
            throw error
        }
    }

    private mutating func release(retaining retained: Int) {
        if isFrameGiven || frame.isEmpty {
            frame.removeAll(retaining: retained)
            isFrameGiven = false
        }
        if fragments == nil { message.removeAll(retaining: retained) }
    }

    /// A complete frame, in the input when all of it is there, otherwise in `frame`.
    private mutating func nextFrame(
        _ input: inout UnsafeMutableRawBufferPointer
    ) throws(WebSocketFault) -> (WebSocketHeader, UnsafeMutableRawBufferPointer)? {
        if frame.isEmpty, let header = try readHeader(UnsafeRawBufferPointer(input)) {
            let total = header.count + header.payloadCount
            if input.count >= total {
                let payload = UnsafeMutableRawBufferPointer(rebasing: input[header.count..<total])
                input = UnsafeMutableRawBufferPointer(rebasing: input[total...])
                return (header, payload)
            }
        }
        while header == nil {
            let needed = WebSocketHeader.count(from: UnsafeRawBufferPointer(frame.bytes))
            take(needed - frame.count, of: needed, from: &input)
            header = try readHeader(UnsafeRawBufferPointer(frame.bytes))
            if header == nil, input.isEmpty { return nil }
        }
        guard let header else { return nil }
        let total = header.count + header.payloadCount
        take(total - frame.count, of: total, from: &input)
        guard frame.count == total else { return nil }
        self.header = nil
        isFrameGiven = true
        return (header, UnsafeMutableRawBufferPointer(rebasing: frame.bytes[header.count...]))
    }

    private mutating func take(_ count: Int, of total: Int, from input: inout UnsafeMutableRawBufferPointer) {
        let count = min(count, input.count)
        frame.append(UnsafeRawBufferPointer(rebasing: input[..<count]), expecting: total)
        input = UnsafeMutableRawBufferPointer(rebasing: input[count...])
    }

    /// The header at the front of `bytes`; nil when it is not complete. Throws as soon as a rule is broken.
    private func readHeader(_ bytes: UnsafeRawBufferPointer) throws(WebSocketFault) -> WebSocketHeader? {
        guard bytes.count >= 2 else { return nil }
        try WebSocketHeader.check(firstTwo: bytes, isMasked: expectsMask)
        guard bytes.count >= WebSocketHeader.count(from: bytes) else { return nil }
        let header = try WebSocketHeader(complete: bytes)
        guard !header.opcode.isControl else { return header }
        if header.opcode == .continuation {
            guard fragments != nil else { throw .continuation }
        } else {
            guard fragments == nil else { throw .interrupted }
        }
        guard header.payloadCount <= messageLimit - (fragments?.count ?? 0) else { throw .tooBig }
        return header
    }

    /// What a frame completes; nil when there is more to come.
    private mutating func event(
        of header: WebSocketHeader, _ payload: UnsafeRawBufferPointer
    ) throws(WebSocketFault) -> WebSocketEvent? {
        switch header.opcode {
        case .ping:
            return .ping(payload)
        case .pong:
            return .pong
        case .close:
            isClosed = true
            return .close(try Self.closeCode(payload))
        case .text, .binary:
            let isText = header.opcode == .text
            if header.isFinal { return isText ? .text : .binary(payload) }
            fragments = Fragments(isText: isText, count: 0)
            append(payload)
            return nil
        case .continuation:
            append(payload)
            guard header.isFinal, let complete = fragments else { return nil }
            fragments = nil
            return complete.isText ? .text : .binary(UnsafeRawBufferPointer(message.bytes))
        }
    }

    private mutating func append(_ payload: UnsafeRawBufferPointer) {
        guard let fragments else { return }
        self.fragments?.count += payload.count
        if !fragments.isText { message.append(payload, expecting: messageLimit) }
    }

    private static func closeCode(_ payload: UnsafeRawBufferPointer) throws(WebSocketFault) -> WebSocketCloseCode? {
        guard !payload.isEmpty else { return nil }
        guard payload.count >= 2, let code = WebSocketCloseCode(rawValue: payload.bigEndian(at: 0)) else {
            throw .closeCode
        }
        guard String(validating: payload[2...], as: UTF8.self) != nil else { throw .closeReason }
        return code
    }
}
