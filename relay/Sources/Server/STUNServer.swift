import CulvertCore
import CulvertIO
import CulvertRelay

/// A STUN server on one UDP port. Confined to its loop.
final class STUNServer: UDPSocketHandler {
    private let socket: UDPSocket
    private let server: RelayServer
    private let batch = DatagramBatch()

    init(at address: SocketAddress, server: RelayServer) throws(TransportError) {
        socket = try UDPSocket.bind(address)
        self.server = server
        try socket.attach(to: server.loop, handler: self)
    }

    var localAddress: SocketAddress { socket.localAddress }

    func close() { socket.close() }

    func socketReadable() {
        socket.receive(budget: RelayServerLimits.stunPerTurn) { datagram, local, remote, _ in
            // A full batch means that the socket is blocked; the client asks again.
            guard let room = batch.reserve(STUNResponder.answerCount),
                let count = STUNResponder.answer(UnsafeRawBufferPointer(datagram), from: remote, into: room)
            else { return server.metrics.stunIgnored += 1 }
            // From the address that was asked, as a client behind a NAT takes no answer from another.
            batch.commit(count: count, local: local, remote: remote, ecn: 0)
            server.metrics.stunAnswered += 1
        }
        send()
    }

    func socketWritable() { send() }

    private func send() {
        if !batch.isEmpty { _ = socket.send(batch) }
    }
}
