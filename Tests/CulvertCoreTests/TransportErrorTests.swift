import CulvertCore
import Testing

@Suite("Transport errors")
struct TransportErrorTests {
    private static let kinds: [ErrorKind] = [
        .unavailable, .timedOut, .authentication, .peerIdentity, .tlsIdentity, .alpn, .framing, .protocolViolation,
        .metadata(.expired), .revoked, .limit, .localListener, .state, .cancelled,
    ]

    @Test("only failures of availability may fall back")
    func fallBack() {
        #expect(Self.kinds.filter(\.mayFallBack) == [.unavailable, .timedOut])
    }

    @Test("every kind has its own word")
    func names() {
        #expect(Set(Self.kinds.map(\.name)).count == Self.kinds.count)
    }
}
