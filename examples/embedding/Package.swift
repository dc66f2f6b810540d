// swift-tools-version: 6.0
import PackageDescription

// Programs that use the library; the README shows both.
let package = Package(
    name: "embedding",
    dependencies: [.package(name: "culvert", path: "../..")],
    targets: [
        .executableTarget(name: "client", dependencies: [.product(name: "Culvert", package: "culvert")]),
        .executableTarget(name: "host", dependencies: [.product(name: "Culvert", package: "culvert")]),
    ],
    swiftLanguageModes: [.v6]
)
