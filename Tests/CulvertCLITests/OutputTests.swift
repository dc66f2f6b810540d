import Culvert
import CulvertCore
import Glibc
import Testing

@testable import CulvertCLI

@Suite struct EventTests {
    private static let linesCases: [(Event, String)] = [
        (
            Event.hostReady(nodeID: "ab", ticket: "endpointx", invite: "culvert://c?v=4&invite=e", target: "unix:/a"),
            #"{"event":"ready","nodeId":"ab","ticket":"endpointx","invite":"culvert://c?v=4&invite=e","target":"unix:/a"}"#
        ),
        (
            .connectReady(server: "studio", url: "http://127.0.0.1:4000"),
            #"{"event":"ready","server":"studio","url":"http://127.0.0.1:4000"}"#
        ),
        (
            .path(device: nil, kind: .direct, rtt: .microseconds(12_345)),
            #"{"event":"path","kind":"direct","rttMs":12.345}"#
        ),
        (
            .path(device: "phone", kind: .relay, rtt: .milliseconds(40)),
            #"{"event":"path","kind":"relay","rttMs":40,"device":"phone"}"#
        ),
        (.paired(device: "a\"b\u{1b}"), #"{"event":"paired","device":"a\"b\u001b"}"#),
        (.connected(device: "a"), #"{"event":"connected","device":"a"}"#),
        (.disconnected(device: "a"), #"{"event":"disconnected","device":"a"}"#),
        (
            .lost(kind: "timed-out", message: "no answer"),
            #"{"event":"disconnected","kind":"timed-out","message":"no answer"}"#
        ),
        (.reconnected, #"{"event":"reconnected"}"#),
        (.error(kind: "revoked", message: "m"), #"{"event":"error","kind":"revoked","message":"m"}"#),
        (.closed, #"{"event":"closed"}"#),
    ]

    @Test(arguments: linesCases)
    func lines(_ event: Event, _ line: String) {
        #expect(event.json.text == line)
    }

    @Test func failuresBecomeEvents() {
        let failure = Failure(TransportError(.unavailable, "no answer"), about: "studio")
        #expect(failure.event.json.text == #"{"event":"error","kind":"unavailable","message":"studio: no answer"}"#)
        #expect(failure.code == .unreachable)
    }

    @Test func silenceIsExplained() {
        let failure = Failure(TransportError(.timedOut, "m"), about: "v\u{7}m")
        #expect(
            failure.message == """
                v\u{fffd}m did not answer in time; is culvert host running there, and does UDP reach it? if it moved, \
                ask for a new invite
                """)
        #expect(Failure(TransportError(.timedOut, "m")).message.hasPrefix("the host did not answer in time;"))
    }

    @Test func failuresOfPairing() {
        let blocked = Failure(pairing: TransportError(.limit, "too many"), with: "studio")
        #expect(blocked == Failure("studio: too many", code: .refused, kind: "limit"))
        let state = Failure(pairing: TransportError(.state, "the disk is full"), with: "studio")
        #expect(state == Failure("the disk is full", code: .failure, kind: "state"))
        #expect(Failure(pairing: TransportError(.authentication, "used"), with: nil).message == "used")
    }

    @Test func portsAreNamed() {
        let failure = Failure(TransportError(.localListener, "the port is in use"), ofPort: 9000)
        #expect(failure.message == "--port 9000: the port is in use" && failure.code == .failure)
    }

    @Test func aStopBeforeReadyIsNoSuccess() {
        let nothing = Failure("stopped before it was ready", code: .interrupted, kind: "cancelled")
        #expect(Failure(stoppedBy: CancellationError()) == nothing)
        #expect(Failure(stoppedBy: TransportError(.cancelled, "given up")) == nothing)
        #expect(Failure(stoppedBy: Failure(TransportError(.cancelled, "given up"), about: "vm")) == nothing)
        // What matters is told.
        let unknown = Failure(stoppedBy: TransportError(.authentication, "the result is unknown"))
        #expect(unknown == Failure("the result is unknown", code: .interrupted, kind: "authentication"))
    }

    @Test func stateDirectoriesAreNamed() throws {
        let directory = StateDirectory(path: "/a/b")
        func message(_ kind: ErrorKind) -> String? {
            #expect(throws: Failure.self) {
                try directory.named { () throws(TransportError) in throw TransportError(kind, "m") }
            }?.message
        }
        #expect(message(.state) == "/a/b: m")
        #expect(message(.limit) == "m")
        #expect(try directory.named { () throws(TransportError) in 7 } == 7)
    }

    @Test func foreignErrorsAreNotShown() {
        struct Foreign: Error { let token = "dt_secret" }
        #expect(!Failure(unchecked: Foreign()).message.contains("secret"))
        #expect(Failure(unchecked: TransportError(.limit, "m")).kind == "limit")
    }

    @Test func notesForPeople() {
        #expect(
            Event.path(device: "a\u{7}", kind: .direct, rtt: .milliseconds(3)).note == "a\u{fffd}: direct path, 3 ms")
        #expect(Event.closed.note == nil)
    }
}

@Suite struct JSONTests {
    private static let thousandthsCases: [(Int64, String)] = [
        (0, "0"), (1, "0.001"), (500, "0.5"), (12_345, "12.345"), (-1500, "-1.5"), (7000, "7"),
    ]

    @Test(arguments: thousandthsCases)
    func thousandths(_ value: Int64, _ text: String) {
        #expect(JSON.thousandths(value).text == text)
    }

    @Test func strings() {
        #expect(JSON.string("\"\\\n\r\t\u{0}\u{9b}é日").text == #""\"\\\n\r\t\u0000\u009bé日""#)
    }

    @Test func listings() {
        #expect(JSON.lines([]) == ["[]"])
        #expect(JSON.lines([.integer(1), .null]) == ["[", "  1,", "  null", "]"])
        #expect(JSON.array([.bool(true), .bool(false)]).text == "[true,false]")
    }
}

@Suite struct ExitCodeTests {
    private static let mappingCases: [(ErrorKind, Int32)] = [
        (ErrorKind.unavailable, 3), (.timedOut, 3), (.authentication, 4), (.revoked, 4), (.peerIdentity, 5),
        (.tlsIdentity, 5), (.alpn, 1), (.framing, 1), (.protocolViolation, 1), (.limit, 1), (.localListener, 1),
        (.state, 1), (.cancelled, 1), (.metadata(.envelope), 2), (.metadata(.algorithm), 1),
        (.metadata(.signature), 5), (.metadata(.fingerprint), 5), (.metadata(.version), 1), (.metadata(.expired), 4),
        (.metadata(.clock), 4), (.metadata(.noTunnel), 1), (.metadata(.nodeID), 1), (.metadata(.alpn), 1),
        (.metadata(.ticketMissing), 1), (.metadata(.ticket), 1), (.metadata(.ticketNode), 5),
        (.metadata(.relayURL), 1),
    ]

    @Test(arguments: mappingCases)
    func mapping(_ kind: ErrorKind, _ code: Int32) {
        #expect(ExitCode(kind).rawValue == code)
    }
}

@Suite struct TableTests {
    @Test func alignsAndTrims() {
        let table = Table(headings: ["ID", "NAME", "SEEN"], rows: [["abcdef", "a", "now"], ["x", "日本語", ""]])
        #expect(table.lines == ["ID      NAME    SEEN", "abcdef  a       now", "x       日本語"])
    }

    @Test func cleansWhatPeersChose() {
        #expect(Table(headings: ["A"], rows: [["\u{1b}[31mred\u{9b}"]]).lines == ["A", "\u{fffd}[31mred\u{fffd}"])
    }
}

@Suite struct DateTests {
    private static let rfc3339Cases: [(Int64, String)] = [
        (0, "1970-01-01T00:00:00Z"), (1_709_164_799, "2024-02-28T23:59:59Z"), (1_709_164_800, "2024-02-29T00:00:00Z"),
        (4_102_444_800, "2100-01-01T00:00:00Z"),
    ]

    @Test(arguments: rfc3339Cases)
    func rfc3339(_ seconds: Int64, _ text: String) {
        #expect(Dates.rfc3339(UnixTime(seconds: seconds)) == text)
    }

    private static let relativeCases: [(Int64, String)] = [
        (0, "now"), (1, "1 second ago"), (119, "119 seconds ago"), (120, "2 minutes ago"), (7200, "2 hours ago"),
        (-90, "in 90 seconds"), (86_400, "24 hours ago"), (40 * 86_400, "40 days ago"), (90 * 86_400, "3 months ago"),
        (-800 * 86_400, "in 2 years"),
    ]

    @Test(arguments: relativeCases)
    func relative(_ age: Int64, _ text: String) {
        let now = UnixTime(seconds: 1_700_000_000)
        #expect(Dates.relative(UnixTime(seconds: now.seconds - age), to: now) == text)
    }

    private static let durationsCases: [(Int, String)] = [
        (1, "1 second"), (90, "90 seconds"), (600, "10 minutes"), (3600, "1 hour"), (2_592_000, "30 days"),
    ]

    @Test(arguments: durationsCases)
    func durations(_ seconds: Int, _ text: String) {
        #expect(Dates.duration(.seconds(seconds)) == text)
    }
}

@Suite struct ConsoleTests {
    @Test func resultsAndNotesGoTheirWays() {
        let (output, error) = (Pipe(), Pipe())
        let console = Console(output: output.writer, error: error.writer)
        console.line("result")
        console.lines(["two", "lines"])
        console.lines([])
        console.note("note")
        output.closeWriter()
        error.closeWriter()
        #expect(output.readAll() == "result\ntwo\nlines\n")
        #expect(error.readAll() == "note\n")
        #expect(console.outputFault == nil)
    }

    @Test func noticesThatTheReaderIsGone() {
        signal(SIGPIPE, SIG_IGN)
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        close(ends[0])
        defer { close(ends[1]) }
        let console = Console(output: ends[1])
        console.line("result")
        #expect(console.outputFault == .closedByReader)
        console.line("more")
    }

    @Test func noticesAFullDisk() {
        let full = open("/dev/full", O_WRONLY)
        defer { close(full) }
        let console = Console(output: full)
        console.line("result")
        #expect(console.outputFault == .failed)
    }

    @Test func writesAllOfALongLine() async {
        let pipe = Pipe()
        let console = Console(output: pipe.writer)
        let line = String(repeating: "x", count: 300_000)
        // More than a pipe holds, and non-blocking, so that the write comes in parts.
        #expect(fcntl(pipe.writer, F_SETFL, O_NONBLOCK) == 0)
        let reader = pipe.reader
        async let count = Task.detached {
            var total = 0
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while total < 300_001, case let count = read(reader, &buffer, buffer.count), count > 0 { total += count }
            return total
        }.value
        console.line(line)
        pipe.closeWriter()
        #expect(await count == 300_001)
    }

    @Test func lastNotesWaitForNobody() {
        let (full, other) = (Pipe(), Pipe())
        #expect(fcntl(full.writer, F_SETFL, O_NONBLOCK) == 0)
        let bytes = [UInt8](repeating: 0, count: 65_536)
        while write(full.writer, bytes, bytes.count) > 0 {}
        // A write to the full pipe would wait for ever.
        Console(output: other.writer, error: full.writer).lastNote("note")
        Console(output: full.writer, error: other.writer).lastNote("note")
        other.closeWriter()
        #expect(other.readAll() == "note\n")
    }

    @Test func stoppingCountsDown() {
        #expect(StopProgress.label(1) == "Stopping; open requests have 4 s left, Ctrl-C cuts them")
        #expect(StopProgress.label(5) == "Stopping" && StopProgress.label(7) == "Stopping")
    }

    @Test func progressIsSilentWithoutATerminal() async {
        let pipe = Pipe()
        let console = Console(output: pipe.writer, error: pipe.writer)
        #expect(await console.during("Working") { 7 } == 7)
        pipe.closeWriter()
        #expect(pipe.readAll().isEmpty)
    }
}
