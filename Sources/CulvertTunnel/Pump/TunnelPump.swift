import CulvertCore
import CulvertIO
import CulvertTransport
import Glibc

/// Joins a TCP or Unix socket and a QUIC stream until both are done. Bytes pass exactly and at once; ends and resets
/// keep their meaning (docs/protocol.md, Ends and resets):
///
/// - The end of the request direction travels alone; the response goes on.
/// - The end of the response direction ends the stream.
/// - A reset at one end is a reset at the other. A connection that dies in the middle of a response is a reset for
///   the client, never a clean end.
///
/// Neither direction waits for the other, and each is bounded: towards the peer by the stream's send limits, towards
/// the socket by the stream's window, which opens only for what the socket took. Confined to the loop.
package final class TunnelPump {
    /// Which end of the tunnel this is.
    package enum Side {
        /// The socket is the HTTP client's: requests go into the stream.
        case proxy
        /// The socket is the HTTP server's: requests come out of the stream.
        case host
    }

    private let side: Side
    private let socket: StreamSocket
    private let stream: QUICStream
    private let loop: EventLoop
    /// Bytes from the peer that the socket would not take yet.
    private let unwritten: ByteQueue
    private var onEnd: (() -> Void)?

    /// Whether the peer's direction came to its end.
    private var peerEnded = false
    /// Whether the socket's direction came to its end.
    private var socketEnded = false
    /// Whether what the socket still sends is read and dropped, because nobody wants it.
    private var isDiscarding = false
    private var isOver = false
    /// Whether all that is left is that the stream delivers the end of the response.
    private var isDelivering = false
    private var lingerTimer: LoopTimer?

    /// Joins `socket`, which is connected, and `stream`. `unwritten` holds what came from the stream so far; it has not
    /// been acknowledged to the stream. `onEnd` is called once, when both are done.
    package init(
        _ side: Side, socket: StreamSocket, stream: QUICStream, unwritten: ByteQueue, peerEnded: Bool, loop: EventLoop,
        onEnd: @escaping () -> Void
    ) {
        self.side = side
        self.socket = socket
        self.stream = stream
        self.unwritten = unwritten
        self.peerEnded = peerEnded
        self.loop = loop
        self.onEnd = onEnd
    }

    /// Begins. The pump keeps itself alive, as handler of both, until both are done.
    package func start() {
        stream.handler = self
        socket.handler = self
        writeOut()
        readIn()
    }

    /// Gives the tunnel up: a reset for both ends.
    package func abort() {
        reset()
    }

    // MARK: Peer to socket

    private func take(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        if unwritten.isEmpty, socket.isWritable {
            switch socket.write(bytes) {
            case .wrote(let count):
                stream.consume(count)
                rest = UnsafeRawBufferPointer(rebasing: bytes[count...])
            case .wouldBlock: break
            case .failed:
                reset()
                return
            }
        }
        if !rest.isEmpty { unwritten.append(rest) }
    }

    /// Writes what waited, then passes the end on.
    private func writeOut() {
        guard !isOver else { return }
        while !unwritten.isEmpty, socket.isWritable {
            switch socket.write(from: unwritten) {
            case .wrote(let count): stream.consume(count)
            case .wouldBlock: break
            case .failed:
                reset()
                return
            }
        }
        guard unwritten.isEmpty, peerEnded else { return }
        switch side {
        case .host: socket.shutdownWrite()
        case .proxy: responseEnded()
        }
    }

    // MARK: Socket to peer

    private func readIn() {
        guard !isOver, !socketEnded else { return }
        if isDiscarding {
            discard()
            return
        }
        var didRead = false
        defer { if didRead, !isOver { stream.flush() } }
        while socket.isReadable {
            let capacity = stream.sendCapacity
            guard capacity > 0 else { return }
            switch socket.read(into: stream.sendQueue, limit: capacity) {
            case .bytes: didRead = true
            case .wouldBlock: return
            case .end:
                socketEnded = true
                stream.finish()
                if side == .host { targetEnded() }
                return
            case .failed:
                reset()
                return
            }
        }
    }

    // MARK: Ends

    /// The target ended its response: nothing that the client still sends has a reader. The tunnel is in use until the
    /// client has all of the response, so that a host that shuts down waits for that.
    private func targetEnded() {
        stream.stopReceiving(.notNeeded)
        unwritten.removeAll()
        socket.handler = nil
        socket.close()
        isOver = true
        isDelivering = true
    }

    /// The client has the whole response. It may still be sending a request that nobody reads: the socket stays for a
    /// moment and takes that, because closing it with unread bytes would reset it and could destroy the response on
    /// its way to the client.
    private func responseEnded() {
        guard lingerTimer == nil else { return }
        socket.shutdownWrite()
        guard !socketEnded else {
            closeSocket()
            return
        }
        stream.reset(.notNeeded)
        let timer = LoopTimer(loop: loop) { [weak self] in self?.closeSocket() }
        lingerTimer = timer
        timer.arm(at: loop.now + TunnelLimits.lingerTime)
        isDiscarding = true
        discard()
    }

    /// Reads and drops what the socket sends.
    private func discard() {
        while socket.isReadable {
            switch socket.discard() {
            case .bytes: continue
            case .wouldBlock: return
            case .end:
                socketEnded = true
                if peerEnded, unwritten.isEmpty { closeSocket() }
                return
            case .failed:
                reset()
                return
            }
        }
    }

    private func closeSocket() {
        guard !isOver else { return }
        socket.close()
        complete()
    }

    /// Ends both at once, the hard way.
    private func reset() {
        guard !isOver || isDelivering else { return }
        stream.reset(.connectionReset)
        stream.stopReceiving(.connectionReset)
        unwritten.removeAll()
        socket.reset()
        complete()
    }

    private func complete() {
        isOver = true
        isDelivering = false
        lingerTimer?.disarm()
        lingerTimer = nil
        stream.handler = nil
        socket.handler = nil
        let onEnd = onEnd
        self.onEnd = nil
        onEnd?()
    }
}

