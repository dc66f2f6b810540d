import CulvertCore
import CulvertIdentity

/// A device that was paired with this host.
package struct DeviceRecord: Hashable, Sendable {
    /// A short random name for the command line: 8 base32 characters.
    package let id: String
    /// What the device or the owner calls it.
    package let name: String
    /// The node that may use the token through the tunnel, 32 bytes; nil when the device paired without one.
    package let nodeID: [UInt8]?
    /// Where the token is valid.
    package let transports: CredentialTransports
    /// When it was paired.
    package let createdAt: UnixTime
    /// When it was last seen, to within ``TunnelLimits/lastSeenGrain``.
    package let lastSeenAt: UnixTime?
    /// When it was revoked.
    package let revokedAt: UnixTime?
}

/// The host's devices and invites, in one SQLite file.
///
/// Several processes may have the file open; an invite is redeemed by one of them. Tokens are kept as hashes of 32
/// bytes. Every method throws `state` when the file cannot be read or written, and then nothing has changed. Blocking
/// and confined to one thread: reading takes microseconds, writing waits for the disk.
package final class HostStore {
    /// What came of presenting an invite.
    package enum Redemption: Hashable, Sendable {
        /// The device is stored and the invite used.
        case redeemed(DeviceRecord)
        /// The pairing is refused; nothing has changed.
        case refused(PairingRefusal)
    }

    /// Whether a token opens the tunnel.
    package enum Authorization: Hashable, Sendable {
        /// No device has the token.
        case unknown
        /// The device was revoked. On the wire that is the same as `unknown`.
        case revoked(deviceID: String)
        /// The token is not valid on this transport.
        case forbiddenTransport
        /// The token is bound to no node.
        case bindingMissing
        /// The token is bound to another node.
        case bindingMismatch
        /// The device may pass.
        case allowed(deviceID: String)

        /// The answer to a stream that may not pass; nil when it may.
        package var refusal: Refusal? {
            switch self {
            case .unknown, .revoked: .unknownToken
            case .forbiddenTransport: .forbiddenTransport
            case .bindingMissing: .bindingMissing
            case .bindingMismatch: .bindingMismatch
            case .allowed: nil
            }
        }
    }

    let database: SQLiteDatabase

    /// Opens the database at `path`, which is created with mode 0600 when it is missing, and migrates it. Refuses one
    /// that a newer version wrote, that others can read, that is read-only or damaged.
    package convenience init(path: String) throws(TransportError) {
        try self.init(path: path, waitMilliseconds: TunnelLimits.databaseWait)
    }

    /// Like ``init(path:)``; waits so long for another process's transaction.
    init(path: String, waitMilliseconds: Int32) throws(TransportError) {
        try HostSchema.createFile(path: path)
        database = try SQLiteDatabase(path: path, waitMilliseconds: waitMilliseconds)
        try HostSchema.prepare(database)
    }

    // MARK: Invites

    /// Remembers an invite that can be redeemed once, before `expiresAt`, for a token valid on `transports`, and that
    /// names `relay`.
    package func createInvite(
        tokenHash: [UInt8], transports: CredentialTransports, relay: String? = nil, expiresAt: UnixTime, now: UnixTime
    ) throws(TransportError) {
        try database.run(
            "INSERT INTO invites (token_hash, transports, relay, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
            [
                .blob(tokenHash), .integer(Int64(transports.rawValue)), relay.map(SQLiteValue.text) ?? .null,
                .integer(now.seconds), .integer(expiresAt.seconds),
            ])
    }

    /// Uses the invite with `tokenHash` up and stores a device with `newTokenHash`, bound to `nodeID` (nil when it
    /// pairs without one), in one transaction: of any number of callers in any processes one succeeds.
    ///
    /// A node is one device: when it pairs again its token is replaced, and the one before is worth nothing. What was
    /// revoked before makes room for the new device.
    package func redeemInvite(
        tokenHash: [UInt8], nodeID: [UInt8]?, transport: CredentialTransports = .tunnel, deviceName: String?,
        newTokenHash: [UInt8], now: UnixTime
    ) throws(TransportError) -> Redemption {
        try database.transaction { () throws(TransportError) -> Redemption in
            let found = try database.rows(
                "SELECT transports, expires_at, used_at FROM invites WHERE token_hash = ?", [.blob(tokenHash)]
            ) { row in
                (
                    CredentialTransports(rawValue: Int(row.integer(0))), UnixTime(seconds: row.integer(1)),
                    row.optionalInteger(2) != nil
                )
            }
            guard let (transports, expiresAt, isUsed) = found.first else { return .refused(.unknownInvite) }
            guard !isUsed else { return .refused(.usedInvite) }
            guard now < expiresAt else { return .refused(.expiredInvite) }
            guard transports.contains(transport) else { return .refused(.forbiddenTransport) }
            let former = if let nodeID { try takeOut(node: nodeID) } else { nil as (id: String, name: String)? }
            let id: String
            if let former { id = former.id } else { id = try freeDeviceID(from: newTokenHash) }
            let device = DeviceRecord(
                id: id,
                name: former?.name ?? deviceName.flatMap(DeviceName.sanitized) ?? DeviceName.placeholder,
                nodeID: nodeID, transports: transports, createdAt: now, lastSeenAt: nil, revokedAt: nil)
            try database.run(
                """
                INSERT INTO devices (id, name, node_id, token_hash, transports, created_at, relay)
                SELECT ?, ?, ?, ?, ?, ?, relay FROM invites WHERE token_hash = ?
                """,
                [
                    .text(device.id), .text(device.name), nodeID.map(SQLiteValue.blob) ?? .null, .blob(newTokenHash),
                    .integer(Int64(transports.rawValue)), .integer(now.seconds), .blob(tokenHash),
                ])
            try database.run(
                "UPDATE invites SET used_at = ?, device_id = ? WHERE token_hash = ?",
                [.integer(now.seconds), .text(device.id), .blob(tokenHash)])
            return .redeemed(device)
        }
    }

    /// Takes all rows of a node out; gives the ID and the name of the one that is not revoked.
    private func takeOut(node: [UInt8]) throws(TransportError) -> (id: String, name: String)? {
        let rows = try database.rows(
            "SELECT id, name, revoked_at FROM devices WHERE node_id = ? ORDER BY created_at DESC, rowid DESC",
            [.blob(node)]
        ) { row in (id: row.text(0), name: row.text(1), isRevoked: row.optionalInteger(2) != nil) }
        guard !rows.isEmpty else { return nil }
        try database.run(
            "UPDATE invites SET device_id = NULL WHERE device_id IN (SELECT id FROM devices WHERE node_id = ?)",
            [.blob(node)])
        try database.run("DELETE FROM devices WHERE node_id = ?", [.blob(node)])
        return rows.first { !$0.isRevoked }.map { ($0.id, $0.name) }
    }

    /// Forgets invites, used or not, that expired ``TunnelLimits/expiredInviteMemory`` ago; gives how many.
    @discardableResult
    package func purgeInvites(now: UnixTime) throws(TransportError) -> Int {
        try database.run(
            "DELETE FROM invites WHERE expires_at <= ?",
            [.integer((now + (.zero - TunnelLimits.expiredInviteMemory)).seconds)])
    }

    // MARK: Devices

    /// Whether the node `nodeID` may use the token with `tokenHash` on `transport`.
    ///
    /// The look-up by index takes a time that depends on the hash. That tells nothing: who can choose a hash's first
    /// bytes at will still has to find a token for the rest.
    package func authorize(
        tokenHash: [UInt8], nodeID: [UInt8], transport: CredentialTransports = .tunnel
    ) throws(TransportError) -> Authorization {
        let found = try database.rows(
            "SELECT id, node_id, transports, revoked_at FROM devices WHERE token_hash = ?", [.blob(tokenHash)]
        ) { row -> Authorization in
            let id = row.text(0)
            if row.optionalInteger(3) != nil { return .revoked(deviceID: id) }
            guard CredentialTransports(rawValue: Int(row.integer(2))).contains(transport) else {
                return .forbiddenTransport
            }
            guard let bound = row.optionalBlob(1) else { return .bindingMissing }
            return bound == nodeID ? .allowed(deviceID: id) : .bindingMismatch
        }
        return found.first ?? .unknown
    }

    /// What is known of a node before it has shown a token.
    package enum Binding: Hashable, Sendable {
        /// No device is bound to it.
        case none
        /// The device that is bound to it.
        case device(String)
        /// The device that was bound to it is revoked.
        case revoked
    }

    /// The device that is bound to `nodeID`.
    package func binding(of nodeID: [UInt8]) throws(TransportError) -> Binding {
        let devices = try database.rows("SELECT id, revoked_at FROM devices WHERE node_id = ?", [.blob(nodeID)]) {
            row -> Binding in row.optionalInteger(1) == nil ? .device(row.text(0)) : .revoked
        }
        return devices.first ?? .none
    }

    /// All devices, revoked ones included, in the order in which they were paired.
    package func devices() throws(TransportError) -> [DeviceRecord] {
        try database.rows(
            """
            SELECT id, name, node_id, transports, created_at, last_seen_at, revoked_at FROM devices
            ORDER BY created_at, rowid
            """
        ) { row in
            DeviceRecord(
                id: row.text(0), name: row.text(1), nodeID: row.optionalBlob(2),
                transports: CredentialTransports(rawValue: Int(row.integer(3))),
                createdAt: UnixTime(seconds: row.integer(4)),
                lastSeenAt: row.optionalInteger(5).map(UnixTime.init(seconds:)),
                revokedAt: row.optionalInteger(6).map(UnixTime.init(seconds:)))
        }
    }

    /// Gives the device another name, sanitised; false when there is no such device or nothing is left of the name.
    package func rename(_ deviceID: String, to name: String) throws(TransportError) -> Bool {
        guard let name = DeviceName.sanitized(name) else { return false }
        return try database.run("UPDATE devices SET name = ? WHERE id = ?", [.text(name), .text(deviceID)]) == 1
    }

    /// Makes the device's token worthless for good; false when there is no such device or it was revoked before.
    package func revoke(_ deviceID: String, now: UnixTime) throws(TransportError) -> Bool {
        try database.run(
            "UPDATE devices SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
            [.integer(now.seconds), .text(deviceID)]) == 1
    }

    /// Stores when devices were last seen, all in one transaction; ``LastSeen`` says when it is due.
    package func touch(_ lastSeen: [String: UnixTime]) throws(TransportError) {
        guard !lastSeen.isEmpty else { return }
        try database.transaction { () throws(TransportError) in
            for (deviceID, time) in lastSeen {
                try database.run(
                    "UPDATE devices SET last_seen_at = max(coalesce(last_seen_at, ?1), ?1) WHERE id = ?2",
                    [.integer(time.seconds), .text(deviceID)])
            }
        }
    }

    /// A device ID that is free. The token's hash is as random as the token, so it serves as the source; 40 bits of it
    /// say nothing about 256 bits of token.
    private func freeDeviceID(from hash: [UInt8]) throws(TransportError) -> String {
        for start in stride(from: 0, through: hash.count - 5, by: 5) {
            let id = Base32.encode(hash[start..<start + 5])
            let taken = try database.rows("SELECT 1 FROM devices WHERE id = ?", [.text(id)]) { _ in true }
            if taken.isEmpty { return id }
        }
        throw TransportError(.state, "no device ID is free; revoke a device and try again")
    }
}
