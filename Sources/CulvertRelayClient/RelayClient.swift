import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

/// What a ``RelayClient`` tells its user. Confined to the loop.
package protocol RelayClientHandler: AnyObject {
    /// The connection has come so far; with `confirmed` datagrams may be sent.
    func relay(_ client: RelayClient, reached stage: RelayStage)
    /// Datagrams of a node; they are valid during the call.
    func relay(_ client: RelayClient, received datagrams: RelayDatagramView)
    /// The relay answered a Ping after this time.
    func relay(_ client: RelayClient, roundTrip: Duration)
    /// How the relay sees the connection.
    func relay(_ client: RelayClient, status: RelayStatus)
    /// ``RelayClient/hasRoom`` was false and is true again.
    func relayHasRoom(_ client: RelayClient)
    /// The connection is over; `restart` says when to come back, if the relay did. The last call.
    func relay(_ client: RelayClient, ended error: TransportError, restart: RelayRestart?)
}

// What most users have no use for.
extension RelayClientHandler {
    /// Nothing.
    package func relay(_ client: RelayClient, roundTrip: Duration) {}
    /// Nothing.
    package func relay(_ client: RelayClient, status: RelayStatus) {}
    /// Nothing.
    package func relayHasRoom(_ client: RelayClient) {}
}

