import CulvertCore
import Testing

@testable import CulvertIdentity

@Suite("RFC 3339")
struct RFC3339Tests {
    @Test(
        "dates are read and written",
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (1_767_323_045, "2026-01-02T03:04:05Z"), (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"), (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"), (-62_167_219_200, "0000-01-01T00:00:00Z"),
        ] as [(Int64, String)])
    func dates(seconds: Int64, text: String) {
        #expect(RFC3339.text(UnixTime(seconds: seconds)) == text)
        #expect(RFC3339.date(text) == UnixTime(seconds: seconds))
    }

    @Test("months have their lengths in 800 years, which is two turns of the calendar")
    func months() throws {
        var expected: Int64 = -11_676_096_000  // 1600-01-01T00:00:00Z
        for year in 1600..<2400 {
            let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            for (month, length) in [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].enumerated() {
                let name = "\(year)-\(month < 9 ? "0" : "")\(month + 1)-"
                for day in [1, length] {
                    let date = UnixTime(seconds: expected + Int64(day - 1) * 86_400)
                    let text = "\(name)\(day < 10 ? "0" : "")\(day)T00:00:00Z"
                    #expect(RFC3339.date(text) == date)
                    #expect(RFC3339.text(date) == text)
                }
                #expect(RFC3339.date("\(name)\(length + 1)T00:00:00Z") == nil)
                expected += Int64(length) * 86_400
            }
        }
    }

    // The examples of RFC 3339 section 5.8 and variants that it allows.
    @Test(
        "offsets, fractions, leap seconds and lower case are understood",
        arguments: [
            ("1985-04-12T23:20:50.52Z", 482_196_050), ("1996-12-19T16:39:57-08:00", 851_042_397),
            ("1990-12-31T23:59:60Z", 662_688_000), ("1990-12-31T15:59:60-08:00", 662_688_000),
            ("1937-01-01T12:00:27.87+00:20", -1_041_337_173), ("2026-01-02t03:04:05z", 1_767_323_045),
            ("2026-01-02T03:04:05.000000000000000000000001Z", 1_767_323_045),
        ] as [(String, Int64)])
    func variants(text: String, seconds: Int64) {
        #expect(RFC3339.date(text) == UnixTime(seconds: seconds))
    }

    @Test(
        "what is no date is refused",
        arguments: [
            "", "2026", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "2026-01-02T03:04Z",
            "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-02T24:00:00Z", "2026-01-02T03:60:05Z",
            "2026-01-02T03:04:61Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05+0100", "2026-01-02T03:04:05+24:00",
            "2026-01-02T03:04:05Z ", " 2026-01-02T03:04:05Z", "2026-1-2T3:4:5Z", "+2026-01-02T03:04:05Z",
            "-026-01-02T03:04:05Z", "２026-01-02T03:04:05Z", "1767323045",
        ])
    func malformed(text: String) {
        #expect(RFC3339.date(text) == nil)
    }

    @Test("years without four digits cannot be written")
    func unwritable() {
        #expect(RFC3339.text(UnixTime(seconds: 253_402_300_800)) == nil)
        #expect(RFC3339.text(UnixTime(seconds: -62_167_219_201)) == nil)
        #expect(RFC3339.text(UnixTime(seconds: .max)) == nil)
        #expect(RFC3339.text(UnixTime(seconds: .min)) == nil)
    }
}
