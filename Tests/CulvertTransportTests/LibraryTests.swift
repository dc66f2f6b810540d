import CNghttp3
import CNgtcp2
import Testing

@Suite("C libraries")
struct LibraryTests {
    @Test("ngtcp2 and nghttp3 are versions that this code was written for, and import")
    func versions() throws {
        let ngtcp2 = try #require(ngtcp2_version(0))
        #expect(ngtcp2.pointee.version_num >= 0x000c00)
        let nghttp3 = try #require(nghttp3_version(0))
        #expect(nghttp3.pointee.version_num >= 0x000800)
    }
}
