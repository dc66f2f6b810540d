import Glibc

/// A blocking TCP socket with a time limit, as unchanged clients and servers use.
struct RawSocket: Sendable {
    let number: Int32

    /// Connects to a port of this machine.
    init(port: UInt16) throws {
        number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = RawSocket.loopback(port)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            Glibc.close(number)
            throw Failure("connect: \(errno)")
        }
        limitTime()
    }

    init(accepted number: Int32) {
        self.number = number
        limitTime()
    }

    private func limitTime() {
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(number, $0.baseAddress.map { $0 + sent }, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Failure("send: \(errno)") }
            sent += count
        }
    }

    /// What came: bytes, or nothing at the end. Throws when the connection was reset or nothing came in time.
    func receive(atMost limit: Int = 65_536) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: limit)
        let count = recv(number, &buffer, limit, 0)
        guard count >= 0 else { throw Failure(errno == ECONNRESET ? "reset" : "recv: \(errno)") }
        return Array(buffer.prefix(count))
    }

    /// Everything until the end.
    func receiveAll() throws -> [UInt8] {
        var bytes: [UInt8] = []
        while case let part = try receive(), !part.isEmpty { bytes += part }
        return bytes
    }

    /// Everything until the end of the head.
    func receiveHead() throws -> String {
        var bytes: [UInt8] = []
        while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]) {
            let part = try receive(atMost: 1)
            guard !part.isEmpty else { throw Failure("end in head") }
            bytes += part
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    func finish() { shutdown(number, Int32(SHUT_WR)) }

    func close() { Glibc.close(number) }

    /// Closes with RST.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        close()
    }
}

/// A server of this machine that runs `serve` on a thread for each connection. Closed with the object.
final class Origin: Sendable {
    let port: UInt16
    private let listener: Int32

    init(_ serve: @escaping @Sendable (RawSocket) throws -> Void) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = RawSocket.loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 1024) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        guard result else { throw Failure("listen") }
        port = UInt16(bigEndian: address.sin_port)
        self.listener = listener
        detach {
            while case let number = accept(listener, nil, nil), number >= 0 {
                detach {
                    let socket = RawSocket(accepted: number)
                    try? serve(socket)
                    socket.close()
                }
            }
        }
    }

    deinit {
        // Wakes the thread in accept().
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    /// Answers each request with `body`, keeps the connection.
    static func answering(_ body: String) throws -> Origin {
        try Origin { socket in
            while true {
                _ = try socket.receiveHead()
                try socket.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            }
        }
    }
}
