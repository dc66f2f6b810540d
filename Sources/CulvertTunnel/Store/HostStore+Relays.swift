import CulvertCore

extension HostStore {
    /// The relays at which someone may look for this host: those of invites that can still be used, and of devices that
    /// were not revoked.
    package func promisedRelays(now: UnixTime) throws(TransportError) -> Set<String> {
        let relays = try database.rows(
            """
            SELECT relay FROM invites WHERE relay IS NOT NULL AND used_at IS NULL AND expires_at > ?
            UNION SELECT relay FROM devices WHERE relay IS NOT NULL AND revoked_at IS NULL
            """,
            [.integer(now.seconds)]
        ) { $0.text(0) }
        return Set(relays)
    }
}
