import CNgtcp2
import CNgtcp2Crypto
import CulvertCore
import CulvertIO

/// Packets that answer datagrams belonging to no connection: built at once, few, and limited in rate, because anyone
/// may provoke them.
struct StatelessAnswers {
    /// What to answer.
    enum Kind {
        /// Another version than 1 was tried (RFC 9000 section 6).
        case versionNegotiation(ngtcp2_version_cid)
        /// A new client has to come back with a token (RFC 9000 section 8.1.2).
        case retry(ngtcp2_pkt_hd, sourceID: ngtcp2_cid, token: [UInt8])
        /// A new client is not accepted.
        case refusal(ngtcp2_pkt_hd, code: UInt64)
        /// A packet for a connection that this process does not know (RFC 9000 section 10.3).
        case reset(ConnectionID, key: [UInt8], answering: Int)
        /// A packet kept for the purpose.
        case packet([UInt8])
    }

    private struct Answer {
        var packet: [UInt8]
        var path: NetworkPath
    }

    /// So many a second.
    private struct Allowance {
        let perSecond: Int
        private var left = 0
        private var since: Instant?

        init(perSecond: Int) { self.perSecond = perSecond }

        mutating func take(now: Instant) -> Bool {
            if since.map({ now - $0 >= .seconds(1) }) ?? true {
                since = now
                left = perSecond
            }
            guard left > 0 else { return false }
            left -= 1
            return true
        }
    }

    private var waiting: [Answer] = []
    private var allowance = Allowance(perSecond: TransportLimits.statelessAnswersPerSecond)
    private var retryAllowance = Allowance(perSecond: TransportLimits.retriesPerSecond)

    /// Whether answers wait to be written.
    var isEmpty: Bool { waiting.isEmpty }

    /// Builds the answer and keeps it for the next flush; drops it when there were too many.
    mutating func add(_ kind: Kind, entropy: Entropy, to path: NetworkPath, now: Instant) {
        let mayAnswer = if case .retry = kind { retryAllowance.take(now: now) } else { allowance.take(now: now) }
        guard mayAnswer else { return }
        let packet = Self.build(kind, entropy: entropy)
        if !packet.isEmpty { waiting.append(Answer(packet: packet, path: path)) }
    }

    /// Moves the answers into `batch`; what finds no room waits for the next one.
    mutating func write(into batch: DatagramBatch) {
        guard !waiting.isEmpty else { return }
        var written = 0
        for answer in waiting {
            guard let space = batch.reserve(answer.packet.count) else { break }
            written += 1
            space.copyBytes(from: answer.packet)
            batch.commit(
                count: answer.packet.count, local: answer.path.local, remote: answer.path.remote, ecn: 0)
        }
        waiting.removeFirst(written)
    }

    private static func build(_ kind: Kind, entropy: Entropy) -> [UInt8] {
        switch kind {
        case .packet(let packet): packet
        case .versionNegotiation(let header):
            packet { space in
                var versions = [NGTCP2_PROTO_VER_V1, 0x1a2a_3a4a]
                return ngtcp2_pkt_write_version_negotiation(
                    space.baseAddress, space.count, entropy.bytes(1)[0], header.scid, header.scidlen, header.dcid,
                    header.dcidlen, &versions, versions.count)
            }
        case .retry(let header, var sourceID, let token):
            packet { space in
                var destination = header.scid
                var original = header.dcid
                return ngtcp2_crypto_write_retry(
                    space.baseAddress, space.count, header.version, &destination, &sourceID, &original, token,
                    token.count)
            }
        case .refusal(let header, let code):
            packet { space in
                var destination = header.scid
                var source = header.dcid
                return ngtcp2_crypto_write_connection_close(
                    space.baseAddress, space.count, header.version, &destination, &source, code, nil, 0)
            }
        case .reset(let id, let key, let answering):
            reset(id, key: key, answering: answering, entropy: entropy)
        }
    }

    /// A stateless reset that is shorter than the packet it answers, so that two endpoints without state cannot
    /// answer each other for ever (RFC 9000 section 10.3.3).
    private static func reset(_ id: ConnectionID, key: [UInt8], answering: Int, entropy: Entropy) -> [UInt8] {
        let tokenLength = Int(NGTCP2_STATELESS_RESET_TOKENLEN)
        let length = min(answering - 1, 42)
        guard length >= Int(NGTCP2_MIN_STATELESS_RESET_RANDLEN) + tokenLength else { return [] }
        var token = [UInt8](repeating: 0, count: tokenLength)
        var identifier = id.ngtcp2
        guard ngtcp2_crypto_generate_stateless_reset_token(&token, key, key.count, &identifier) == 0 else { return [] }
        let random = entropy.bytes(length - tokenLength)
        return packet { space in
            ngtcp2_pkt_write_stateless_reset(space.baseAddress, length, token, random, random.count)
        }
    }

    private static func packet(_ write: (UnsafeMutableBufferPointer<UInt8>) -> ngtcp2_ssize) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: TransportLimits.minimumDatagram) { space, count in
            count = max(write(space), 0)
        }
    }
}
