import CulvertCore
import CulvertIdentity
import Glibc
import Testing

@testable import CulvertTunnel

@Suite struct HostStoreTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let node = hash(0xee)

    init() throws {
        directory = try TemporaryDirectory()
        path = directory / "host.db"
    }

    private func time(_ seconds: Int64) -> UnixTime { UnixTime(seconds: seconds) }

    private func open() throws -> HostStore { try HostStore(path: path) }

    /// A store with one device whose token hash is `hash(2)`.
    private func paired(
        transports: CredentialTransports = .tunnel, nodeID: [UInt8]? = hash(0xee)
    ) throws -> (HostStore, DeviceRecord) {
        let store = try open()
        try store.createInvite(tokenHash: hash(1), transports: transports, expiresAt: time(200), now: time(100))
        let redemption = try store.redeemInvite(
            tokenHash: hash(1), nodeID: nodeID, transport: transports, deviceName: "laptop", newTokenHash: hash(2),
            now: time(110))
        guard case .redeemed(let device) = redemption else {
            Issue.record("not redeemed: \(redemption)")
            throw TemporaryDirectory.Failure()
        }
        return (store, device)
    }

    // MARK: Invites

    @Test func anInviteMakesADevice() throws {
        let (store, device) = try paired()
        #expect(
            device
                == DeviceRecord(
                    id: "aierafy6", name: "laptop", nodeID: node, transports: .tunnel, createdAt: time(110),
                    lastSeenAt: nil, revokedAt: nil))
        #expect(try store.devices() == [device])
    }

    @Test func anInviteWorksOnce() throws {
        let (store, _) = try paired()
        let again = try store.redeemInvite(
            tokenHash: hash(1), nodeID: node, deviceName: nil, newTokenHash: hash(3), now: time(111))
        #expect(again == .refused(.usedInvite))
        #expect(try store.devices().count == 1)
        #expect(try store.authorize(tokenHash: hash(3), nodeID: node) == .unknown)
    }

    @Test func anUnknownInvite() throws {
        let store = try open()
        let redemption = try store.redeemInvite(
            tokenHash: hash(9), nodeID: node, deviceName: nil, newTokenHash: hash(2), now: time(1))
        #expect(redemption == .refused(.unknownInvite))
    }

    @Test func expiryAtItsLimitAndOneBefore() throws {
        let store = try open()
        func redeem(_ token: UInt8, at seconds: Int64) throws -> HostStore.Redemption {
            try store.createInvite(tokenHash: hash(token), transports: .tunnel, expiresAt: time(200), now: time(100))
            return try store.redeemInvite(
                tokenHash: hash(token), nodeID: node, deviceName: nil, newTokenHash: hash(token + 100),
                now: time(seconds))
        }
        #expect(try redeem(1, at: 200) == .refused(.expiredInvite))
        guard case .redeemed = try redeem(2, at: 199) else {
            Issue.record("refused one second before it expires")
            return
        }
    }

    @Test func anInviteForAnotherTransport() throws {
        let store = try open()
        try store.createInvite(tokenHash: hash(1), transports: .http, expiresAt: time(200), now: time(100))
        let redemption = try store.redeemInvite(
            tokenHash: hash(1), nodeID: node, deviceName: nil, newTokenHash: hash(2), now: time(110))
        #expect(redemption == .refused(.forbiddenTransport))
        // It is not used up.
        let other = try store.redeemInvite(
            tokenHash: hash(1), nodeID: nil, transport: .http, deviceName: nil, newTokenHash: hash(2), now: time(110))
        guard case .redeemed(let device) = other else {
            Issue.record("\(other)")
            return
        }
        #expect(device.name == DeviceName.placeholder)
    }

    @Test func oldInvitesAreForgotten() throws {
        let (store, _) = try paired()  // used, expires at 200
        try store.createInvite(tokenHash: hash(7), transports: .tunnel, expiresAt: time(201), now: time(100))
        let end = 200 + TunnelLimits.expiredInviteMemory.components.seconds
        #expect(try store.purgeInvites(now: time(end - 1)) == 0)
        #expect(try store.purgeInvites(now: time(end)) == 1)
        let late = try store.redeemInvite(
            tokenHash: hash(7), nodeID: node, deviceName: nil, newTokenHash: hash(8), now: time(end))
        #expect(late == .refused(.expiredInvite))
        #expect(try store.purgeInvites(now: time(end + 1)) == 1)
        #expect(try store.devices().count == 1)
    }

    @Test func anInviteCannotBeMadeTwice() throws {
        let (store, _) = try paired()
        #expect(throws: TransportError.self) {
            try store.createInvite(tokenHash: hash(1), transports: .tunnel, expiresAt: time(900), now: time(100))
        }
        let again = try store.redeemInvite(
            tokenHash: hash(1), nodeID: node, deviceName: nil, newTokenHash: hash(3), now: time(111))
        #expect(again == .refused(.usedInvite))
    }

    @Test func aTokenThatExistsLeavesTheInviteUnused() throws {
        let (store, _) = try paired()
        try store.createInvite(tokenHash: hash(5), transports: .tunnel, expiresAt: time(200), now: time(100))
        #expect(throws: TransportError(.state, "the host database refused a value that breaks its rules")) {
            try store.redeemInvite(
                tokenHash: hash(5), nodeID: hash(0x55), deviceName: nil, newTokenHash: hash(2), now: time(111))
        }
        let again = try store.redeemInvite(
            tokenHash: hash(5), nodeID: hash(0x55), deviceName: nil, newTokenHash: hash(6), now: time(111))
        guard case .redeemed = again else {
            Issue.record("\(again)")
            return
        }
    }

    @Test func wrongSizesAreRefused() throws {
        let store = try open()
        for size in [0, 31, 33] {
            let bytes = [UInt8](repeating: 1, count: size)
            #expect(throws: TransportError.self) {
                try store.createInvite(tokenHash: bytes, transports: .tunnel, expiresAt: time(2), now: time(1))
            }
            #expect(try store.authorize(tokenHash: bytes, nodeID: bytes) == .unknown)
        }
    }

    // MARK: Authorization

    @Test func decisions() throws {
        let (store, device) = try paired()
        #expect(try store.authorize(tokenHash: hash(2), nodeID: node) == .allowed(deviceID: device.id))
        #expect(try store.authorize(tokenHash: hash(1), nodeID: node) == .unknown)
        #expect(try store.authorize(tokenHash: hash(2), nodeID: hash(0xef)) == .bindingMismatch)
        #expect(try store.authorize(tokenHash: hash(2), nodeID: node, transport: .http) == .forbiddenTransport)
        #expect(try store.revoke(device.id, now: time(120)))
        #expect(try store.authorize(tokenHash: hash(2), nodeID: node) == .revoked(deviceID: device.id))
        #expect(try store.authorize(tokenHash: hash(2), nodeID: hash(0xef)) == .revoked(deviceID: device.id))
    }

    @Test func aTokenWithoutANode() throws {
        let (store, _) = try paired(transports: [.http, .tunnel], nodeID: nil)
        #expect(try store.authorize(tokenHash: hash(2), nodeID: node) == .bindingMissing)
    }

    // MARK: Devices

    @Test func renaming() throws {
        let (store, device) = try paired()
        #expect(try store.rename(device.id, to: " desk\u{1b}top "))
        #expect(try store.devices().map(\.name) == ["desktop"])
        #expect(try !store.rename(device.id, to: "\n"))
        #expect(try !store.rename("nobody", to: "x"))
        #expect(try !store.rename(device.id + "\0x", to: "x"))
        #expect(try !store.rename("' OR 1=1 --", to: "x"))
        #expect(try store.devices().map(\.name) == ["desktop"])
    }

    @Test func revokingIsOnceAndForAll() throws {
        let (store, device) = try paired()
        #expect(try !store.revoke("nobody", now: time(120)))
        #expect(try store.revoke(device.id, now: time(120)))
        #expect(try !store.revoke(device.id, now: time(130)))
        #expect(try store.devices().map(\.revokedAt) == [time(120)])
    }

    @Test func lastSeen() throws {
        let (store, device) = try paired()
        try store.touch([:])
        try store.touch([device.id: time(500), "nobody": time(1)])
        #expect(try store.devices().map(\.lastSeenAt) == [time(500)])
        try store.touch([device.id: time(400)])  // a clock set back does not unsee
        #expect(try store.devices().map(\.lastSeenAt) == [time(500)])
    }

    @Test func lastSeenCostsOneWriteAMinute() {
        var seen = LastSeen()
        var writes = 0
        for second in 0..<240 {
            for _ in 0..<10 where seen.note("a", at: time(Int64(second))) {
                writes += 1
                #expect(seen.takePending() == ["a": time(Int64(second))])
            }
        }
        #expect(writes == 4)
        #expect(seen.takePending() == ["a": time(239)])
        #expect(seen.takePending().isEmpty)
        let isDue = seen.note("b", at: time(240))
        #expect(isDue)
    }

    @Test func deviceIDsAreTakenOnce() throws {
        let (store, first) = try paired()
        // The same first bytes, so the next ones must do.
        try store.createInvite(tokenHash: hash(5), transports: .tunnel, expiresAt: time(200), now: time(100))
        var token = hash(2)
        token[31] ^= 1
        let redemption = try store.redeemInvite(
            tokenHash: hash(5), nodeID: hash(0x55), deviceName: nil, newTokenHash: token, now: time(111))
        guard case .redeemed(let second) = redemption else {
            Issue.record("\(redemption)")
            return
        }
        #expect(second.id != first.id)
        #expect(second.id.utf8.count == 8)
        #expect(try store.devices() == [first, second])
    }

    // MARK: Pairing through the store

    @Test func aPairingRequest() throws {
        let store = try open()
        let node = SecretKey.generate().nodeID
        let (first, second) = (DeviceToken.generate(), DeviceToken.generate())
        try store.createInvite(
            tokenHash: TokenHash(ofText: "pt").bytes, transports: .tunnel, expiresAt: time(200), now: time(100))
        let request = PairingRequest(pairingToken: "pt", deviceName: "laptop")
        #expect(
            try store.pair(request, node: node, token: first, now: time(110))
                == .granted(PairingGrant(deviceToken: first.text, transports: .tunnel)))
        #expect(try store.pair(request, node: node, token: second, now: time(110)) == .refused(.usedInvite))
        guard case .allowed = try store.authorize(tokenHash: first.hash.bytes, nodeID: node.bytes) else {
            Issue.record("the granted token is not allowed")
            return
        }
    }

    @Test func aNodeIsOneDeviceHoweverOftenItPairs() throws {
        let store = try open()
        #expect(try store.binding(of: node) == .none)
        func pair(_ number: UInt8, _ name: String) throws {
            try store.createInvite(
                tokenHash: hash(number), transports: .tunnel, expiresAt: time(200), now: time(100))
            guard
                case .redeemed = try store.redeemInvite(
                    tokenHash: hash(number), nodeID: node, deviceName: name, newTokenHash: hash(number + 100),
                    now: time(110))
            else {
                Issue.record("not paired")
                return
            }
        }
        try pair(1, "laptop")
        let id = try #require(try store.devices().first?.id)
        #expect(try store.rename(id, to: "Ann's laptop"))
        try pair(2, "laptop")
        #expect(try store.devices().map(\.id) == [id])
        #expect(try store.devices().map(\.name) == ["Ann's laptop"])
        #expect(try store.authorize(tokenHash: hash(101), nodeID: node) == .unknown)
        #expect(try store.authorize(tokenHash: hash(102), nodeID: node) == .allowed(deviceID: id))
        #expect(try store.binding(of: node) == .device(id))

        #expect(try store.revoke(id, now: time(120)))
        #expect(try store.binding(of: node) == .revoked)
        try pair(3, "laptop")
        #expect(try store.devices().count == 1)
        #expect(try store.devices().first?.name == "laptop")
        #expect(try store.authorize(tokenHash: hash(102), nodeID: node) == .unknown)
    }

    // MARK: The file

    @Test func everythingIsThereAgain() throws {
        let device: DeviceRecord
        do {
            let (store, paired) = try paired()
            device = paired
            try store.createInvite(tokenHash: hash(5), transports: .tunnel, expiresAt: time(200), now: time(100))
            #expect(directory.names == ["host.db", "host.db-shm", "host.db-wal"])
        }
        // The last one to close leaves one file behind.
        #expect(directory.names == ["host.db"])
        let store = try open()
        #expect(try store.devices() == [device])
        guard
            case .redeemed = try store.redeemInvite(
                tokenHash: hash(5), nodeID: node, deviceName: nil, newTokenHash: hash(6), now: time(111))
        else {
            Issue.record("the invite was lost")
            return
        }
    }

    @Test func onlyTheOwnerCanRead() throws {
        let (store, _) = try paired()
        for name in directory.names {
            var status = stat()
            #expect(stat(directory / name, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600, "\(name)")
        }
        _ = store
    }
}
