import CulvertCore
import Glibc
import Testing

@testable import CulvertIO

@Suite(.timeLimit(.minutes(1)))
struct ListenerTests {
    @Test func aTakenTCPPortIsTold() async throws {
        try await withLoop { actor in
            let error = await #expect(throws: TransportError.self) {
                try await actor.run {
                    let first = Acceptor(Events())
                    first.listener = try StreamListener(
                        at: .tcp(SocketAddress("127.0.0.1:0")!), loop: actor.loop, handler: first)
                    _ = try StreamListener(
                        at: .tcp(first.listener!.localAddress!), loop: actor.loop, handler: first)
                }
            }
            #expect(error?.kind == .localListener)
            #expect(error?.reason.contains("in use") == true)
        }
    }

    @Test func aStaleUnixSocketIsReplacedAndALiveOneOrAFileIsNot() async throws {
        let directory = try TemporaryDirectory()
        let (stale, file) = (directory.path + "/stale", directory.path + "/file")
        try StateFile.writeAtomically(file, [1])
        try await withLoop { actor in
            try await actor.run {
                func listen(_ path: String) throws -> Acceptor {
                    let acceptor = Acceptor(Events())
                    acceptor.listener = try StreamListener(at: .unix(path), loop: actor.loop, handler: acceptor)
                    return acceptor
                }
                // Leaves the file behind, as a killed process does.
                do {
                    let fd = FileDescriptor(owning: socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
                    var address = sockaddr_un()
                    address.sun_family = sa_family_t(AF_UNIX)
                    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: stale.utf8) }
                    let result = withUnsafePointer(to: &address) {
                        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            Glibc.bind(fd.number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                        }
                    }
                    #expect(result == 0)
                }
                let live = try listen(stale)
                for path in [stale, file, "/nonexistent/s", "/" + String(repeating: "x", count: 107)] {
                    #expect(throws: TransportError.self) { _ = try listen(path) }
                }
                live.listener?.close()
                #expect(try listen(stale).listener != nil)
                #expect(try StateFile.read(file) == [1])
            }
        }
    }

    @Test func acceptingPausesWithoutDescriptorsAndGoesOn() async throws {
        #expect(try await Isolated.run("exhaustedDescriptors", #"exec "$@" >&2"#) == 0)
    }

    @Test(.enabled(if: Isolated.isInside("exhaustedDescriptors")))
    func exhaustedDescriptors() async throws {
        try await withLoop { actor in
            let events = Events<Told>()
            let acceptor = try await actor.run {
                let acceptor = Acceptor(events)
                acceptor.listener = try StreamListener(
                    at: .tcp(SocketAddress("127.0.0.1:0")!), loop: actor.loop, handler: acceptor)
                let target = StreamAddress.tcp(acceptor.listener!.localAddress!)
                let first = try StreamSocket.connect(to: target, loop: actor.loop)
                _ = first
                // The connection waits in the kernel; now there is no descriptor to accept it with.
                let next = dup(0)
                close(next)
                var limit = rlimit()
                getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                limit.rlim_cur = rlim_t(next)
                #expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
                return Confined(acceptor)
            }
            #expect(await acceptor.value.paused.next() == 1)
            await actor.run {
                #expect(acceptor.value.peers.isEmpty)
                var limit = rlimit()
                getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                limit.rlim_cur = limit.rlim_max
                #expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            }
            #expect(await acceptor.value.accepted.next() != nil)
        }
    }
}
