// swift-tools-version: 6.0
import PackageDescription

// An HTTP client that knows nothing of tunnels: only its base URL is that of `culvert connect`.
let package = Package(
    name: "url-session",
    targets: [.executableTarget(name: "url-session")],
    swiftLanguageModes: [.v6]
)
