import CulvertCore

/// The frame that opens a tunnel stream and says who is asking (docs/protocol.md, Tunnel).
package struct TunnelPreface: Hashable, Sendable {
    /// The device token, without the word `Bearer`.
    package let deviceToken: String

    /// A preface of the device that holds `deviceToken`.
    package init(deviceToken: String) {
        self.deviceToken = deviceToken
    }

    /// The wire form. Throws `framing` when no peer would accept the token: it is empty, or longer than
    /// ``TunnelLimits/authorization`` allows.
    package func encoded() throws(TransportError) -> [UInt8] {
        let authorization = "Bearer " + deviceToken
        guard !deviceToken.isEmpty, authorization.utf8.count <= TunnelLimits.authorization else {
            throw TransportError(.framing, "the device token has an impossible length")
        }
        return Frame(header: try StrictJSON.encode(Wire(v: 1, kind: "httpTunnel", authorization: authorization)))
            .encoded
    }

    fileprivate struct Wire: Codable {
        var v: Int
        var kind: String
        var authorization: String?
    }
}

extension TunnelPreface: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Never the token.
    package var description: String { "TunnelPreface" }
    /// Never the token.
    package var debugDescription: String { description }
    /// Never the token.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Takes the first bytes of a tunnel stream and gives the preface, or the refusal to answer with.
package struct TunnelPrefaceDecoder: Sendable {
    /// What came of some bytes.
    package enum Progress: Hashable, Sendable {
        /// All bytes were taken and the preface is not complete.
        case needMore
        /// The preface is complete; the bytes after the first `consumed` of those just fed belong to the tunnel.
        case complete(TunnelPreface, consumed: Int)
        /// No preface; answer with the refusal and end the stream.
        case refused(Refusal)
    }

    // A body would be bytes of the tunnel to one reader and not to another.
    private var frames = FrameDecoder(headerLimit: TunnelLimits.prefaceHeader, bodyLimit: 0)

    /// A decoder at the start of a stream.
    package init() {}

    /// Takes the next bytes of the stream.
    package mutating func feed(_ bytes: some Collection<UInt8>) -> Progress {
        do {
            guard case .complete(let frame, let consumed) = try frames.feed(bytes) else { return .needMore }
            let wire = try StrictJSON.decode(TunnelPreface.Wire.self, from: frame.header)
            guard wire.v == 1, wire.kind == "httpTunnel" else { return .refused(.badPreface) }
            guard let authorization = wire.authorization else { return .refused(.missingBearer) }
            guard authorization.utf8.count <= TunnelLimits.authorization else { return .refused(.badPreface) }
            guard authorization.utf8.starts(with: "Bearer ".utf8), authorization.utf8.count > 7 else {
                return .refused(.missingBearer)
            }
            return .complete(
                TunnelPreface(deviceToken: String(decoding: authorization.utf8.dropFirst(7), as: UTF8.self)),
                consumed: consumed)
        } catch {
            return .refused(.badPreface)
        }
    }
}
