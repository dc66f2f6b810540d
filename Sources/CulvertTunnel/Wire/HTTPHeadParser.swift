/// Takes the first bytes of a connection as they come and looks for a request head in them.
///
/// It is stricter than RFC 9112 asks of a server where leniency is what request smuggling lives on: lines end in CRLF
/// only, nothing is folded, no control character passes. It changes nothing: the caller forwards the same bytes. The
/// result does not depend on how the bytes were cut, and each byte is looked at once.
package struct HTTPHeadParser: Sendable {
    /// What came of the bytes so far.
    package enum Progress: Hashable, Sendable {
        /// The head is not complete.
        case needMore
        /// The head is complete and is the first `length` bytes of the connection.
        case complete(HTTPHead, length: Int)
        /// The bytes are not a request head.
        case invalid(HTTPHeadFault)
    }

    private struct RequestLine {
        let method: String
        let target: HTTPHead.Target
        let minorVersion: Int
    }

    private var line: [UInt8] = []
    private var length = 0
    private var sawCarriageReturn = false
    private var sawEmptyLine = false
    private var requestLine: RequestLine?
    private var fields: [HTTPHead.Field] = []
    private var result: Progress?

    /// A parser at the start of a connection.
    package init() {}

    /// Takes the next bytes of the connection. Once the result is `complete` or `invalid` it stays that.
    package mutating func feed(_ bytes: some Collection<UInt8>) -> Progress {
        if let result { return result }
        do throws(HTTPHeadFault) {
            for byte in bytes {
                length += 1
                if let head = try take(byte) { return conclude(.complete(head, length: length)) }
                guard length < TunnelLimits.head else { throw .tooLarge }
            }
            return .needMore
        } catch {
            return conclude(.invalid(error))
        }
    }

    private mutating func conclude(_ progress: Progress) -> Progress {
        result = progress
        line = []
        fields = []
        return progress
    }

    private mutating func take(_ byte: UInt8) throws(HTTPHeadFault) -> HTTPHead? {
        if sawCarriageReturn {
            guard byte == 0x0a else { throw .lineEnding }
            sawCarriageReturn = false
            defer { line.removeAll(keepingCapacity: true) }
            return try endLine()
        }
        switch byte {
        case 0x0d: sawCarriageReturn = true
        case 0x0a: throw .lineEnding
        case 0x00..<0x09, 0x0b..<0x20, 0x7f: throw .controlCharacter
        default: line.append(byte)
        }
        return nil
    }

    private mutating func endLine() throws(HTTPHeadFault) -> HTTPHead? {
        if let requestLine {
            if line.isEmpty { return try head(after: requestLine) }
            fields.append(try parseField())
        } else if line.isEmpty, !sawEmptyLine {
            // RFC 9112 section 2.2: one empty line before the request is to be ignored.
            sawEmptyLine = true
        } else {
            requestLine = try parseRequestLine()
        }
        return nil
    }

    private func parseRequestLine() throws(HTTPHeadFault) -> RequestLine {
        // RFC 9113 section 3.4: this is how HTTP/2 begins.
        if line.elementsEqual("PRI * HTTP/2.0".utf8) { throw .http2 }
        let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(Self.isToken), !parts[1].contains(0x09) else {
            throw .requestLine
        }
        let version = Array(parts[2])
        guard version.count == 8, version.starts(with: "HTTP/".utf8), Self.isDigit(version[5]),
            version[6] == UInt8(ascii: "."), Self.isDigit(version[7])
        else { throw .requestLine }
        guard version[5] == UInt8(ascii: "1") else { throw .version }
        let method = String(decoding: parts[0], as: UTF8.self)
        guard let target = Self.parseTarget(parts[1], method: method) else { throw .requestLine }
        return RequestLine(method: method, target: target, minorVersion: Int(version[7] - 0x30))
    }

    /// Paths and queries are not looked into, not even for bytes that RFC 3986 wants encoded: clients send them, and
    /// the server behind the tunnel decides as if it were asked directly.
    private static func parseTarget(_ target: ArraySlice<UInt8>, method: String) -> HTTPHead.Target? {
        if method == "CONNECT" {
            guard let authority = Authority(target), authority.port != nil else { return nil }
            return .authority(authority)
        }
        if target.first == UInt8(ascii: "/") { return .origin(String(decoding: target, as: UTF8.self)) }
        if target.elementsEqual([UInt8(ascii: "*")]) { return method == "OPTIONS" ? .asterisk : nil }
        let lowered = String(decoding: target.prefix(8), as: UTF8.self).lowercased()
        let schemeLength = lowered.hasPrefix("http://") ? 7 : lowered == "https://" ? 8 : 0
        guard schemeLength > 0 else { return nil }
        let end = Array("/?#".utf8)
        guard let authority = Authority(target.dropFirst(schemeLength).prefix { !end.contains($0) }) else { return nil }
        return .absolute(authority)
    }

    private func parseField() throws(HTTPHeadFault) -> HTTPHead.Field {
        if Self.isSpace(line[0]) { throw .lineFolding }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), let last = line[..<colon].last else {
            throw .fieldName
        }
        if Self.isSpace(last) { throw .whitespaceBeforeColon }
        guard line[..<colon].allSatisfy(Self.isToken) else { throw .fieldName }
        guard fields.count < TunnelLimits.headFields else { throw .tooManyFields }
        var value = line[(colon + 1)...].drop(while: Self.isSpace)
        while let last = value.last, Self.isSpace(last) { value.removeLast() }
        return HTTPHead.Field(
            name: String(decoding: line[..<colon], as: UTF8.self).lowercased(), value: Array(value))
    }

    /// RFC 9112 section 3.2: exactly one Host field in HTTP/1.1, at most one in HTTP/1.0.
    private func head(after requestLine: RequestLine) throws(HTTPHeadFault) -> HTTPHead {
        let hosts = fields.filter { $0.name == "host" }
        guard hosts.count <= 1 else { throw .hostRepeated }
        var host: Authority?
        if let field = hosts.first {
            guard let authority = Authority(field.value) else { throw .hostInvalid }
            host = authority
        } else if requestLine.minorVersion > 0 {
            throw .hostMissing
        }
        return HTTPHead(
            method: requestLine.method, target: requestLine.target, minorVersion: requestLine.minorVersion,
            fields: fields, host: host)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// RFC 9110 section 5.6.2.
    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
