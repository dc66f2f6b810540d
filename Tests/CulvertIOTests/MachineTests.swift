import CulvertCore
import Glibc
import Testing

@testable import CulvertIO

@Suite(.timeLimit(.minutes(1)))
struct PeerUserTests {
    @Test(arguments: [
        ("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1"), ("[::]:0", "::1"),
    ])
    func theUserOfALoopbackPeerIsFound(_ addresses: (listen: String, connect: String)) async throws {
        try await withLoop { actor in
            let events = Events<Told>()
            let acceptor = try await actor.run {
                let acceptor = Acceptor(events)
                acceptor.listener = try StreamListener(
                    at: .tcp(SocketAddress(addresses.listen)!), loop: actor.loop, handler: acceptor)
                return Confined(acceptor)
            }
            let client = try await actor.run {
                let port = acceptor.value.listener!.localAddress!.port
                let target = SocketAddress(IPAddress(addresses.connect)!, port: port)
                return Confined(Peer(try .connect(to: .tcp(target), loop: actor.loop), events))
            }
            let server = try #require(await acceptor.value.accepted.next())
            let (peer, local) = await actor.run {
                (server.value.socket.peerAddress!, server.value.socket.localAddress!)
            }
            #expect(PeerUser.userID(ofTCPPeerAt: peer, local: local) == geteuid())
            #expect(SocketTable.userID(source: peer, destination: local) == geteuid())
            // The listener has the same local port, but is nobody's peer.
            let nobody = SocketAddress(peer.ip, port: local.port)
            #expect(PeerUser.userID(ofTCPPeerAt: nobody, local: SocketAddress(local.ip, port: 1)) == nil)
            // A socket closed by its process is listed under user 0 and must not count as root's.
            await actor.run { client.value.socket.close() }
            #expect(PeerUser.userID(ofTCPPeerAt: peer, local: local) == nil)
            #expect(SocketTable.userID(source: peer, destination: local) == nil)
        }
    }

    @Test func theTextListIsReadAsTheKernelPrintsIt() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 20 4
               1: 0100007F:1F91 0100007F:C350 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4
               2: 00000000000000000000000001000000:1F92 00000000000000000000000001000000:C350 01 0:0 0:0 0 1001 0 7 1
            """
        func user(_ source: String, _ destination: String) -> uid_t? {
            SocketTable.userID(in: table, source: SocketAddress(source)!, destination: SocketAddress(destination)!)
        }
        #expect(user("127.0.0.1:8080", "127.0.0.1:50000") == 1000)
        #expect(user("127.0.0.1:8081", "127.0.0.1:50000") == nil)
        #expect(user("[::1]:8082", "[::1]:50000") == 1001)
        #expect(user("127.0.0.1:8080", "127.0.0.1:50001") == nil)
    }
}

struct MachineTests {
    @Test func loopbackIsAmongTheInterfaces() {
        let loopback = Interfaces.addresses().first { $0.ip == .loopbackV4 }
        #expect(loopback?.isLoopback == true && loopback?.isUp == true && loopback?.name == "lo")
        #expect(Interfaces.localAddress(toward: SocketAddress("127.0.0.1:0")!) == .loopbackV4)
        #expect(Interfaces.localAddress(toward: SocketAddress("[::1]:7")!) == .loopbackV6)
    }

    @Test func clocksAndRandomBytesMove() {
        let before = SystemClock.monotonic()
        #expect(SystemClock.monotonic() >= before)
        #expect(SystemClock.wall().seconds > 1_700_000_000)
        var first = [UInt8](repeating: 0, count: 300)
        var second = first
        first.withUnsafeMutableBytes { SystemRandom.fill($0) }
        second.withUnsafeMutableBytes { SystemRandom.fill($0) }
        #expect(first != second)
        #expect(first[256...].contains { $0 != 0 })
    }
}
