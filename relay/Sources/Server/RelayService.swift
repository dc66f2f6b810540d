import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

/// What a relay is to do.
package struct RelayConfiguration: Sendable {
    /// Where clients connect.
    package var listen: [SocketAddress] = []
    /// What it bounds.
    package var quota = RelayServerQuota()
    /// Whom it admits.
    package var access = RelayAccess()

    /// A relay that listens nowhere yet.
    package init() {}
}

/// A running relay, for those who are not on its loop.
package actor RelayService {
    private let loop: EventLoop
    private var server: RelayServer?
    /// The loop's thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// A relay that does nothing until ``start(_:)``. Throws `limit` when threads or descriptors have run out.
    package init() throws(TransportError) {
        loop = try EventLoop(name: "relay")
    }

    /// Starts; the addresses at which it listens, with their real ports. Throws `localListener` when one cannot be had.
    package func start(_ configuration: RelayConfiguration) throws(TransportError) -> [SocketAddress] {
        let server = RelayServer(loop: loop, quota: configuration.quota, access: configuration.access)
        self.server = server
        var addresses: [SocketAddress] = []
        for address in configuration.listen { addresses.append(try server.listen(at: address)) }
        return addresses
    }

    /// Takes new bounds and rules; addresses stay as they are.
    package func reload(_ configuration: RelayConfiguration) {
        server?.replace(quota: configuration.quota, access: configuration.access)
    }

    /// Tells the clients that the relay restarts, and stops accepting. What was told is sent before the loop ends.
    package func stop() {
        server?.stop()
    }

    /// What has been counted.
    package var metrics: RelayServerMetrics { server?.metrics ?? RelayServerMetrics() }

    /// Ends the loop.
    package nonisolated func end() { loop.stop() }
}
