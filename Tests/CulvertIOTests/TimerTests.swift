import CulvertCore
import Testing

@testable import CulvertIO

@Suite(.timeLimit(.minutes(1)))
struct TimerTests {
    @Test func timersFireInOrderAndTiesInOrderOfArming() async throws {
        try await withLoop { actor in
            let fired = Events<Int>()
            await actor.run {
                let start = actor.loop.now
                for (name, delay) in [(3, 9), (1, 3), (4, 9), (2, 6), (0, 0)] {
                    LoopTimer(loop: actor.loop) { fired.yield(name) }.arm(at: start + .milliseconds(delay))
                }
            }
            #expect(await fired.next(5) == [0, 1, 2, 3, 4])
        }
    }

    @Test func aTimerNeverFiresEarly() async throws {
        try await withLoop { actor in
            let early = Events<Bool>()
            await actor.run {
                for microseconds in [1, 50, 700, 1500, 4000] {
                    let due = actor.loop.now + .microseconds(microseconds)
                    LoopTimer(loop: actor.loop) { early.yield(actor.loop.now < due) }.arm(at: due)
                }
            }
            #expect(await early.next(5) == [false, false, false, false, false])
        }
    }

    @Test func rearmingMovesAndDisarmingCancels() async throws {
        try await withLoop { actor in
            let fired = Events<String>()
            await actor.run {
                let now = actor.loop.now
                let moved = LoopTimer(loop: actor.loop) { fired.yield("moved") }
                let cancelled = LoopTimer(loop: actor.loop) { fired.yield("cancelled") }
                moved.arm(at: now + .seconds(100))
                moved.arm(at: now + .milliseconds(2))
                #expect(moved.deadline == now + .milliseconds(2))
                cancelled.arm(at: now + .milliseconds(1))
                cancelled.disarm()
                cancelled.disarm()
                #expect(cancelled.deadline == .never && !cancelled.isArmed)
                var rounds = 0
                var again: LoopTimer?
                again = LoopTimer(loop: actor.loop) {
                    rounds += 1
                    fired.yield("round")
                    #expect(again?.isArmed == false)
                    if rounds < 3 { again?.arm(at: actor.loop.now + .milliseconds(3)) } else { again = nil }
                }
                again?.arm(at: now + .milliseconds(4))
            }
            #expect(await fired.next(4) == ["moved", "round", "round", "round"])
        }
    }

    @Test func aTimerThatRearmsInThePastLeavesTurnsToOthers() async throws {
        try await withLoop { actor in
            let fired = Events<String>()
            await actor.run {
                let past = actor.loop.now + .seconds(-1)
                var eager: LoopTimer?
                var isDone = false
                eager = LoopTimer(loop: actor.loop) { if !isDone { eager?.arm(at: past) } else { eager = nil } }
                eager?.arm(at: past)
                LoopTimer(loop: actor.loop) {
                    isDone = true
                    fired.yield("other")
                }.arm(at: actor.loop.now + .milliseconds(2))
            }
            #expect(await fired.next() == "other")
        }
    }
}
