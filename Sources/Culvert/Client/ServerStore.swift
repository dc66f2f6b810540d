import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertTunnel
import FoundationEssentials

/// The servers that a node is paired with: one JSON file each, replaced as a whole.
public struct ServerStore: Sendable {
    private let directory: String

    /// The store in `directory`.
    public init(_ directory: StateDirectory) {
        self.directory = directory.servers
    }

    /// All paired servers, by name. A file that is damaged is left out; ``damagedFiles()`` tells which. Throws `state`
    /// when the directory cannot be read.
    public func list() throws(TransportError) -> [PairedServer] {
        try files().compactMap(read).sorted { $0.name < $1.name }
    }

    /// The paths of files that cannot be read, are damaged, or were written by a newer version. To be removed by hand.
    /// Throws `state` when the directory cannot be read.
    public func damagedFiles() throws(TransportError) -> [String] {
        try files().filter { read($0) == nil }
    }

    /// The server called `name`; nil when there is none. Throws `state`.
    public func server(named name: String) throws(TransportError) -> PairedServer? {
        try list().first { $0.name == name }
    }

    /// The token with which this device uses the server called `name`, for clients of a proxy in token mode; nil when
    /// there is no such server. A secret. Throws `state`.
    public func deviceToken(ofServerNamed name: String) throws(TransportError) -> String? {
        try server(named: name)?.deviceToken.text
    }

    private func files() throws(TransportError) -> [String] {
        try StateFile.names(in: directory).filter { $0.hasSuffix(".json") }.map { "\(directory)/\($0)" }
    }

    /// Forgets the server called `name`; false when there is none. The host still knows this device. Throws `state`.
    public func remove(named name: String) throws(TransportError) -> Bool {
        guard let server = try server(named: name) else { return false }
        try StateFile.remove(file(of: server.nodeID))
        return true
    }

    /// Makes sure that a server with `nodeID` may be called `name`. Throws `state` when another one is.
    func checkName(_ name: String, for nodeID: NodeID) throws(TransportError) {
        if let other = try server(named: name), other.nodeID != nodeID {
            throw TransportError(.state, "another server has this name; choose one with --name, or forget that server")
        }
    }

    /// Makes sure that a server can be added. Throws `state`.
    func prepare() throws(TransportError) {
        try StateFile.makeDirectory(directory)
        let probe = directory + "/.probe"
        try StateFile.writeAtomically(probe, [UInt8](repeating: 0, count: Self.typicalFile))
        try StateFile.remove(probe)
    }

    /// Remembers the server of a redeemed invite, under `name`, its own name, or one made of it that is free. A server
    /// that was paired before is replaced. Throws `state`, and `protocolViolation` for a token of another form.
    func add(_ invite: Invite, grant: PairingGrant, name: String?, now: UnixTime) throws(TransportError) -> PairedServer
    {
        guard let metadata = invite.payload.tunnel, let token = DeviceToken(grant.deviceToken) else {
            throw TransportError(.protocolViolation, "the host gave a device token of an unknown form")
        }
        let nodeID = invite.endpoint.nodeID
        let taken = Set(try list().filter { $0.nodeID != nodeID }.map(\.name))
        let server = PairedServer(
            name: Self.freeName(name ?? invite.payload.name, taken), nodeID: nodeID, addedAt: now, metadata: metadata,
            http: invite.payload.http, transports: grant.transports, deviceToken: token)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        guard let json = try? encoder.encode(PairedServerFile(server)) else {
            throw TransportError(.state, "the server could not be written down")
        }
        try StateFile.writeAtomically(file(of: nodeID), Array(json) + [UInt8(ascii: "\n")])
        return server
    }

    /// The server in a file; nil when it cannot be read, is damaged, or is of another version.
    private func read(_ path: String) -> PairedServer? {
        guard let bytes = try? StateFile.read(path, maxBytes: Self.maximumFile) else { return nil }
        return (try? JSONDecoder().decode(PairedServerFile.self, from: Data(bytes)))?.server
    }

    private func file(of node: NodeID) -> String {
        "\(directory)/\(node).json"
    }

    private static func freeName(_ wanted: String, _ taken: Set<String>) -> String {
        if !taken.contains(wanted) { return wanted }
        var number = 2
        while taken.contains("\(wanted)-\(number)") { number += 1 }
        return "\(wanted)-\(number)"
    }

    /// The largest file that is read: a ticket with many addresses is a few KiB.
    private static let maximumFile = 256 * 1024
    /// What ``prepare()`` tries to write.
    private static let typicalFile = 8 * 1024
}
