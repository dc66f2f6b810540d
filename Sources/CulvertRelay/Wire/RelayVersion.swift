/// A version of the relay protocol, agreed on as WebSocket subprotocol (RFC 6455 section 1.9).
package enum RelayVersion: Int, CaseIterable, Comparable, Sendable {
    /// Problems are told as text (Health).
    case v1 = 1
    /// Problems are told as a number (Status).
    case v2 = 2

    /// The name in `Sec-WebSocket-Protocol`.
    package var protocolName: String {
        switch self {
        case .v1: "iroh-relay-v1"
        case .v2: "iroh-relay-v2"
        }
    }

    /// The version called `name`; names are compared exactly.
    package init?(protocolName name: some StringProtocol) {
        guard let version = Self.allCases.first(where: { $0.protocolName == name }) else { return nil }
        self = version
    }

    /// The newest version that is in `offered` too; nil when there is none.
    package static func negotiate(offered: some Sequence<String>) -> RelayVersion? {
        offered.compactMap { RelayVersion(protocolName: $0) }.max()
    }

    /// Older before newer.
    package static func < (older: RelayVersion, newer: RelayVersion) -> Bool { older.rawValue < newer.rawValue }
}
