import CulvertCore
import CulvertRelay
import Testing

@testable import culvert_relay

struct SettingsTests {
    private func parse(file: String? = nil, _ words: String...) throws -> Settings {
        let flags = try SettingsSource(words: words) { _, _ in false }
        return try SettingsSource.settings(
            file: file.map { try SettingsSource(file: $0, path: "r.conf") }, flags: flags)
    }

    private func fault(file: String? = nil, _ words: String...) -> String? {
        do {
            let flags = try SettingsSource(words: words) { _, _ in false }
            let file = try file.map { try SettingsSource(file: $0, path: "r.conf") }
            _ = try SettingsSource.settings(file: file, flags: flags)
            return nil
        } catch {
            return (error as? SettingsError)?.message
        }
    }

    @Test func flagsAndFileSayTheSame() throws {
        let flags = try parse(
            "--listen", "192.0.2.1:80", "--listen=[::]:443", "--rate", "50000", "--allow", "a b", "--handshake-time=3")
        let file = try parse(
            file:
                "# relay\nlisten = 192.0.2.1:80\r\n  listen=[::]:443\n\nrate = 50000\nallow = a b\nhandshake-time = 3\n"
        )
        #expect(flags == file)
        #expect(flags.listen.map(\.description) == ["192.0.2.1:80", "[::]:443"])
        #expect(flags.quota.bytesPerSecond == 50000 && flags.quota.handshakeTime == .seconds(3))
    }

    @Test func flagsWinOverTheFile() throws {
        let settings = try parse(
            file: "listen = 192.0.2.1:80\nrate = 50000\nmax-connections = 7", "--listen", "127.0.0.1:1", "--rate=0")
        #expect(settings.listen.map(\.description) == ["127.0.0.1:1"])
        #expect(settings.quota.bytesPerSecond == 0 && settings.quota.connections == 7)
    }

    @Test func faultsNameTheLine() {
        #expect(fault(file: "rate = 5\n\nlissen = 1") == "r.conf:3: there is no setting 'lissen'")
        #expect(fault(file: "\nrate 5") == "r.conf:2: a line must be name = value")
        #expect(fault(file: "rate = 5\nrate = 6") == "r.conf:2: rate is given twice")
        #expect(fault(file: "#\nrate = five") == "r.conf:2: rate takes 0 or a number from 20000 to 1000000000000")
        #expect(fault(file: "config = x") == "r.conf:1: there is no setting 'config'")
    }

    @Test func faultsNameTheFlag() {
        #expect(fault("--listen") == "--listen needs a value")
        #expect(fault("--lissen", "1") == "there is no option '--lissen'")
        #expect(fault("listen") == "there is no use for 'listen' here")
        #expect(fault("--rate", "1", "--rate", "2") == "--rate is given twice")
        #expect(fault("--max-connections", "0") == "--max-connections takes a number from 1 to 1000000")
        #expect(fault("--rate", "-1") == "--rate takes 0 or a number from 20000 to 1000000000000")
        #expect(fault("--rate", "19999") == "--rate takes 0 or a number from 20000 to 1000000000000")
        #expect(fault("--listen", "localhost")?.hasPrefix("--listen takes an address and a port") == true)
        #expect(fault("--handshake-time", "61") == "--handshake-time takes a number from 1 to 60")
    }

    @Test func helpNamesEverySetting() {
        for setting in Setting.all { #expect(Help.text.contains("--\(setting.name) \(setting.metavar)")) }
    }
}
