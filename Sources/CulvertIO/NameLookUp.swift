import CLinux
import CulvertCore
import Synchronization

/// Looks a host name up for code that is confined to an event loop.
///
/// Confined to the loop, which keeps it alive until it is done. The completion is called on the loop once, never from
/// within ``start()``; not at all after ``cancel()`` or once the loop has stopped.
package final class NameLookUp {
    private let host: String
    private let loop: EventLoop
    private let resolve: @Sendable (String) -> [IPAddress]
    private var completion: (([IPAddress]) -> Void)?
    private var answer: NameAnswer?
    private var registration: Registration?

    /// Prepares to look `host` up, a name or a literal address. The completion gets the addresses in the system's order
    /// of preference; none when there are none, or when the system is out of threads or descriptors.
    package convenience init(of host: String, loop: EventLoop, completion: @escaping ([IPAddress]) -> Void) {
        self.init(of: host, loop: loop, resolve: NameResolver.lookUp, completion: completion)
    }

    /// The same with another way to find the addresses, which is called on a thread of its own.
    init(
        of host: String, loop: EventLoop, resolve: @escaping @Sendable (String) -> [IPAddress],
        completion: @escaping ([IPAddress]) -> Void
    ) {
        self.host = host
        self.loop = loop
        self.resolve = resolve
        self.completion = completion
    }

    /// Begins; to be called once.
    package func start() {
        if let addresses = NameResolver.knownAddresses(of: host) { return completeSoon(addresses) }
        guard let answer = NameAnswer(),
            let registration = try? loop.register(
                answer.descriptor, mode: .edge, interest: .readable, handler: self)
        else { return completeSoon([]) }
        self.answer = answer
        self.registration = registration
        let isStarted = Thread.detach { [host, resolve] in answer.give(resolve(host)) }
        if !isStarted { completeSoon([]) }
    }

    /// Gives up without calling the completion. A thread that has begun goes on by itself, as `getaddrinfo` cannot be
    /// interrupted, and its result is dropped.
    package func cancel() {
        completion = nil
        letGo()
    }

    private func completeSoon(_ addresses: [IPAddress]) {
        letGo()
        // The timer, and with it this object, is held by the loop alone.
        LoopTimer(loop: loop) { self.complete(addresses) }.arm(at: loop.now)
    }

    private func complete(_ addresses: [IPAddress]) {
        let completion = completion
        cancel()
        completion?(addresses)
    }

    private func letGo() {
        if let registration { loop.deregister(registration) }
        registration = nil
        answer = nil
    }
}

extension NameLookUp: ReadinessHandler {
    /// The thread has left its answer.
    package func ready(_ events: Readiness) {
        complete(answer?.addresses ?? [])
    }
}

/// Carries addresses from a thread to the loop that waits for them. It owns the descriptor that wakes the loop, and both
/// sides hold it: a thread that ends long after a cancellation signals nobody, instead of whoever was given the
/// descriptor's number since.
private final class NameAnswer: Sendable {
    private let wakeUp: FileDescriptor
    private let result = Mutex<[IPAddress]>([])

    /// nil when the system is out of descriptors.
    init?() {
        wakeUp = FileDescriptor(owning: clinux_eventfd())
        guard wakeUp.isOpen else { return nil }
    }

    /// For the loop to watch; readable once there is an answer.
    var descriptor: Int32 { wakeUp.number }

    var addresses: [IPAddress] { result.withLock { $0 } }

    func give(_ addresses: [IPAddress]) {
        result.withLock { $0 = addresses }
        // Cannot fail: the counter is far from full.
        _ = clinux_eventfd_signal(wakeUp.number)
    }
}
