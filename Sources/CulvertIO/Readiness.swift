import CLinux

/// What a descriptor is ready for, or what its registration waits for.
package struct Readiness: OptionSet, Sendable {
    /// The kernel's `EPOLL…` bits.
    package let rawValue: UInt32

    /// The set of the kernel's bits `rawValue`.
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// There is something to read, a connection to accept, or the end.
    package static let readable = Readiness(rawValue: CLINUX_READABLE)
    /// There is room to write; for a connecting socket: the attempt is over.
    package static let writable = Readiness(rawValue: CLINUX_WRITABLE)
    /// An error is pending. Reported whether asked for or not.
    package static let error = Readiness(rawValue: CLINUX_ERROR)
    /// Both directions are over. Reported whether asked for or not.
    package static let hangup = Readiness(rawValue: CLINUX_HANGUP)
    /// The peer has sent its end (`EPOLLRDHUP`).
    package static let peerFinished = Readiness(rawValue: CLINUX_PEER_FINISHED)
}

/// When a registration reports.
package enum TriggerMode: Sendable {
    /// Once per change: the handler remembers what it has not used up.
    case edge
    /// In every iteration while the condition holds.
    case level
}

/// Receives what epoll reports about one descriptor.
///
/// Handlers are confined to their loop: `ready` is called on its thread.
package protocol ReadinessHandler: AnyObject {
    /// The descriptor is ready for `events`.
    func ready(_ events: Readiness)
}

/// Gathers work during an iteration and does it once at its end, such as sending a batch.
///
/// Confined to the loop.
package protocol LoopFlusher: AnyObject {
    /// Kept by the loop; starts as false.
    var isFlushScheduled: Bool { get set }
    /// Does the gathered work. May ask for further flushes, which run in the same iteration.
    func flush()
}

/// Names one registration with an ``EventLoop``; using it after deregistration does nothing.
package struct Registration: Sendable, Hashable {
    /// Slot in the low half, generation in the high half: the key that epoll hands back.
    let key: UInt64
}
