import CulvertCore
import CulvertTestSupport
import Testing

@testable import CulvertTunnel

@Suite struct FrameCodecTests {
    private func decoder(header: Int = 64, body: Int = 8) -> FrameDecoder {
        FrameDecoder(headerLimit: header, bodyLimit: body)
    }

    private func prefix(_ length: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) }
    }

    /// A JSON header of exactly `count` bytes.
    private func header(count: Int) -> [UInt8] {
        Array(#"{"a":""#.utf8) + [UInt8](repeating: 0x61, count: count - 8) + Array(#""}"#.utf8)
    }

    @Test func writesLengthHeaderAndBody() {
        let frame = Frame(header: Array(#"{"bodyLength":2}"#.utf8), body: [1, 2])
        #expect(frame.encoded == [0, 0, 0, 16] + Array(#"{"bodyLength":2}"#.utf8) + [1, 2])
    }

    @Test func readsWhatItWroteAndLeavesTheRest() throws {
        let frame = Frame(header: Array(#"{"bodyLength":2}"#.utf8), body: [1, 2])
        var decoder = decoder()
        #expect(decoder.isEmpty)
        #expect(try decoder.feed([UInt8]()) == .needMore)
        #expect(decoder.isEmpty)
        #expect(try decoder.feed(frame.encoded + [9, 9, 9]) == .complete(frame, consumed: 22))
        // Ready for the next one, from a slice with other indices.
        let again = ([7, 7] + frame.encoded)[2...]
        #expect(try decoder.feed(again.prefix(5)) == .needMore)
        #expect(!decoder.isEmpty)
        #expect(try decoder.feed(again.dropFirst(5)) == .complete(frame, consumed: 17))
    }

    @Test func headerAtItsLimitAndOnePast() throws {
        var decoder = decoder()
        let frame = Frame(header: header(count: 64))
        #expect(try decoder.feed(frame.encoded) == .complete(frame, consumed: 68))
        // One past is refused with the length, before any byte of the header.
        #expect(throws: TransportError(.framing, "the message's header is too long")) { try decoder.feed(prefix(65)) }
    }

    @Test func emptyAndHugeHeadersAreRefusedAtOnce() {
        for length: UInt32 in [0, 65, 0x8000_0000, .max] {
            var decoder = decoder()
            #expect(throws: TransportError.self) { try decoder.feed(prefix(length)) }
        }
    }

    @Test func bodyAtItsLimitAndOnePast() throws {
        var decoder = decoder()
        let frame = Frame(header: Array(#"{"bodyLength":8}"#.utf8), body: [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(try decoder.feed(frame.encoded) == .complete(frame, consumed: 28))
        // One past is refused with the header, before any byte of the body.
        #expect(throws: TransportError(.framing, "the message's body is too long")) {
            try decoder.feed(Frame(header: Array(#"{"bodyLength":9}"#.utf8)).encoded)
        }
    }

    @Test(arguments: [
        #"{"bodyLength":-1}"#, #"{"bodyLength":1.5}"#, #"{"bodyLength":"1"}"#, #"{"bodyLength":1,"bodyLength":1}"#,
        #"{"bodyLength":99999999999999999999}"#, "[]", "1", "nil", "{} {}",
    ])
    func wrongBodyLengths(header: String) {
        var decoder = decoder()
        #expect(throws: TransportError.self) { try decoder.feed(Frame(header: Array(header.utf8)).encoded) }
    }

    @Test func anAbsentOrNullLengthMeansNoBody() throws {
        for text in ["{}", #"{"bodyLength":null}"#, #"{"bodyLength":0}"#] {
            var decoder = decoder()
            let frame = Frame(header: Array(text.utf8))
            #expect(try decoder.feed(frame.encoded) == .complete(frame, consumed: 4 + text.utf8.count))
        }
    }

    @Test func aFailureIsFinal() {
        var decoder = decoder()
        #expect(throws: TransportError.self) { try decoder.feed(prefix(0)) }
        #expect(throws: TransportError(.framing, "the message's header is empty")) {
            try decoder.feed(Frame(header: Array("{}".utf8)).encoded)
        }
    }

    /// The frame, the error and the number of bytes used, however the stream is cut.
    private func outcome(_ pieces: [ArraySlice<UInt8>]) -> Result<[FrameDecoder.Progress], TransportError> {
        var decoder = decoder()
        var used = 0
        do throws(TransportError) {
            for piece in pieces {
                if case .complete(let frame, let consumed) = try decoder.feed(piece) {
                    return .success([.complete(frame, consumed: used + consumed)])
                }
                used += piece.count
            }
            return .success([.needMore])
        } catch {
            return .failure(error)
        }
    }

    @Test func theCutsDoNotMatter() {
        var random = SplitMix64(seed: 1)
        let good = Frame(header: Array(#"{"v":1,"bodyLength":5,"k":"é"}"#.utf8), body: [1, 2, 3, 4, 5]).encoded
        for round in 0..<4000 {
            var bytes = good + random.bytes(3)
            for _ in 0..<round % 4 { bytes = random.damaged(bytes) }
            let whole = outcome([bytes[...]])
            #expect(outcome(random.chunks(bytes)) == whole)
            #expect(outcome(bytes.map { [$0] }) == whole)
        }
    }

    @Test func randomBytesNeverCrash() {
        var random = SplitMix64(seed: 2)
        for _ in 0..<4000 {
            let bytes = [0, 0, 0, UInt8.random(in: 0...70, using: &random)] + random.bytes(80)
            #expect(outcome(random.chunks(bytes)) == outcome([bytes[...]]))
        }
    }
}
