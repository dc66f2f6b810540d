import CulvertCore

/// Decides whether a local connection may use the tunnel, before a stream is opened for it
/// (docs/protocol.md, The proxy's local side).
///
/// Being on loopback proves nothing: other users of the machine and every page in a browser can connect too. The mode
/// deals with the former. The check of the Host field, in every mode, deals with DNS rebinding: a page at evil.example
/// whose name suddenly resolves to 127.0.0.1 has its browser send `Host: evil.example`.
///
/// Only the first request of a connection is looked at. That is enough against rebinding, because a browser keeps its
/// connections by scheme, host and port: those that carry a request for evil.example have carried nothing else, from
/// their first request on (only HTTP/2 and later share a connection between names, and those are refused here). A
/// client that could put another Host on a later request could as well put a good one on the first. And whoever owns
/// an admitted connection has proved, for all of it, to be the right user or to hold the token.
package struct LocalGate: Sendable {
    /// Who may connect.
    package enum Mode: Sendable {
        /// Whoever sends exactly one Authorization field equal to `Bearer` and this device token.
        case token(String)
        /// The Unix user who runs the proxy.
        case sameUser
        /// Whoever can reach the port.
        case open
    }

    /// What to do with the connection.
    package enum Action: Hashable, Sendable {
        /// Keep the bytes and wait for more, until ``LocalGate/deadline``.
        case wait
        /// Open a stream and forward all bytes from the first on; the gate is done.
        case admit
        /// Answer with the refusal and end the connection.
        case refuse(Refusal)
        /// End the connection without an answer: nothing was asked.
        case close
    }

    /// When ``expired(at:)`` is due. It moves when the first byte arrives.
    package private(set) var deadline: Instant

    private let mode: Mode
    private let isSameUser: Bool
    private var parser = HTTPHeadParser()
    private var sawByte = false
    private var decision: Action?

    /// A gate for a connection accepted at `now`. `peerUser` is nil when the kernel could not tell; in mode `sameUser`
    /// such a connection is refused.
    package init(mode: Mode, peerUser: UInt32?, ownUser: UInt32, now: Instant) {
        self.mode = mode
        isSameUser = peerUser == ownUser
        deadline = now + TunnelLimits.silentTime
    }

    /// Takes the next bytes that the connection sent.
    ///
    /// The clock does not count here: bytes that the loop delivers before the timer, however late, are in time, so
    /// that a busy loop punishes nobody.
    package mutating func receive(_ bytes: some Collection<UInt8>, at now: Instant) -> Action {
        if let decision { return decision }
        guard !bytes.isEmpty else { return .wait }
        if !sawByte {
            sawByte = true
            deadline = now + TunnelLimits.headTime
            if case .sameUser = mode, !isSameUser { return decide(.refuse(.otherUser)) }
        }
        switch parser.feed(bytes) {
        case .needMore: return .wait
        case .invalid(let fault): return decide(.refuse(fault.refusal))
        case .complete(let head, _): return decide(judge(head))
        }
    }

    /// The connection ended its direction before it was admitted.
    package mutating func ended() -> Action {
        decision ?? decide(sawByte ? .refuse(.badRequest) : .close)
    }

    /// The timer for ``deadline`` fired; one that fires early changes nothing.
    package mutating func expired(at now: Instant) -> Action {
        if let decision { return decision }
        guard now >= deadline else { return .wait }
        return decide(sawByte ? .refuse(.headTimeout) : .close)
    }

    private mutating func decide(_ action: Action) -> Action {
        decision = action
        deadline = .never
        parser = HTTPHeadParser()
        return action
    }

    private func judge(_ head: HTTPHead) -> Action {
        // HTTP/1.0 may come without Host; no browser speaks it.
        for authority in [head.host, head.target.authority] {
            if let authority, !authority.isLoopback { return .refuse(.hostNotLoopback) }
        }
        guard case .token(let token) = mode else { return .admit }
        let values = head.values(of: "authorization")
        guard values.count == 1, Self.areEqual(values[0], Array("Bearer \(token)".utf8)) else {
            return .refuse(.localToken)
        }
        return .admit
    }

    /// Compares in a time that depends on the lengths only.
    private static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}

extension LocalGate.Mode: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The mode's word in options and output, never the token.
    package var description: String {
        switch self {
        case .token: "token"
        case .sameUser: "same-user"
        case .open: "open"
        }
    }
    /// Never the token.
    package var debugDescription: String { description }
    /// Never the token.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
