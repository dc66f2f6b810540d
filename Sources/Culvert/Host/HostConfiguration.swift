import CulvertCore
import CulvertTransport
import Glibc

/// What a host is to do.
public struct HostConfiguration: Sendable {
    /// Where its identity and its devices are kept.
    public var stateDirectory: StateDirectory
    /// The HTTP server it shares.
    public var target: HTTPTarget
    /// The UDP address to listen on; nil for all addresses, and the port of the last time or, at first, one of the
    /// kernel's choice.
    public var listen: SocketAddress?
    /// What clients call it.
    public var name: String
    /// How long an invite is good for, at most 30 days.
    public var inviteLifetime: Duration
    /// The relays through which it can be reached, and which kinds of path it may use.
    public var relay = RelayOptions()
    /// Requests in flight of one client.
    public var maxStreams: Int

    /// A host that shares `target` under the machine's name, with invites of 90 s.
    public init(stateDirectory: StateDirectory, target: HTTPTarget) {
        self.stateDirectory = stateDirectory
        self.target = target
        name = Self.machineName
        inviteLifetime = .seconds(90)
        maxStreams = TransportLimits.streamsPerConnection
    }

    /// The machine's host name without its domain.
    static var machineName: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "host" }
        let bytes = buffer.prefix { $0 != 0 && $0 != CChar(UInt8(ascii: ".")) }.map(UInt8.init(bitPattern:))
        return bytes.isEmpty ? "host" : String(decoding: bytes, as: UTF8.self)
    }
}

/// What happens at a host. Devices are named as their owner named them.
public enum HostEvent: Sendable {
    /// A device's packets take this path.
    case path(device: String?, PathEvidence)
    /// The connection to the relay through which clients reach the host was made, or lost.
    case relay(isConnected: Bool)
    /// A device connected.
    case deviceConnected(String)
    /// A device's connection ended.
    case deviceDisconnected(String)
    /// A device was paired.
    case paired(String)
    /// Something went wrong; the host goes on.
    case error(TransportError)
}

/// A device that was paired with a host.
public struct Device: Hashable, Sendable, Codable {
    /// The host's short name for it: 8 characters.
    public let id: String
    /// What people call it.
    public let name: String
    /// When it was paired.
    public let createdAt: UnixTime
    /// When it last used the tunnel, to the minute.
    public let lastSeenAt: UnixTime?
    /// Whether it has a connection now.
    public let isConnected: Bool
    /// Whether it was cut off for good.
    public let isRevoked: Bool
}

/// An invite that was just made.
public struct IssuedInvite: Hashable, Sendable, Codable {
    /// The link to hand over; whoever has it may pair once.
    public let link: String
    /// When it stops working.
    public let expiresAt: UnixTime
}
