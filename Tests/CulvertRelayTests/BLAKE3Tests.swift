import Testing

@testable import CulvertRelay

@Suite("BLAKE3 derive_key")
struct BLAKE3Tests {
    /// The official vectors for inputs of one chunk, and the lengths around a block that they leave out.
    @Test(
        "gives the official outputs",
        arguments: [
            (0, "2cc39783c223154fea8dfb7c1b1660f2ac2dcbd1c1de8277b0b0dd39b7e50d7d"),
            (1, "b3e2e340a117a499c6cf2398a19ee0d29cca2bb7404c73063382693bf66cb06c"),
            (2, "1f166565a7df0098ee65922d7fea425fb18b9943f19d6161e2d17939356168e6"),
            (3, "440aba35cb006b61fc17c0529255de438efc06a8c9ebf3f2ddac3b5a86705797"),
            (4, "f46085c8190d69022369ce1a18880e9b369c135eb93f3c63550d3e7630e91060"),
            (5, "1f24eda69dbcb752847ec3ebb5dd42836d86e58500c7c98d906ecd82ed9ae47f"),
            (6, "be96b30b37919fe4379dfbe752ae77b4f7e2ab92f7ff27435f76f2f065f6a5f4"),
            (7, "dc3b6485f9d94935329442916b0d059685ba815a1fa2a14107217453a7fc9f0e"),
            (8, "2b166978cef14d9d438046c720519d8b1cad707e199746f1562d0c87fbd32940"),
            (63, "b6451e30b953c206e34644c6803724e9d2725e0893039cfc49584f991f451af3"),
            (64, "a5c4a7053fa86b64746d4bb688d06ad1f02a18fce9afd3e818fefaa7126bf73e"),
            (65, "51fd05c3c1cfbc8ed67d139ad76f5cf8236cd2acd26627a30c104dfd9d3ff8a8"),
            (127, "c91c090ceee3a3ac81902da31838012625bbcd73fcb92e7d7e56f78deba4f0c3"),
            (128, "81720f34452f58a0120a58b6b4608384b5c51d11f39ce97161a0c0e442ca0225"),
            (129, "938d2d4435be30eafdbb2b7031f7857c98b04881227391dc40db3c7b21f41fc1"),
            (1023, "74a16c1c3d44368a86e1ca6df64be6a2f64cce8f09220787450722d85725dea5"),
            (1024, "7356cd7720d5b66b6d0697eb3177d9f8d73a4a5c5e968896eb6a689684302706"),
        ])
    func vectors(count: Int, output: String) {
        let input = (0..<count).map { UInt8($0 % 251) }
        let context = "BLAKE3 2019-12-27 16:29:52 test vectors context"
        #expect(BLAKE3.deriveKey(context: context.utf8, material: input) == [UInt8](hex: output))
    }

    @Test("the context may be as long as the material")
    func longContext() {
        let context = (0..<1024).map { UInt8(0x20 + $0 % 95) }
        let output = "01264dcd823ce55f6ef19c019e49bd885b56f8ab23ff51f4dc8e6c71d25fbaed"
        #expect(BLAKE3.deriveKey(context: context, material: [1, 2, 3]) == [UInt8](hex: output))
    }
}
