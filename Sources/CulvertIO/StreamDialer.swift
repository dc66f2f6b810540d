import CulvertCore

/// Connects to the first of several addresses that answers: attempts start 250 ms apart, or as soon as one fails
/// (RFC 8305 section 5). Confined to the loop; calls its completion once, unless it is cancelled.
package final class StreamDialer {
    /// Gets the connected socket; nil when no address answered in time.
    package typealias Completion = (StreamSocket?) -> Void

    private let loop: EventLoop
    private let time: Duration
    private var remaining: ArraySlice<StreamAddress>
    private var attempts: [Attempt] = []
    private var completion: Completion?
    private var stagger: LoopTimer?
    private var deadline: LoopTimer?

    /// Prepares to connect to one of `addresses` within `time` in all.
    package init(
        addresses: [StreamAddress], within time: Duration, loop: EventLoop, completion: @escaping Completion
    ) {
        self.loop = loop
        self.time = time
        self.completion = completion
        remaining = addresses[...]
    }

    /// Begins.
    package func start() {
        deadline = LoopTimer(loop: loop) { [weak self] in self?.complete(nil) }
        stagger = LoopTimer(loop: loop) { [weak self] in self?.tryNext() }
        deadline?.arm(at: loop.now + time)
        tryNext()
    }

    /// Gives up without calling the completion.
    package func cancel() {
        completion = nil
        complete(nil)
    }

    private func tryNext() {
        while let address = remaining.popFirst() {
            guard let socket = try? StreamSocket.connect(to: address, loop: loop) else { continue }
            attempts.append(Attempt(socket, dialer: self))
            if !remaining.isEmpty { stagger?.arm(at: loop.now + IOLimits.connectStagger) }
            return
        }
        if attempts.isEmpty { complete(nil) }
    }

    private func failed(_ attempt: Attempt) {
        attempt.socket.close()
        attempts.removeAll { $0 === attempt }
        stagger?.disarm()
        tryNext()
    }

    private func complete(_ connected: StreamSocket?) {
        deadline?.disarm()
        stagger?.disarm()
        deadline = nil
        stagger = nil
        remaining = []
        for attempt in attempts where attempt.socket !== connected { attempt.socket.close() }
        attempts = []
        connected?.handler = nil
        let completion = completion
        self.completion = nil
        completion?(connected)
    }

    /// One of the sockets on their way.
    private final class Attempt: StreamSocketHandler {
        let socket: StreamSocket
        private unowned let dialer: StreamDialer

        init(_ socket: StreamSocket, dialer: StreamDialer) {
            self.socket = socket
            self.dialer = dialer
            socket.handler = self
        }

        func socketConnected() { dialer.complete(socket) }
        func socketFailed() { dialer.failed(self) }
        func socketReadable() {}
        func socketWritable() {}
    }
}
