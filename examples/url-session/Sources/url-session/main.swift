// Existing URLSession code works through a tunnel when its base URL is the one that `culvert connect` printed:
//
//     swift run --package-path examples/url-session url-session http://127.0.0.1:PORT
//
// The server behind the tunnel needs GET /hello and POST /echo, which answers with JSON that has a `size`.
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

struct Echo: Decodable {
    let size: Int
}

func send(_ request: URLRequest) async throws -> (status: Int, body: Data) {
    let (body, response) = try await URLSession.shared.data(for: request)
    return ((response as? HTTPURLResponse)?.statusCode ?? 0, body)
}

guard CommandLine.arguments.count == 2, let base = URL(string: CommandLine.arguments[1]) else {
    print("usage: url-session BASE-URL")
    exit(2)
}

let greeting = try await send(URLRequest(url: base.appendingPathComponent("hello")))
print("GET /hello: \(greeting.status), \(greeting.body.count) bytes")

var upload = URLRequest(url: base.appendingPathComponent("echo"))
upload.httpMethod = "POST"
upload.httpBody = Data(repeating: 7, count: 1_000_000)
let answer = try await send(upload)
let echo = try JSONDecoder().decode(Echo.self, from: answer.body)
print("POST /echo: \(answer.status), the server got \(echo.size) bytes")
