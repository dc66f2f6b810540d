import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

/// What a node shows to relays, and whom it believes to be one. Confined to its loop.
package final class RelayCredentials {
    /// The node's key.
    let key: SecretKey
    /// What is shown to relays that ask for it.
    let token: RelayAccessToken?
    let proxies: ProxySettings
    private let authorities: [UInt8]?
    private var loaded: TLSTrust?

    /// Credentials of the node with `key`; `authorities` (PEM) are trusted to vouch for relays instead of the system's.
    package init(key: SecretKey, token: RelayAccessToken?, authorities: [UInt8]?, proxies: ProxySettings) {
        self.key = key
        self.token = token
        self.authorities = authorities
        self.proxies = proxies
    }

    /// The authorities, read when the first relay needs them: the system's take some milliseconds.
    func trust() throws(TransportError) -> TLSTrust {
        if let loaded { return loaded }
        let trust = try TLSTrust(authoritiesPEM: authorities)
        loaded = trust
        return trust
    }
}
