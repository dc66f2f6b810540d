import CulvertCore

/// An ordered stream of bytes on a loop: a socket as it is, or TLS over one. Readiness and ends are as
/// ``StreamSocket`` describes them.
package protocol ByteStream: AnyObject {
    /// Who hears about readiness; held weakly.
    var handler: (any StreamSocketHandler)? { get set }
    /// The peer's address; nil for Unix sockets.
    var peerAddress: SocketAddress? { get }
    /// Whether the last read left, or may have left, something.
    var isReadable: Bool { get }
    /// Reads at most about `limit` bytes and appends to `queue`.
    func read(into queue: ByteQueue, limit: Int) -> StreamRead
    /// Writes from the front of `queue` until it is empty or the stream is full, and consumes what was taken.
    func write(from queue: ByteQueue) -> StreamWrite
    /// Delivers `socketReadable()` in the next iteration if there is something to read then.
    func readAgainLater()
    /// Ends our direction behind what was written.
    func shutdownWrite()
    /// Closes both directions.
    func close()
    /// Cuts the connection off.
    func reset()
}

extension StreamSocket: ByteStream {}
