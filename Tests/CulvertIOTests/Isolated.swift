import Glibc
import Testing

/// Tests that need a process, a mount or a network namespace of their own: the test program runs itself again for one
/// test, which is disabled elsewhere.
enum Isolated {
    /// Whether this process was started for the test called `name`.
    static func isInside(_ name: String) -> Bool {
        getenv("CULVERT_ISOLATED_TEST").map { String(cString: $0) } == name
    }

    /// Runs the test function `name` alone by `sh -c`, in which `"$@"` stands for the program; its exit status.
    static func run(_ name: String, _ script: String) async throws -> Int32 {
        // On a thread of its own: waiting must not take one from the other tests.
        try await withLoop { try await $0.run { try runAndWait(name, script) } }
    }

    private static func runAndWait(_ name: String, _ script: String) throws -> Int32 {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = readlink("/proc/self/exe", &path, path.count - 1)
        try #require(length > 0)
        let program = String(decoding: path[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
        let arguments = ["sh", "-c", script, "sh", program, "--testing-library", "swift-testing", "--filter", name]
        var environment: [String] = ["CULVERT_ISOLATED_TEST=\(name)", "SWIFT_BACKTRACE=enable=no"]
        for key in ["PATH", "HOME", "LD_LIBRARY_PATH"] {
            if let value = getenv(key) { environment.append("\(key)=\(String(cString: value))") }
        }
        var process = pid_t()
        let result = withCStrings(arguments) { arguments in
            withCStrings(environment) { posix_spawnp(&process, "sh", nil, nil, arguments, $0) }
        }
        try #require(result == 0)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status & 0x7f == 0 ? (status >> 8) & 0xff : -1
    }

    private static func withCStrings<R>(
        _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R
    ) -> R {
        var pointers = strings.map { strdup($0) }
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        return pointers.withUnsafeBufferPointer { body($0.baseAddress!) }
    }
}
