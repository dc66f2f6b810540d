import CulvertCore
import CulvertIO
import CulvertIdentity
import Glibc

/// Where a node keeps its identity, its paired servers and its devices: a directory for its owner only.
public struct StateDirectory: Hashable, Sendable {
    /// The directory's path.
    public let path: String

    /// The directory at `path`; nil for `$XDG_STATE_HOME/culvert`, or `~/.local/state/culvert` when that is not set.
    public init(path: String?) {
        self.path = path ?? Self.standard
    }

    private static var standard: String {
        func variable(_ name: String) -> String? {
            getenv(name).map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        if let state = variable("XDG_STATE_HOME") { return state + "/culvert" }
        let home = variable("HOME") ?? getpwuid(getuid()).map { String(cString: $0.pointee.pw_dir) } ?? "/"
        return home + "/.local/state/culvert"
    }

    var hostDatabase: String { path + "/host.db" }
    var hostSocket: String { path + "/host.sock" }
    var servers: String { path + "/servers" }
    private var identityFile: String { path + "/identity.key" }
    private var portFile: String { path + "/host.port" }

    /// The node's key; made on first use. Two processes that make it at once end up with the same one. Throws `state`.
    func identity() throws(TransportError) -> SecretKey {
        try StateFile.makeDirectory(path)
        if let key = try readIdentity() { return key }
        let fresh = SecretKey.generate()
        if try StateFile.createAtomically(identityFile, Array((Hex.encode(fresh.seed) + "\n").utf8)) { return fresh }
        guard let key = try readIdentity() else {
            throw TransportError(.state, "the identity key has disappeared while it was made; try again")
        }
        return key
    }

    private func readIdentity() throws(TransportError) -> SecretKey? {
        let bytes = try StateFile.read(
            identityFile, maxBytes: 256,
            openToOthers:
                "other users can read identity.key, so it may be known to them; run chmod 600 on it, or remove it")
        guard let bytes else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.hasSuffix("\n"), let key = SecretKey(text.dropLast()) else {
            throw TransportError(
                .state, "identity.key is damaged; restore it, or remove it to begin with a new identity and pair again")
        }
        return key
    }

    /// The UDP port that a host used last; nil when it has none yet, or the file is damaged. Throws `state`.
    func lastPort() throws(TransportError) -> UInt16? {
        guard let bytes = try StateFile.read(portFile, maxBytes: 16) else { return nil }
        return UInt16(String(decoding: bytes, as: UTF8.self).prefix { $0 != "\n" })
    }

    /// Remembers the UDP port for the next start. Throws `state`.
    func rememberPort(_ port: UInt16) throws(TransportError) {
        try StateFile.writeAtomically(portFile, Array("\(port)\n".utf8))
    }

    /// Makes sure that one host at a time runs with this directory. Throws `state` when another does.
    func lockHost() throws(TransportError) -> LockFile {
        try LockFile(path + "/host.lock")
    }
}
