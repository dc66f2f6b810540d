import CNgtcp2
import CulvertCore
import CulvertIO

/// The pair of addresses between which a QUIC packet travels.
package struct NetworkPath: Hashable, Sendable {
    /// This machine's address and port.
    package var local: SocketAddress
    /// The peer's address and port.
    package var remote: SocketAddress

    /// The path from `local` to `remote`.
    package init(local: SocketAddress, remote: SocketAddress) {
        self.local = local
        self.remote = remote
    }

    /// Whether packets on the path go through a relay.
    package var isRelayed: Bool { remote.isRelayed }

    /// Whether packets on the path never leave the machine, so that large datagrams are safe.
    var staysOnMachine: Bool { local.ip.isLoopback && remote.ip.isLoopback }
}

/// What is known of the path of a connection.
package struct PathState: Hashable, Sendable {
    /// Whether it goes through a relay.
    package var isRelayed: Bool
    /// The smoothed round-trip time.
    package var roundTripTime: Duration
}

/// A path in the form that ngtcp2 reads and writes, at an address that does not move.
final class PathBuffer {
    private let storage: UnsafeMutablePointer<ngtcp2_path_storage>
    private var current: NetworkPath?

    init() {
        storage = .allocate(capacity: 1)
        storage.initialize(to: ngtcp2_path_storage())
        ngtcp2_path_storage_zero(storage)
    }

    deinit {
        storage.deallocate()
    }

    /// The path for ngtcp2 to read; valid until the next call of a method of this buffer.
    func pointer(to path: NetworkPath) -> UnsafeMutablePointer<ngtcp2_path> {
        if path != current {
            fill(&storage.pointee.path.local, path.local)
            fill(&storage.pointee.path.remote, path.remote)
            current = path
        }
        return pointerForWriting
    }

    /// The path for ngtcp2 to write into; ``written`` reads the outcome.
    var pointerForWriting: UnsafeMutablePointer<ngtcp2_path> {
        UnsafeMutableRawPointer(storage).advanced(by: MemoryLayout.offset(of: \ngtcp2_path_storage.path) ?? 0)
            .assumingMemoryBound(to: ngtcp2_path.self)
    }

    /// The path that ngtcp2 wrote last.
    var written: NetworkPath? { NetworkPath(storage.pointee.path) }

    private func fill(_ target: inout ngtcp2_addr, _ address: SocketAddress) {
        target.addrlen = address.store(in: UnsafeMutableRawPointer(target.addr))
    }
}

extension NetworkPath {
    /// The path that ngtcp2 names; nil when an address is of another family.
    init?(_ path: ngtcp2_path) {
        guard let local = SocketAddress(loading: UnsafeRawPointer(path.local.addr)),
            let remote = SocketAddress(loading: UnsafeRawPointer(path.remote.addr))
        else { return nil }
        self.init(local: local, remote: remote)
    }
}
