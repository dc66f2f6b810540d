import CulvertCore
import CulvertIO

/// Connects to the host's HTTP server: the addresses of its name one after the other, within ``TunnelLimits/targetTime``
/// in all. Confined to the loop; calls its completion once, unless it is cancelled.
final class TargetDialer {
    private let loop: EventLoop
    private var remaining: ArraySlice<StreamAddress>
    private var socket: StreamSocket?
    private var completion: ((StreamSocket?) -> Void)?
    private var timer: LoopTimer?

    /// Prepares to connect to the first of `addresses` that answers; the completion gets the connected socket, or nil.
    init(addresses: [StreamAddress], loop: EventLoop, completion: @escaping (StreamSocket?) -> Void) {
        self.loop = loop
        self.completion = completion
        remaining = addresses[...]
    }

    func start() {
        let timer = LoopTimer(loop: loop) { [weak self] in self?.complete(nil) }
        self.timer = timer
        timer.arm(at: loop.now + TunnelLimits.targetTime)
        tryNext()
    }

    func cancel() {
        completion = nil
        complete(nil)
    }

    private func tryNext() {
        socket = nil
        while let address = remaining.popFirst() {
            guard let next = try? StreamSocket.connect(to: address, loop: loop) else { continue }
            next.handler = self
            socket = next
            return
        }
        complete(nil)
    }

    private func complete(_ connected: StreamSocket?) {
        timer?.disarm()
        timer = nil
        remaining = []
        if connected == nil { socket?.close() }
        socket?.handler = nil
        socket = nil
        let completion = completion
        self.completion = nil
        completion?(connected)
    }
}

extension TargetDialer: StreamSocketHandler {
    func socketConnected() {
        complete(socket)
    }

    func socketFailed() {
        socket?.handler = nil
        socket?.close()
        tryNext()
    }

    func socketReadable() {}
    func socketWritable() {}
}