/// One connection to a relay, from the look-up of its name to its end. Confined to the loop.
///
/// The protocol's values decide; this class moves bytes between them and the stream, and keeps the time.
package final class RelayClient: LoopFlusher {
    private enum Phase {
        case idle
        case connecting(RelayConnector)
        /// The answer to the upgrade request is awaited.
        case upgrade(ClientUpgrade, HeadReader)
        case handshake(RelayClientHandshake)
        case established(RelayClientSession)
        case ended
    }

    /// Who hears what happens.
    package weak var handler: (any RelayClientHandler)?
    /// Whether the loop has been asked to call ``flush()``.
    package var isFlushScheduled = false

    private let relay: RelayURL
    private let credentials: RelayCredentials
    private let loop: EventLoop
    private let pool: ChunkPool
    private var phase = Phase.idle
    private var stream: (any ByteStream)?
    private var sentProof = false
    private var restart: RelayRestart?
    private var timer: LoopTimer?
    private let input: ByteQueue
    private var decoder = WebSocketDecoder(sender: .server)
    private let output: ByteQueue
    private var toldFull = false
    private var masks = MaskSource()
    /// Where a datagram frame is put together.
    private var frame = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    /// A connection to `relay`, not begun.
    package init(to relay: RelayURL, _ credentials: RelayCredentials, loop: EventLoop, pool: ChunkPool) {
        self.relay = relay
        self.credentials = credentials
        self.loop = loop
        self.pool = pool
        input = ByteQueue(pool: pool)
        output = ByteQueue(pool: pool)
    }

    deinit {
        frame.deallocate()
    }

    /// Begins.
    package func start() {
        timer = LoopTimer(loop: loop) { [weak self] in self?.timeCame() }
        let connector = RelayConnector(to: relay, credentials, loop: loop, pool: pool) { [weak self] result in
            switch result {
            case .success(let stream): self?.connected(stream)
            case .failure(let error): self?.end(error)
            }
        }
        connector.onStage = { [weak self] stage in
            guard let self else { return }
            handler?.relay(self, reached: stage)
        }
        phase = .connecting(connector)
        connector.start()
    }

    /// Closes the connection; the handler hears nothing more.
    package func close() {
        handler = nil
        if case .handshake = phase { say(WebSocketEncoder.close(.normal, mask: masks.next())) }
        if case .established = phase { say(WebSocketEncoder.close(.normal, mask: masks.next())) }
        flush()
        end(TransportError(.cancelled, "the relay connection was closed"))
    }

    // MARK: Sending

    /// Whether the relay has confirmed this node.
    package var isEstablished: Bool {
        if case .established = phase { true } else { false }
    }

    /// Whether datagrams may be sent now: the connection is confirmed and takes what is written. When not,
    /// `relayHasRoom` or the stage `confirmed` comes later.
    package var hasRoom: Bool {
        guard isEstablished else { return false }
        if output.count < RelayClientLimits.queuedBytes { return true }
        toldFull = true
        return false
    }

    /// Sends datagrams of `segment` bytes each, of which the last may be shorter, to `peer`; drops what there is no
    /// room for.
    package func send(_ datagrams: UnsafeRawBufferPointer, segment: Int, to peer: PeerKey, ecn: UInt8) {
        guard isEstablished, segment > 0, let wireSegment = UInt16(exactly: segment) else { return }
        let share = max(1, RelayClientLimits.frameContents / segment) * segment
        var rest = datagrams
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest.prefix(share))
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(share))
            let header = RelayDatagramHeader(
                sender: .client, peer: peer, ecnByte: ecn, segmentSize: part.count > segment ? wireSegment : nil)
            let count = WebSocketEncoder.count(header, contentsCount: part.count, isMasked: true)
            guard output.count + count <= RelayClientLimits.queuedBytesCeiling else { return }
            if count > frame.count { growFrame(to: count) }
            WebSocketEncoder.write(header, contents: part, mask: masks.next(), into: frame)
            output.append(UnsafeRawBufferPointer(rebasing: frame[..<count]))
        }
        loop.flushLater(self)
    }

    private func growFrame(to count: Int) {
        frame.deallocate()
        frame = .allocate(byteCount: count, alignment: 16)
    }

    private func send(_ frame: [UInt8]) {
        say(WebSocketEncoder.message(frame, mask: masks.next()))
    }

    private func say(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { output.append($0) }
        loop.flushLater(self)
    }

    /// Writes what waits, as far as the stream takes it.
    package func flush() {
        guard let stream, !output.isEmpty else { return }
        if case .failed = stream.write(from: output) { return end(Self.broken) }
        if toldFull, output.count < RelayClientLimits.queuedBytes {
            toldFull = false
            handler?.relayHasRoom(self)
        }
    }

    // MARK: Receiving

    private func connected(_ stream: any ByteStream) {
        self.stream = stream
        stream.handler = self
        let proof = proof(over: stream)
        sentProof = proof != nil
        let nonce = [UInt8](unsafeUninitializedCapacity: 16) { room, count in
            SystemRandom.fill(UnsafeMutableRawBufferPointer(room))
            count = 16
        }
        guard let upgrade = ClientUpgrade(relay: relay, nonce: nonce, token: credentials.token, proof: proof) else {
            return end(Self.broken)
        }
        phase = .upgrade(upgrade, HeadReader())
        say(upgrade.request)
        timer?.arm(at: loop.now + RelayLimits.handshakeTime)
        if stream.isReadable { socketReadable() }
    }

    /// Saves the challenge's round trip where TLS reaches the relay itself.
    private func proof(over stream: any ByteStream) -> RelayTLSProof? {
        guard let tls = stream as? TLSStream,
            let exported = tls.exportKeyingMaterial(
                label: RelayTLSProof.exporterLabel, context: RelayTLSProof.exporterContext(credentials.key.nodeID),
                count: RelayLimits.exporter)
        else { return nil }
        return RelayTLSProof(key: credentials.key, exported: exported)
    }

    private func take(_ bytes: UnsafeMutableRawBufferPointer) throws(TransportError) {
        var rest = bytes
        while !rest.isEmpty {
            switch phase {
            case .upgrade(let upgrade, let reader): try takeHead(&rest, upgrade, reader)
            case .handshake, .established: try takeMessages(&rest)
            case .idle, .connecting, .ended: return
            }
        }
    }

    private func takeHead(
        _ rest: inout UnsafeMutableRawBufferPointer, _ upgrade: ClientUpgrade, _ reader: HeadReader
    ) throws(TransportError) {
        var input = UnsafeRawBufferPointer(rest)
        var reader = reader
        let head: MessageHead?
        do throws(HeadFault) { head = try reader.next(&input) } catch {
            throw TransportError(.framing, "the relay's answer is no HTTP/1.1 response")
        }
        rest = UnsafeMutableRawBufferPointer(rebasing: rest[(rest.count - input.count)...])
        guard let head else {
            phase = .upgrade(upgrade, reader)
            return
        }
        let version = try upgrade.accept(head)
        self.version = version
        let handshake = RelayClientHandshake(
            key: credentials.key, version: version, sentProof: sentProof, at: loop.now)
        timer?.arm(at: handshake.deadline)
        phase = .handshake(handshake)
        handler?.relay(self, reached: .upgraded(version))
    }

    private var version = RelayVersion.v2

    private func takeMessages(_ rest: inout UnsafeMutableRawBufferPointer) throws(TransportError) {
        while let event = try nextEvent(&rest) {
            switch event {
            case .binary(let message): try take(message)
            case .text, .pong: break
            case .ping(let payload): say(WebSocketEncoder.pong(payload, mask: masks.next()))
            case .close: return end(Self.closed)
            }
            if case .ended = phase { return }
        }
    }

    private func nextEvent(_ rest: inout UnsafeMutableRawBufferPointer) throws(TransportError) -> WebSocketEvent? {
        do throws(WebSocketFault) { return try decoder.next(&rest) } catch { throw error.error }
    }

    @inline(__always)
    private func take(_ message: UnsafeRawBufferPointer) throws(TransportError) {
        switch phase {
        case .established(var session):
            // Taken out while it is changed, so that it is not copied.
            let event = try session.receive(message, at: loop.now)
            phase = .established(session)
            handle(event)
        case .handshake(var handshake):
            let step = try handshake.receive(message)
            phase = .handshake(handshake)
            switch step {
            case .send(let frame): send(frame)
            case .confirmed: establish()
            case .denied: throw RelayClientHandshake.denied
            }
        case .idle, .connecting, .upgrade, .ended: break
        }
    }

    private func establish() {
        let session = RelayClientSession(version: version, pingPayload: SystemRandom.word(), at: loop.now)
        phase = .established(session)
        send(session.greeting)
        timer?.arm(at: session.deadline)
        handler?.relay(self, reached: .confirmed)
    }

    private func handle(_ event: RelayClientSession.Event) {
        switch event {
        case .datagrams(let view): handler?.relay(self, received: view)
        case .reply(let frame): send(frame)
        case .roundTrip(let time): handler?.relay(self, roundTrip: time)
        case .status(let status): handler?.relay(self, status: status)
        case .restarting(let restart): self.restart = restart
        // A peer that left may be back in a moment, and QUIC notices if not.
        case .endpointGone, .health, .nothing: break
        }
    }

    // MARK: Time and ends

    private func timeCame() {
        switch phase {
        case .idle, .connecting, .ended: break
        case .upgrade, .handshake: end(RelayClientHandshake.timedOut)
        case .established(var session):
            // What has arrived may be the awaited Pong.
            if let stream, stream.isReadable { socketReadable() }
            guard case .established(let current) = phase else { return }
            session = current
            let expiry = session.expire(pingPayload: SystemRandom.word(), at: loop.now)
            phase = .established(session)
            switch expiry {
            case .notYet: decoder.trim()
            case .send(let frame): send(frame)
            case .dead: return end(RelayClientSession.dead)
            }
            timer?.arm(at: session.deadline)
        }
    }

    private func end(_ error: TransportError) {
        if case .ended = phase { return }
        if case .connecting(let connector) = phase { connector.cancel() }
        phase = .ended
        timer?.disarm()
        timer = nil
        output.removeAll()
        stream?.close()
        stream = nil
        let handler = handler
        self.handler = nil
        handler?.relay(self, ended: error, restart: restart)
    }

    private static let broken = TransportError(.unavailable, "the connection to the relay broke")
    private static let closed = TransportError(.unavailable, "the relay closed the connection")
}

extension RelayClient: StreamSocketHandler {
    /// The connector has handled that.
    package func socketConnected() {}

    /// Called by the stream.
    package func socketReadable() {
        guard let stream else { return }
        switch stream.read(into: input, limit: RelayClientLimits.readBytes) {
        case .wouldBlock: return
        case .end, .failed: return end(Self.closed)
        case .bytes(let count):
            var fault: TransportError?
            input.withVectors(from: 0, maxBytes: count) { vectors in
                for vector in vectors where fault == nil {
                    let bytes = UnsafeMutableRawBufferPointer(start: vector.iov_base, count: vector.iov_len)
                    do throws(TransportError) { try take(bytes) } catch { fault = error }
                }
            }
            input.removeAll()
            if let fault { return end(fault) }
        }
        self.stream?.readAgainLater()
    }

    /// Called by the stream.
    package func socketWritable() { flush() }

    /// Called by the stream.
    package func socketFailed() { end(Self.broken) }
}
