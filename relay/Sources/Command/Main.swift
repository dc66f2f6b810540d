import CulvertCore
import CulvertIO
import CulvertRelayServer
import Glibc

/// The entry point. The main thread waits for signals; the relay lives on its loop.
@main
struct Main {
    static let version = "1.0.0"

    static func main() {
        signal(SIGPIPE, SIG_IGN)
        // Before any thread, so that every one inherits the mask.
        let signals = Signals()
        do throws(SettingsError) {
            let request = try CommandLineRequest(ProgramArguments.words)
            switch request.task {
            case .help: out(Help.text)
            case .version: out("culvert-relay \(version)\n")
            case .run: run(request, try request.configuration(), signals)
            }
        } catch {
            note("\(error.message); see culvert-relay --help")
            exit(2)
        }
    }

    private static func run(_ request: CommandLineRequest, _ configuration: RelayConfiguration, _ signals: Signals) {
        raiseDescriptorLimit()
        do throws(TransportError) {
            let service = try RelayService()
            let started = wait { () async -> Result<[RelayListening], TransportError> in
                do throws(TransportError) { return .success(try await service.start(configuration)) } catch {
                    return .failure(error)
                }
            }
            for place in try started.get() { out("\(place.purpose.rawValue) on \(place.address)\n") }
            while signals.next() == SIGHUP { reload(request, service) }
            wait { await service.stop() }
            // What was told to the clients is on its way; a second signal cuts this short.
            signals.next(within: .milliseconds(500))
        } catch {
            note(error.reason)
            exit(1)
        }
    }

    private static func reload(_ request: CommandLineRequest, _ service: RelayService) {
        do throws(SettingsError) {
            let configuration = try request.configuration()
            wait { await service.reload(configuration) }
            note("the settings were read again")
        } catch {
            note("the settings stay as they were: \(error.message)")
        }
    }

    /// Runs `body` elsewhere and waits for it: this thread has nothing else to do.
    @discardableResult
    private static func wait<T: Sendable>(_ body: @escaping @Sendable () async -> T) -> T {
        let result = Handover<T>()
        Task.detached { result.give(await body()) }
        return result.take()
    }

    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    private static func out(_ text: String) { write(text, to: STDOUT_FILENO) }

    private static func note(_ text: String) { write("culvert-relay: \(text)\n", to: STDERR_FILENO) }

    private static func write(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
