import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

/// What a relay is to do.
package struct RelayConfiguration: Sendable {
    /// Where clients connect.
    package var listen: [SocketAddress] = []
    /// Where the metrics are.
    package var metrics: SocketAddress?
    /// Where STUN requests are answered, over UDP.
    package var stun: SocketAddress?
    /// What it shows to clients; nil for a relay without TLS. A relay does not change between the two.
    package var identity: TLSIdentity?
    /// What it bounds.
    package var quota = RelayServerQuota()
    /// Whom it admits.
    package var access = RelayAccess()

    /// A relay that listens nowhere yet.
    package init() {}
}

/// An address at which a relay listens.
package struct RelayListening: Sendable {
    /// For whom.
    package enum Purpose: String, Sendable {
        /// Clients of the relay.
        case clients = "listening"
        /// Scrapers.
        case metrics
        /// STUN clients.
        case stun
    }

    /// For whom.
    package var purpose: Purpose
    /// Where.
    package var address: SocketAddress
}

/// A running relay, for those who are not on its loop.
package actor RelayService {
    private let loop: EventLoop
    private var server: RelayServer?
    private var metricsServer: MetricsServer?
    private var stunServer: STUNServer?
    /// The loop's thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// A relay that does nothing until ``start(_:)``. Throws `limit` when threads or descriptors have run out.
    package init() throws(TransportError) {
        loop = try EventLoop(name: "relay")
    }

    /// Starts; what it listens for and where, with the real ports. Throws `localListener` when an address cannot be had.
    package func start(_ configuration: RelayConfiguration) throws(TransportError) -> [RelayListening] {
        let server = RelayServer(loop: loop, configuration: configuration)
        self.server = server
        var listening: [RelayListening] = []
        for address in configuration.listen {
            listening.append(RelayListening(purpose: .clients, address: try server.listen(at: address)))
        }
        if let address = configuration.metrics {
            let metricsServer = try MetricsServer(at: address, server: server)
            self.metricsServer = metricsServer
            listening.append(RelayListening(purpose: .metrics, address: metricsServer.localAddress ?? address))
        }
        if let address = configuration.stun {
            let stunServer = try STUNServer(at: address, server: server)
            self.stunServer = stunServer
            listening.append(RelayListening(purpose: .stun, address: stunServer.localAddress))
        }
        return listening
    }

    /// Takes new bounds and rules; addresses stay as they are.
    package func reload(_ configuration: RelayConfiguration) {
        server?.reload(configuration)
    }

    /// Tells the clients that the relay restarts, and stops accepting. What was told is sent before the loop ends.
    package func stop() {
        server?.stop()
        metricsServer?.close()
        stunServer?.close()
    }

    /// Ends the loop.
    package nonisolated func end() { loop.stop() }
}
