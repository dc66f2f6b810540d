import Culvert
import Foundation
import FoundationNetworking

// Where the key and the paired servers are kept; nil means ~/.local/state/culvert.
let state = StateDirectory(path: nil)
let manager = try await EndpointManager(EndpointConfiguration(stateDirectory: state))

// The first time it is given an invite, later the server's name.
let argument = CommandLine.arguments[1]
let known = try ServerStore(state).server(named: argument)
let server = if let known { known } else { try await manager.pair(with: argument) }

let connection = try await manager.connect(to: server)
let events = Task {
    for await event in connection.events { print(event) }  // path, disconnected, reconnected, failed
}

// http://127.0.0.1:PORT, for any HTTP or WebSocket client in this process or another one of this user.
guard let url = URL(string: connection.baseURL + "/hello") else { exit(1) }
let (body, _) = try await URLSession.shared.data(from: url)
print("\(server.name): \(String(decoding: body, as: UTF8.self))")

await connection.close(grace: .seconds(1))  // for connections that are still open; ends the events, too
await events.value
await manager.close()
