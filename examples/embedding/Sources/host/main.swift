import Culvert

let configuration = HostConfiguration(
    stateDirectory: StateDirectory(path: nil),  // one running host a directory
    target: try HTTPTarget(CommandLine.arguments[1]))  // http://HOST:PORT or unix:/PATH
let host = try await Host(configuration)
let events = Task {
    for await event in host.events { print(event) }  // paired, deviceConnected, path, deviceDisconnected, error
}

// For one client, once, within 90 s.
print(try await host.makeInvite().link)

print("Return stops")
_ = await Task.detached { readLine() }.value
await host.shutdown(grace: .seconds(5))  // for requests in flight; ends the events, too
await events.value
