import CulvertCore
import CulvertIO
import CulvertTransport
import Glibc

/// Who opens tunnel streams for a proxy.
package protocol TunnelSource: AnyObject {
    /// The established connection to the host; nil while there is none.
    var tunnelConnection: QUICConnection? { get }
    /// A local connection waits for a tunnel, so that reconnecting at once is worth a try.
    func tunnelWanted()
}

/// The proxy's settings.
package struct ProxyConfiguration: Sendable {
    /// Loopback port; 0 lets the kernel choose.
    package var port: UInt16
    /// Who may use the proxy.
    package var gate: LocalGate.Mode
    /// Local connections at a time.
    package var maximumConnections: Int
    /// The token that opens streams on the host.
    package var deviceToken: String

    /// Settings of a proxy.
    package init(port: UInt16, gate: LocalGate.Mode, maximumConnections: Int, deviceToken: String) {
        self.port = port
        self.gate = gate
        self.maximumConnections = maximumConnections
        self.deviceToken = deviceToken
    }
}

/// The client's end of the tunnel: a TCP listener on 127.0.0.1, and never on another address, each of whose
/// connections becomes a stream to the host. Confined to the loop.
package final class LoopbackProxy {
    /// Where streams come from.
    package weak var source: (any TunnelSource)?

    let loop: EventLoop
    let configuration: ProxyConfiguration
    let pool: ChunkPool
    /// The bytes that open every stream.
    let preface: [UInt8]
    let ownUser = getuid()

    private var listener: StreamListener?
    private var connections: [ObjectIdentifier: ProxyConnection] = [:]
    /// Admitted connections that wait for a stream, oldest first.
    private var waiting: [ProxyConnection] = []
    private var onDrained: (() -> Void)?

    /// Opens the port; throws `localListener` when it is taken.
    package init(_ configuration: ProxyConfiguration, loop: EventLoop, pool: ChunkPool) throws(TransportError) {
        self.configuration = configuration
        self.loop = loop
        self.pool = pool
        preface = try TunnelPreface(deviceToken: configuration.deviceToken).encoded()
        let address = SocketAddress(.loopbackV4, port: configuration.port)
        listener = try StreamListener(at: .tcp(address), loop: loop, handler: self)
    }

    /// The port that clients connect to.
    package var port: UInt16 { listener?.localAddress?.port ?? 0 }

    /// There is a connection to the host, or it allows more streams: whoever waits may go on.
    package func tunnelAvailable() {
        guard let connection = source?.tunnelConnection else { return }
        while let next = waiting.first {
            guard next.open(on: connection) else { return }
            waiting.removeFirst()
        }
    }

    /// Stops accepting; calls `whenDrained` once when the last local connection is over, perhaps at once.
    package func stopAccepting(whenDrained: @escaping () -> Void) {
        listener?.close()
        guard !connections.isEmpty else { return whenDrained() }
        let others = onDrained
        onDrained = {
            others?()
            whenDrained()
        }
    }

    /// Resets all local connections.
    package func close() {
        listener?.close()
        for connection in Array(connections.values) { connection.abort() }
    }

    // MARK: Called by connections

    /// The gate admitted the connection: it gets a stream as soon as there is one.
    func admitted(_ connection: ProxyConnection) {
        if waiting.isEmpty, let tunnel = source?.tunnelConnection, connection.open(on: tunnel) { return }
        waiting.append(connection)
        source?.tunnelWanted()
    }

    /// The connection no longer waits for a stream.
    func stoppedWaiting(_ connection: ProxyConnection) {
        waiting.removeAll { $0 === connection }
    }

    /// The connection is over.
    func ended(_ connection: ProxyConnection) {
        connections[ObjectIdentifier(connection)] = nil
        guard connections.isEmpty, let onDrained else { return }
        self.onDrained = nil
        onDrained()
    }
}

extension LoopbackProxy: StreamListenerHandler {
    /// Takes a local connection in, or turns it away when there are too many.
    package func accepted(_ socket: StreamSocket) {
        let connection = ProxyConnection(socket: socket, proxy: self)
        connections[ObjectIdentifier(connection)] = connection
        connection.start(isOverLimit: connections.count > configuration.maximumConnections)
    }

    /// Waiting clients are served as soon as descriptors are free.
    package func acceptingPaused() {}
}
