// swift-tools-version: 6.0
import PackageDescription

/// A C library that Debian ships, found through pkg-config.
func system(_ name: String, _ pkgConfig: String, _ package: String) -> Target {
    .systemLibrary(name: name, path: "Sources/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

// Dependencies point one way; docs/architecture.md has the picture.
let package = Package(
    name: "culvert",
    products: [
        .library(name: "Culvert", targets: ["Culvert"]),
        .executable(name: "culvert", targets: ["CulvertCLI"]),
        .executable(name: "culvert-relay", targets: ["culvert-relay"]),
    ],
    targets: [
        system("CNgtcp2", "libngtcp2", "libngtcp2-dev"),
        system("CNgtcp2Crypto", "libngtcp2_crypto_gnutls", "libngtcp2-crypto-gnutls-dev"),
        system("CNghttp3", "libnghttp3", "libnghttp3-dev"),
        system("CGnuTLS", "gnutls", "libgnutls28-dev"),
        system("CSodium", "libsodium", "libsodium-dev"),
        system("CSQLite", "sqlite3", "libsqlite3-dev"),
        system("CQRencode", "libqrencode", "libqrencode-dev"),
        .target(name: "CLinux"),

        .target(name: "CulvertCore"),
        .target(name: "CulvertIdentity", dependencies: ["CulvertCore", "CSodium"]),
        .target(name: "CulvertIO", dependencies: ["CulvertCore", "CLinux", "CGnuTLS"]),
        .target(
            name: "CulvertTransport",
            dependencies: [
                "CulvertCore", "CulvertIdentity", "CulvertIO", "CLinux", "CNgtcp2", "CNgtcp2Crypto", "CGnuTLS",
            ]),
        .target(name: "CulvertRelay", dependencies: ["CulvertCore", "CulvertIdentity", "CGnuTLS"]),
        .target(
            name: "CulvertRelayClient",
            dependencies: [
                "CulvertCore", "CulvertIdentity", "CulvertIO", "CulvertTransport", "CulvertRelay", "CGnuTLS",
            ]),
        .target(
            name: "CulvertTunnel",
            dependencies: ["CulvertCore", "CulvertIdentity", "CulvertIO", "CulvertTransport", "CSQLite"]),
        .target(
            name: "Culvert",
            dependencies: [
                "CulvertCore", "CulvertIdentity", "CulvertIO", "CulvertTransport", "CulvertRelay", "CulvertRelayClient",
                "CulvertTunnel",
            ]),
        .executableTarget(
            name: "CulvertCLI", dependencies: ["Culvert", "CulvertCore", "CulvertIO", "CLinux", "CQRencode"]),

        .target(
            name: "CulvertRelayServer",
            dependencies: ["CulvertCore", "CulvertIdentity", "CulvertIO", "CulvertRelay"], path: "relay/Sources/Server"),
        .executableTarget(
            name: "culvert-relay",
            dependencies: ["CulvertCore", "CulvertIdentity", "CulvertIO", "CulvertRelay", "CulvertRelayServer"],
            path: "relay/Sources/Command"),

        .executableTarget(
            name: "culvert-probe",
            dependencies: ["CulvertCore", "CulvertIdentity", "CulvertIO", "CulvertTransport"], path: "Tests/Probe"),

        .target(name: "CulvertTestSupport", path: "Tests/Support"),
        .testTarget(name: "CulvertCoreTests", dependencies: ["CulvertCore", "CulvertTestSupport"]),
        .testTarget(name: "CulvertIdentityTests", dependencies: ["CulvertTestSupport", "CulvertIdentity"]),
        .testTarget(name: "CulvertIOTests", dependencies: ["CulvertTestSupport", "CulvertIO", "CLinux"]),
        .testTarget(
            name: "CulvertTransportTests",
            dependencies: ["CulvertTestSupport", "CulvertTransport", "CNgtcp2", "CNghttp3"]),
        .testTarget(name: "CulvertRelayTests", dependencies: ["CulvertTestSupport", "CulvertRelay"]),
        .testTarget(
            name: "CulvertRelayClientTests",
            dependencies: ["CulvertTestSupport", "CulvertIO", "CulvertRelay", "CulvertRelayClient"]),
        .testTarget(
            name: "CulvertRelayServerTests",
            dependencies: [
                "CulvertTestSupport", "CulvertIO", "CulvertIdentity", "CulvertRelay", "CulvertRelayServer",
                "culvert-relay",
            ],
            path: "relay/Tests"),
        .testTarget(name: "CulvertTunnelTests", dependencies: ["CulvertTestSupport", "CulvertTunnel"]),
        .testTarget(
            name: "CulvertTests",
            dependencies: ["CulvertTestSupport", "Culvert", "CulvertTransport", "CulvertTunnel", "CulvertRelayServer"]),
        .testTarget(name: "CulvertCLITests", dependencies: ["CulvertCLI"]),
    ],
    swiftLanguageModes: [.v6]
)
