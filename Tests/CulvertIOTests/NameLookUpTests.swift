import CLinux
import CulvertCore
import Glibc
import Testing

@testable import CulvertIO

@Suite(.timeLimit(.minutes(1)))
struct NameLookUpTests {
    @Test(arguments: [
        ("192.0.2.7", ["192.0.2.7"]), ("2001:db8::1", ["2001:db8::1"]), ("localhost", ["127.0.0.1", "::1"]),
        ("LocalHost.", ["127.0.0.1", "::1"]), ("relay.localhost", ["127.0.0.1", "::1"]),
    ])
    func whatIsKnownNeedsNoThread(host: String, expected: [String]) async throws {
        try await withLoop { actor in
            let told = Events<[String]>()
            await actor.run {
                let lookUp = NameLookUp(
                    of: host, loop: actor.loop,
                    resolve: { _ in
                        told.yield(["asked"]); return []
                    },
                    completion: { told.yield($0.map(\.description)) })
                lookUp.start()
                told.yield(["started"])
            }
            #expect(await told.next(2) == [["started"], expected])
        }
    }

    // 127.1 is numeric for the resolver and not for us, a label must not be empty: nobody on the network is asked.
    @Test(arguments: [("127.1", ["127.0.0.1"]), ("no..name", [])])
    func theSystemIsAskedOnAThreadAndAnswersOnTheLoop(host: String, expected: [String]) async throws {
        try await withLoop { actor in
            let told = Events<[String]>()
            await actor.run {
                let lookUp = NameLookUp(of: host, loop: actor.loop) { addresses in
                    actor.loop.preconditionOnLoop()
                    told.yield(addresses.map(\.description))
                }
                lookUp.start()
            }
            #expect(await told.next() == expected)
        }
    }

    @Test func theResolverRunsOffTheLoop() async throws {
        try await withLoop { actor in
            let told = Events<Bool>()
            await actor.run {
                let lookUp = NameLookUp(
                    of: "name.test", loop: actor.loop,
                    resolve: { _ in
                        told.yield(actor.loop.isOnLoop); return []
                    }, completion: { _ in told.yield(actor.loop.isOnLoop) })
                lookUp.start()
            }
            #expect(await told.next(2) == [false, true])
        }
    }

    @Test(arguments: ["192.0.2.7", "127.1"])
    func nothingIsToldAfterACancellation(host: String) async throws {
        try await withLoop { actor in
            let told = Events<String>()
            await actor.run {
                let cancelled = NameLookUp(of: host, loop: actor.loop) { _ in told.yield("cancelled") }
                cancelled.start()
                cancelled.cancel()
                NameLookUp(of: host, loop: actor.loop) { _ in told.yield("other") }.start()
                NameLookUp(of: host, loop: actor.loop) { _ in told.yield("third") }.start()
            }
            #expect(await told.next(2).sorted() == ["other", "third"])
        }
    }

    @Test func aThreadThatOutlivesTheCancellationSignalsNobody() async throws {
        try await withLoop { actor in
            let mayGoOn = Pipe()
            let told = Events<String>()
            let reader = mayGoOn.reader
            let holder = Confined(Holder())
            await actor.run {
                let end = AtTheEnd { told.yield("thread ended") }
                let lookUp = NameLookUp(
                    of: "name.test", loop: actor.loop,
                    resolve: { _ in
                        withExtendedLifetime(end) {
                            told.yield("asked")
                            var byte: UInt8 = 0
                            _ = read(reader, &byte, 1)
                            return [.loopbackV4]
                        }
                    }, completion: { _ in told.yield("told") })
                lookUp.start()
                holder.value.lookUp = lookUp
            }
            #expect(await told.next() == "asked")
            await actor.run {
                holder.value.lookUp?.cancel()
                holder.value.lookUp = nil
            }
            // One of these would get the number of a descriptor that the cancellation had closed.
            let later = (0..<8).map { _ in clinux_eventfd() }
            mayGoOn.put()
            #expect(await told.next() == "thread ended")
            for descriptor in later {
                var count: UInt64 = 0
                // Neither signalled nor closed.
                #expect(read(descriptor, &count, 8) == -1 && errno == EAGAIN)
                close(descriptor)
            }
        }
    }

    @Test func lookUpsLeaveNoDescriptor() async throws {
        #expect(try await Isolated.run("countLookUpDescriptors", #"exec "$@" >&2"#) == 0)
    }

    @Test(.enabled(if: Isolated.isInside("countLookUpDescriptors"))) func countLookUpDescriptors() async throws {
        // The runtime and the resolver open some of their own at the first use.
        try await lookUpAndCancel()
        let before = directoryNames("/proc/self/fd").count
        for _ in 0..<5 { try await lookUpAndCancel() }
        #expect(directoryNames("/proc/self/fd").count == before)
    }

    private func lookUpAndCancel() async throws {
        weak var ended: EventLoop?
        try await withLoop { actor in
            ended = actor.loop
            let told = Events<String>()
            await actor.run {
                let end = AtTheEnd { told.yield("thread ended") }
                NameLookUp(of: "127.1", loop: actor.loop) { _ in told.yield("told") }.start()
                let cancelled = NameLookUp(
                    of: "name.test", loop: actor.loop,
                    resolve: { _ in withExtendedLifetime(end) { [] } }, completion: { _ in })
                cancelled.start()
                cancelled.cancel()
            }
            #expect(await told.next(2).sorted() == ["thread ended", "told"])
        }
        while ended != nil { await Task.yield() }
    }
}

private final class Holder {
    var lookUp: NameLookUp?
}

/// Tells when the last who holds it lets go.
private final class AtTheEnd: Sendable {
    private let action: @Sendable () -> Void
    init(_ action: @escaping @Sendable () -> Void) { self.action = action }
    deinit { action() }
}
