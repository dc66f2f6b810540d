import CulvertCore
import Glibc

/// Dates and times for people, and dates for programs.
enum Dates {
    private static let units: [(seconds: Int64, name: String)] = [
        (365 * 86_400, "year"), (30 * 86_400, "month"), (86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"),
    ]

    /// RFC 3339 in UTC, to the second.
    static func rfc3339(_ date: UnixTime) -> String {
        var seconds = time_t(date.seconds)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ value: Int32, _ width: Int = 2) -> String {
            let digits = "\(value)"
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return padded(parts.tm_year + 1900, 4) + "-" + padded(parts.tm_mon + 1) + "-" + padded(parts.tm_mday)
            + "T" + padded(parts.tm_hour) + ":" + padded(parts.tm_min) + ":" + padded(parts.tm_sec) + "Z"
    }

    /// `3 hours ago`, `in 2 days`, `now`: in the largest unit that there are two of, so that not
    /// too much is rounded away.
    static func relative(_ date: UnixTime, to now: UnixTime) -> String {
        let seconds = now.seconds - date.seconds
        guard let unit = units.first(where: { abs(seconds) >= $0.seconds * ($0.seconds == 1 ? 1 : 2) }) else {
            return "now"
        }
        let text = counted(abs(seconds) / unit.seconds, unit.name)
        return seconds > 0 ? "\(text) ago" : "in \(text)"
    }

    /// A length of time in the largest unit that loses nothing: `90 seconds`, `10 minutes`, `30 days`.
    static func duration(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        let unit = units.first { $0.seconds <= 86_400 && seconds >= $0.seconds && seconds % $0.seconds == 0 }
        return unit.map { counted(seconds / $0.seconds, $0.name) } ?? counted(seconds, "second")
    }

    private static func counted(_ count: Int64, _ unit: String) -> String {
        "\(count) \(unit)\(count == 1 ? "" : "s")"
    }
}
