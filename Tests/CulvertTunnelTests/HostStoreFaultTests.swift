import CulvertCore
import CulvertTestSupport
import Glibc
import Testing

@testable import CulvertTunnel

// Free functions, so that tasks can call them without sharing the suite.

private func time(_ seconds: Int) -> UnixTime { UnixTime(seconds: Int64(seconds)) }

private func token(_ number: Int) -> [UInt8] {
    var random = SplitMix64(seed: UInt64(number))
    return random.bytes(32)
}

private func invite(_ store: HostStore, _ number: Int) throws {
    try store.createInvite(tokenHash: token(number), transports: .tunnel, expiresAt: time(1000), now: time(1))
}

/// The node that redeems invite `number`.
private func node(_ number: Int) -> [UInt8] {
    token(900_000 + number)
}

private func redeem(_ store: HostStore, _ number: Int, token new: [UInt8]) throws -> HostStore.Redemption {
    try store.redeemInvite(
        tokenHash: token(number), nodeID: node(number), deviceName: "d", newTokenHash: new, now: time(500))
}

@Suite struct HostStoreFaultTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory / "host.db"
    }

    // MARK: Several users of one file

    @Test func ofManyGuestsOneWins() async throws {
        let path = path
        let guests = 6
        let store = try HostStore(path: path)
        for round in 0..<8 {
            try invite(store, round)
            let winners = await withTaskGroup(of: Int.self) { group in
                for guest in 0..<guests {
                    group.addTask {
                        let new = [UInt8(round), UInt8(guest)] + hash(0xaa).dropFirst(2)
                        guard let own = try? HostStore(path: path, waitMilliseconds: 20000),
                            let redemption = try? redeem(own, round, token: new)
                        else { return 1000 }
                        if case .redeemed = redemption { return 1 }
                        return redemption == .refused(.usedInvite) ? 0 : 1000
                    }
                }
                return await group.reduce(0, +)
            }
            #expect(winners == 1)
        }
        #expect(try store.devices().count == 8)
    }

    @Test func manyMayOpenANewFileAtOnce() async throws {
        for round in 0..<20 {
            let path = directory / "new\(round).db"
            let failures = await withTaskGroup(of: Int.self) { group in
                for number in 0..<6 {
                    group.addTask {
                        do {
                            try invite(try HostStore(path: path, waitMilliseconds: 20000), number)
                            return 0
                        } catch {
                            return 1
                        }
                    }
                }
                return await group.reduce(0, +)
            }
            #expect(failures == 0)
        }
        // Nothing but the databases is left.
        #expect(directory.names.count == 20)
    }

    @Test func aLockedFileIsReportedAndReadable() throws {
        let first = try HostStore(path: path)
        let second = try HostStore(path: path, waitMilliseconds: 0)
        try first.database.execute("BEGIN IMMEDIATE")
        #expect(throws: TransportError(.state, "another process is using the host database; try again")) {
            try invite(second, 1)
        }
        #expect(try second.devices().isEmpty)
        try first.database.execute("COMMIT")
        try invite(second, 1)
    }

    @Test func whatOneRevokesTheOtherSees() throws {
        let first = try HostStore(path: path)
        let second = try HostStore(path: path)
        try invite(first, 1)
        guard case .redeemed(let device) = try redeem(second, 1, token: hash(2)) else {
            Issue.record("not redeemed")
            return
        }
        #expect(try first.authorize(tokenHash: hash(2), nodeID: node(1)) == .allowed(deviceID: device.id))
        #expect(try second.revoke(device.id, now: time(600)))
        #expect(try first.authorize(tokenHash: hash(2), nodeID: node(1)) == .revoked(deviceID: device.id))
    }

    // MARK: Disks

    @Test func aFullDiskLosesNothing() throws {
        let store = try HostStore(path: path)
        for number in 0..<20 { try invite(store, number) }
        try store.database.execute("PRAGMA max_page_count = 1")  // means: no more than there are
        var stored = 20
        let full = TransportError(.state, "the disk is full; the host database was not changed")
        #expect(throws: full) {
            while stored < 1000 {
                try invite(store, stored)
                stored += 1
            }
        }
        #expect(stored > 20)
        // Also in the middle of a redemption: the invite stays unused and there is no half device.
        var devices = 0
        #expect(throws: full) {
            while devices < stored {
                guard case .redeemed = try redeem(store, devices, token: token(100_000 + devices)) else { return }
                devices += 1
            }
        }
        #expect(try store.devices().count == devices)
        try store.database.execute("PRAGMA max_page_count = 1000")
        guard case .redeemed = try redeem(store, devices, token: token(100_000 + devices)) else {
            Issue.record("the invite was used up by a redemption that failed")
            return
        }
    }

    @Test func aReadOnlyFileIsRefused() throws {
        _ = try HostStore(path: path)
        chmod(path, 0o400)
        let readOnly = TransportError(.state, "the host database is read-only; check its permissions")
        guard geteuid() == 0 else {
            #expect(throws: readOnly) { try HostStore(path: path) }
            return
        }
        // Root may write everything, so the file system must see somebody else on this thread.
        chown(path, 65534, 65534)
        chmod(directory.path, 0o777)
        try asFileSystemUser(65534) {
            #expect(throws: readOnly) { try HostStore(path: path) }
            #expect(directory.names == ["host.db"])
        }
    }

    @Test func aReadOnlyDirectoryIsReported() throws {
        chmod(directory.path, 0o555)
        defer { chmod(directory.path, 0o700) }
        let denied = TransportError(.state, "the host database cannot be created; check the state directory")
        if geteuid() == 0 {
            try asFileSystemUser(65534) { #expect(throws: denied) { try HostStore(path: path) } }
        } else {
            #expect(throws: denied) { try HostStore(path: path) }
        }
        #expect(throws: denied) { try HostStore(path: directory / "missing/host.db") }
    }

    private func asFileSystemUser(_ user: uid_t, _ body: () throws -> Void) throws {
        typealias SetFSUID = @convention(c) (uid_t) -> Int32
        let symbol = try #require(dlsym(dlopen(nil, RTLD_NOW), "setfsuid"))
        let setFSUID = unsafeBitCast(symbol, to: SetFSUID.self)
        _ = setFSUID(user)
        defer { _ = setFSUID(0) }
        try body()
    }

    // MARK: Files that are not ours

    @Test(arguments: [0o644, 0o640, 0o604, 0o620, 0o601])
    func aFileOpenToOthersIsRefused(mode: Int) throws {
        _ = try HostStore(path: path)
        chmod(path, mode_t(mode))
        #expect(throws: TransportError(.state, "others can read the host database; set its mode to 600")) {
            try HostStore(path: path)
        }
    }

    @Test func aNewerVersionIsRefusedAndLeftAlone() throws {
        do {
            let store = try HostStore(path: path)
            try invite(store, 1)
            try store.database.execute("PRAGMA user_version = \(HostSchema.currentVersion + 1)")
        }
        let before = readFile(path)
        #expect(throws: TransportError(.state, "the host database was written by a newer version; update this program"))
        {
            try HostStore(path: path)
        }
        #expect(readFile(path) == before)
        #expect(directory.names == ["host.db"])
    }

    @Test func anotherProgramsDatabaseIsRefused() throws {
        for id in [0, 7] {
            let path = directory / "other\(id).db"
            do {
                let store = try HostStore(path: path)
                try store.database.execute("PRAGMA application_id = \(id)")
            }
            let before = readFile(path)
            #expect(throws: TransportError(.state, "the host database belongs to another program; move it away")) {
                try HostStore(path: path)
            }
            #expect(readFile(path) == before)
        }
    }

    @Test func whatIsNoDatabaseIsRefused() throws {
        writeFile(path, [UInt8](repeating: 0x41, count: 8192))
        #expect(throws: TransportError(.state, "the host database is not a database; move it away and pair again")) {
            try HostStore(path: path)
        }
        #expect(throws: TransportError(.state, "the host database is not a regular file; move it away")) {
            try HostStore(path: directory.path)
        }
    }

    @Test func damageIsReportedNeverACrash() throws {
        do {
            let store = try HostStore(path: path)
            for number in 0..<200 {
                try invite(store, number)
                if number % 2 == 0 { _ = try redeem(store, number, token: token(5000 + number)) }
            }
        }
        var random = SplitMix64(seed: 10)
        let good = readFile(path)
        #expect(good.count > 20000)
        let damagedPath = directory / "damaged.db"
        var refused = 0
        for round in 0..<150 {
            var bytes = good
            if round % 3 == 0 { bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random)) }
            for _ in 0..<(round % 3) * 20 {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            writeFile(damagedPath, bytes)
            do throws(TransportError) {
                let store = try HostStore(path: damagedPath, waitMilliseconds: 0)
                _ = try store.devices()
                _ = try store.authorize(tokenHash: hash(3), nodeID: hash(4))
                _ = try store.redeemInvite(
                    tokenHash: token(1), nodeID: hash(4), deviceName: nil, newTokenHash: hash(9), now: time(500))
            } catch {
                #expect(error.kind == .state)
                refused += 1
            }
            for suffix in ["", "-wal", "-shm", "-journal"] { unlink(damagedPath + suffix) }
        }
        #expect(refused > 50)
    }

    @Test func noDescriptorIsLeftOpen() throws {
        do {
            let store = try HostStore(path: path)
            try invite(store, 1)
            #expect(openDescriptors > 0)
            try store.database.execute("PRAGMA user_version = 99")
        }
        #expect(throws: TransportError.self) { try HostStore(path: path) }
        writeFile(path, [UInt8](repeating: 0x41, count: 8192))
        #expect(throws: TransportError.self) { try HostStore(path: path) }
        #expect(openDescriptors == 0)
    }

    /// Descriptors of this process that are open in this test's directory.
    private var openDescriptors: Int {
        (0..<1024).count { descriptor in
            var target = [CChar](repeating: 0, count: 4096)
            let length = readlink("/proc/self/fd/\(descriptor)", &target, target.count)
            guard length > 0 else { return false }
            return String(decoding: target[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
                .hasPrefix(directory.path)
        }
    }

    // MARK: Death of the process

    /// What a killed process leaves is the file and its log as they are; the log's end may not have reached the disk.
    @Test func theLogIsReplayedUpToWhereItIsWhole() throws {
        let store = try HostStore(path: path)
        let count = 30
        for number in 0..<count {
            try invite(store, number)
            guard case .redeemed = try redeem(store, number, token: token(1000 + number)) else {
                Issue.record("not redeemed")
                return
            }
        }
        let database = readFile(path)
        let log = readFile(path + "-wal")
        #expect(log.count > 100_000)
        var random = SplitMix64(seed: 11)
        var seen = Set<Int>()
        for round in 0..<60 {
            let copy = directory / "copy.db"
            writeFile(copy, database)
            let length = round == 0 ? log.count : Int.random(in: 0...log.count, using: &random)
            writeFile(copy + "-wal", Array(log.prefix(length)) + random.bytes(round % 2 * 3000))
            do {
                let revived = try HostStore(path: copy)
                let devices = try revived.devices()
                seen.insert(devices.count)
                // The first so many pairings, each whole: the next invite can still be redeemed, the last cannot.
                #expect(devices.map(\.id) == (0..<devices.count).map { idOfDevice($0, in: store) })
                if let last = devices.indices.last {
                    #expect(try redeem(revived, last, token: hash(0x77)) == .refused(.usedInvite))
                }
                if round == 0 { #expect(devices.count == count) }
                try invite(revived, 500)
                guard case .redeemed = try redeem(revived, 500, token: hash(0x78)) else {
                    Issue.record("the revived database does not work")
                    return
                }
            }
            for suffix in ["", "-wal", "-shm"] { unlink(copy + suffix) }
        }
        #expect(seen.count > 10)
    }

    private func idOfDevice(_ number: Int, in store: HostStore) -> String {
        ((try? store.devices()) ?? []).map(\.id).dropFirst(number).first ?? "?"
    }
}
