import CulvertCore
import Glibc
import Synchronization
import Testing

@testable import CulvertIO

@Suite(.timeLimit(.minutes(1)))
struct EventLoopTests {
    @Test func pinnedActorsRunOnTheLoopAndAssumeIsolatedHolds() async throws {
        try await withLoop { actor in
            #expect(!actor.loop.isOnLoop)
            #expect(await actor.run { actor.loop.isOnLoop })
            let told = Events<Int>()
            await actor.run {
                // Like a handler: called by the loop outside any task.
                let timer = LoopTimer(loop: actor.loop) {
                    actor.loop.preconditionOnLoop()
                    told.yield(
                        actor.assumeIsolated {
                            $0.value += 41; return $0.value
                        })
                }
                timer.arm(at: actor.loop.now)
            }
            #expect(await told.next() == 41)
            await actor.increment()
            #expect(await actor.value == 42)
            #expect(actor.loop.isIsolatingCurrentContext() == false)
        }
    }

    @Test func jobsFromManyThreadsAllRun() async throws {
        try await withLoop { actor in
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<64 {
                    group.addTask { for _ in 0..<100 { await actor.increment() } }
                }
            }
            #expect(await actor.value == 6400)
        }
    }

    @Test func jobsThatComeAfterTheEndStillRun() async throws {
        let loop = try EventLoop(name: "ending")
        let actor = OnLoop(loop)
        await actor.increment()
        loop.stop()
        loop.stop()
        for _ in 0..<100 { await actor.increment() }
        #expect(await actor.value == 101)
        #expect(await actor.run { loop.isOnLoop })
        await #expect(throws: TransportError(.cancelled, "the event loop has stopped")) {
            try await actor.run {
                _ = try loop.register(0, mode: .level, interest: .readable, handler: Closure { _ in })
            }
        }
    }

    @Test func endingClosesWhatTheLoopHolds() async throws {
        let closed = Events<Bool>()
        let loop = try EventLoop(name: "ending")
        let actor = OnLoop(loop)
        try await actor.run {
            let socket = try UDPSocket.bind(SocketAddress(.loopbackV4, port: 0))
            let owner = Owner(socket) { closed.yield(true) }
            try socket.attach(to: loop, handler: owner)
            // Held by nothing but the timer, which the loop holds.
            LoopTimer(loop: loop) { _ = owner }.arm(at: loop.now + .seconds(1000))
        }
        loop.stop()
        #expect(await closed.next() == true)
    }

    @Test func endedLoopsLeaveNoDescriptor() async throws {
        #expect(try await Isolated.run("countDescriptors", #"exec "$@" >&2"#) == 0)
    }

    @Test(.enabled(if: Isolated.isInside("countDescriptors"))) func countDescriptors() async throws {
        // The runtime opens some of its own at the first use.
        try await useEverythingAndStop()
        let before = directoryNames("/proc/self/fd").count
        for _ in 0..<5 { try await useEverythingAndStop() }
        #expect(directoryNames("/proc/self/fd").count == before)
    }

    private func useEverythingAndStop() async throws {
        weak var ended: EventLoop?
        try await withLoop { actor in
            ended = actor.loop
            let pair = try await Connection(actor)
            try await actor.run {
                let collector = Collector(try UDPSocket.bind(SocketAddress(.anyV6, port: 0)), Events())
                try collector.socket.attach(to: actor.loop, handler: collector)
                pair.client.value.socket.shutdownWrite()
            }
            #expect(await pair.atServer.next() == .end)
        }
        while ended != nil { await Task.yield() }
    }

    @Test func anEventReceivedBeforeDeregistrationIsNotDelivered() async throws {
        try await withLoop { actor in
            let told = Events<String>()
            try await actor.run {
                // Both are ready in one batch; whichever comes first removes the other and takes over its slot.
                let pipes = [Pipe(), Pipe()]
                var registrations: [Registration] = []
                for index in 0...1 {
                    let handler = Closure { _ in
                        told.yield("first")
                        for registration in registrations { actor.loop.deregister(registration) }
                        let reused = try? actor.loop.register(
                            pipes[1 - index].writer, mode: .level, interest: [],
                            handler: Closure { _ in told.yield("stale") })
                        _ = reused
                    }
                    registrations.append(
                        try actor.loop.register(
                            pipes[index].reader, mode: .level, interest: .readable, handler: handler))
                }
                for pipe in pipes { pipe.put() }
                // Keeps the pipes until the end of the test.
                LoopTimer(loop: actor.loop) {
                    told.yield("later")
                    _ = pipes
                }.arm(at: actor.loop.now + .milliseconds(20))
            }
            #expect(await told.next(2) == ["first", "later"])
        }
    }

    @Test func levelReportsAgainAndEdgeDoesNot() async throws {
        try await withLoop { actor in
            let told = Events<String>()
            try await actor.run {
                let edge = Pipe()
                let level = Pipe()
                var count = 0
                var registration: Registration?
                _ = try actor.loop.register(
                    edge.reader, mode: .edge, interest: .readable, handler: Closure { _ in told.yield("edge") })
                registration = try actor.loop.register(
                    level.reader, mode: .level, interest: .readable,
                    handler: Closure { _ in
                        count += 1
                        told.yield("level")
                        if count == 3, let registration { actor.loop.modify(registration, interest: []) }
                        _ = edge
                        _ = level
                    })
                edge.put()
                level.put()
            }
            #expect(await told.next(4).sorted() == ["edge", "level", "level", "level"])
        }
    }

    @Test func deliverAgainComesInTheNextIterationAndFlushersOnceAtTheEndOfEach() async throws {
        try await withLoop { actor in
            let told = Events<String>()
            try await actor.run {
                let pipe = Pipe()
                let second = Flusher { told.yield("second flush") }
                let first = Flusher {
                    told.yield("flush")
                    actor.loop.flushLater(second)
                }
                var rounds = 0
                var registration: Registration?
                let handler = Closure { events in
                    told.yield(events.isEmpty ? "again" : "event")
                    actor.loop.flushLater(first)
                    actor.loop.flushLater(first)
                    rounds += 1
                    guard let registration else { return }
                    if rounds == 1 { actor.loop.deliverAgain([], to: registration) }
                    _ = pipe
                }
                registration = try actor.loop.register(pipe.reader, mode: .edge, interest: .readable, handler: handler)
                pipe.put()
            }
            let expected = ["event", "flush", "second flush", "again", "flush", "second flush"]
            #expect(await told.next(6) == expected)
        }
    }
}

/// A handler made of a closure.
final class Closure: ReadinessHandler {
    let body: (Readiness) -> Void
    init(_ body: @escaping (Readiness) -> Void) { self.body = body }
    func ready(_ events: Readiness) { body(events) }
}

final class Flusher: LoopFlusher {
    var isFlushScheduled = false
    let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
    func flush() { body() }
}

/// Tells when it goes away.
private final class Owner: UDPSocketHandler {
    let socket: UDPSocket
    let gone: () -> Void
    init(_ socket: UDPSocket, gone: @escaping () -> Void) {
        self.socket = socket
        self.gone = gone
    }
    deinit { gone() }
    func socketReadable() {}
    func socketWritable() {}
}

final class Pipe {
    let reader: Int32
    let writer: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        _ = pipe(&ends)
        (reader, writer) = (ends[0], ends[1])
    }

    func put() { _ = write(writer, "x", 1) }

    deinit {
        close(reader)
        close(writer)
    }
}
