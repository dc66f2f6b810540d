import CNgtcp2
import CulvertCore
import CulvertIO

/// What a bidirectional stream tells its user. All calls come on the thread that drives the connection; a handler
/// may call any method of the stream from within.
package protocol StreamHandler: AnyObject {
    /// Bytes arrived, in order; `isEnd` is true with the last ones. Each byte must sooner or later be acknowledged
    /// with ``QUICStream/consume(_:)``, which is what opens the window again.
    func stream(_ stream: QUICStream, received bytes: UnsafeRawBufferPointer, isEnd: Bool)
    /// The send queue fell below its limits; more may be appended.
    func streamMaySend(_ stream: QUICStream)
    /// The peer reset its direction: no more bytes will come and those missing are lost.
    func stream(_ stream: QUICStream, resetBy code: StreamErrorCode)
    /// The peer asked to stop sending: what is queued is dropped.
    func stream(_ stream: QUICStream, stoppedBy code: StreamErrorCode)
    /// The stream is over, in both directions or with its connection. The last call.
    func streamClosed(_ stream: QUICStream)
}

/// The application error codes with which streams are reset or stopped.
package struct StreamErrorCode: RawRepresentable, Hashable, Sendable {
    /// The code on the wire.
    package let rawValue: UInt64

    /// The code `rawValue`.
    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Nothing is wrong: the bytes are just not needed any more.
    package static let notNeeded = StreamErrorCode(rawValue: 0)
    /// The TCP connection behind the stream was reset or broke.
    package static let connectionReset = StreamErrorCode(rawValue: 1)
}

/// One bidirectional QUIC stream (RFC 9000 section 2), confined to the thread of its connection.
///
/// Bytes to send go into ``sendQueue``, where ngtcp2 reads them in place until the peer has acknowledged them.
package final class QUICStream {
    /// The stream's number.
    package let id: Int64
    /// Who is told about bytes and ends; set it before returning from the call that handed the stream over.
    package var handler: (any StreamHandler)?
    /// Bytes that are not acknowledged yet, the unsent ones last.
    package let sendQueue: ByteQueue

    unowned let connection: QUICConnection
    /// How many bytes of ``sendQueue`` have been packed into packets at least once.
    private(set) var sentCount = 0
    private var isFinishing = false
    private(set) var isFinishSent = false
    private(set) var isClosed = false
    /// Whether the connection's send order already holds the stream.
    var isInSendOrder = false
    private var wantsRoom = false
    /// Bytes that the handler was given and has not consumed.
    private(set) var unreadCount = 0

    init(id: Int64, connection: QUICConnection) {
        self.id = id
        self.connection = connection
        sendQueue = ByteQueue(pool: connection.pool)
    }

    // MARK: Sending

    /// How many more bytes the application should queue now; 0 means to wait for
    /// ``StreamHandler/streamMaySend(_:)``.
    package var sendCapacity: Int {
        guard !isFinishing, !isClosed else { return 0 }
        let room = min(
            unsentLimit - (sendQueue.count - sentCount),
            TransportLimits.unacknowledgedPerStream - sendQueue.count)
        if room <= 0 { wantsRoom = true }
        return max(room, 0)
    }

    /// Tells that bytes were appended to ``sendQueue``; they leave with the connection's next flush.
    package func flush() {
        guard !isClosed else { return }
        connection.scheduleSend(self)
    }

    /// Ends this direction after what is queued (FIN). Nothing may be queued afterwards.
    package func finish() {
        guard !isFinishing, !isClosed else { return }
        isFinishing = true
        connection.scheduleSend(self)
    }

    /// Gives this direction up: the peer sees a reset instead of the bytes that are missing.
    package func reset(_ code: StreamErrorCode) {
        guard !isClosed, !isFinishSent || !sendQueue.isEmpty else { return }
        isFinishing = true
        connection.resetStream(self, code)
    }

    /// Asks the peer to send no more; what still arrives is dropped.
    package func stopReceiving(_ code: StreamErrorCode) {
        guard !isClosed else { return }
        connection.stopStream(self, code)
    }

    /// Tells that the application is done with `count` received bytes, which opens the peer's window again.
    package func consume(_ count: Int) {
        guard count > 0, !isClosed else { return }
        unreadCount -= count
        connection.consumed(count, of: self)
    }

    // MARK: For the connection

    /// Whether there is something to put into a packet.
    var hasUnsent: Bool { !isClosed && (sentCount < sendQueue.count || (isFinishing && !isFinishSent)) }

    /// Whether all that is left to send is the FIN, which needs no window.
    var onlyFinishes: Bool { isFinishing && sentCount == sendQueue.count }

    /// Whether the FIN goes with the bytes after the first `end` ones of the queue.
    func finishes(at end: Int) -> Bool { isFinishing && end == sendQueue.count }

    /// Hands received bytes to the handler; false when there is none.
    func deliver(_ bytes: UnsafeRawBufferPointer, isEnd: Bool) -> Bool {
        guard let handler else { return false }
        unreadCount += bytes.count
        handler.stream(self, received: bytes, isEnd: isEnd)
        return true
    }

    func sent(_ count: Int, finished: Bool) {
        sentCount += count
        if finished { isFinishSent = true }
        noteRoom()
    }

    func acknowledged(_ count: Int) {
        sendQueue.consume(count)
        sentCount -= count
        noteRoom()
    }

    /// Drops what is not sent; used when nobody wants it any more.
    func abandonSending() {
        isFinishing = true
        isFinishSent = true
        sentCount = sendQueue.count
    }

    /// How many bytes may be queued and not sent.
    private var unsentLimit: Int {
        let share = TransportLimits.unsentPerConnection / max(connection.openStreamCount, 1)
        return min(TransportLimits.unsentPerStream, max(TransportLimits.leastUnsentPerStream, share))
    }

    private func noteRoom() {
        guard wantsRoom, !isFinishing, sendQueue.count - sentCount <= unsentLimit / 2,
            sendQueue.count < TransportLimits.unacknowledgedPerStream
        else { return }
        wantsRoom = false
        connection.roomSeekers.append(self)
    }

    /// The last call; breaks the cycle between stream and handler.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        let handler = handler
        self.handler = nil
        handler?.streamClosed(self)
    }
}
