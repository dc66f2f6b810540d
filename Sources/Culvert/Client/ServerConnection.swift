import CulvertCore

/// A connection to a paired server: a loopback URL that HTTP and WebSocket clients use unchanged.
///
/// It reconnects by itself while failures are of availability only, and ends with ``ServerEvent/failed(_:)`` otherwise.
public final class ServerConnection: Sendable {
    /// The proxy's URL, `http://127.0.0.1:PORT`. It changes with every connection; never store it.
    public let baseURL: String
    /// What happens, from the first path on. One reader.
    public let events: AsyncStream<ServerEvent>

    private let manager: EndpointManager
    private let id: EndpointManager.ConnectionKey

    init(baseURL: String, events: AsyncStream<ServerEvent>, manager: EndpointManager, id: EndpointManager.ConnectionKey)
    {
        self.baseURL = baseURL
        self.events = events
        self.manager = manager
        self.id = id
    }

    /// Takes no new local connections, gives those that are open `grace` to finish, and closes.
    public func close(grace: Duration) async {
        await manager.close(id, grace: grace)
    }
}