extension TunnelPump: StreamHandler {
    /// Writes the bytes to the socket.
    package func stream(_ stream: QUICStream, received bytes: UnsafeRawBufferPointer, isEnd: Bool) {
        guard !isOver else { return }
        if !bytes.isEmpty { take(bytes) }
        if isEnd, !isOver {
            peerEnded = true
            writeOut()
        }
    }

    /// Reads on.
    package func streamMaySend(_ stream: QUICStream) {
        readIn()
    }

    /// The other end's socket was reset, so this one is.
    package func stream(_ stream: QUICStream, resetBy code: StreamErrorCode) {
        guard !isOver, !peerEnded else { return }
        reset()
    }

    /// The peer wants no more of what the socket sends. On the proxy's side the response may still be on its way; on
    /// the host's side nobody is left to answer to.
    package func stream(_ stream: QUICStream, stoppedBy code: StreamErrorCode) {
        guard !isOver else { return }
        switch side {
        case .host: reset()
        case .proxy:
            isDiscarding = true
            discard()
        }
    }

    /// The stream, or its connection, is over before the response was passed on. A proxy that has all of it goes on
    /// writing; otherwise the tunnel was cut.
    package func streamClosed(_ stream: QUICStream) {
        if isDelivering { complete() }
        guard !isOver else { return }
        if side == .host || !peerEnded { reset() }
    }
}

extension TunnelPump: StreamSocketHandler {
    /// The socket was connected before the pump began.
    package func socketConnected() {}

    /// Reads on.
    package func socketReadable() {
        readIn()
    }

    /// Writes what waited.
    package func socketWritable() {
        writeOut()
    }

    /// The socket was reset or broke.
    package func socketFailed() {
        reset()
    }
}
