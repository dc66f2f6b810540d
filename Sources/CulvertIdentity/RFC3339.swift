import CulvertCore

/// Internet date and time (RFC 3339 section 5.6), to whole seconds.
enum RFC3339 {
    /// `2026-01-31T12:00:00Z`; nil for years that the format cannot write.
    static func text(_ date: UnixTime) -> String? {
        guard (earliest...latest).contains(date.seconds) else { return nil }
        let (days, second) = date.seconds.floorDivided(by: secondsPerDay)
        let (year, month, day) = civil(days)
        func padded(_ number: Int64, _ width: Int = 2) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(padded(year, 4))-\(padded(month))-\(padded(day))"
            + "T\(padded(second / 3600)):\(padded(second / 60 % 60)):\(padded(second % 60))Z"
    }

    /// The date that `text` names. A fraction of a second is cut off; a leap second is the next second.
    static func date(_ text: String) -> UnixTime? {
        var rest = Substring(text).utf8

        func take(_ accepted: String) -> UInt8? {
            guard let next = rest.first, accepted.utf8.contains(next) else { return nil }
            rest = rest.dropFirst()
            return next
        }
        func number(_ width: Int) -> Int64? {
            var value: Int64 = 0
            for _ in 0..<width {
                guard let digit = take("0123456789") else { return nil }
                value = value * 10 + Int64(digit - 0x30)
            }
            return value
        }

        guard let year = number(4), take("-") != nil, let month = number(2), take("-") != nil, let day = number(2),
            take("Tt") != nil, let hour = number(2), take(":") != nil, let minute = number(2), take(":") != nil,
            let second = number(2), (1...12).contains(month), (1...daysInMonth(year, month)).contains(day), hour <= 23,
            minute <= 59, second <= 60
        else { return nil }
        if take(".") != nil {
            guard number(1) != nil else { return nil }
            while number(1) != nil {}
        }
        guard let zone = take("Zz+-") else { return nil }
        var offset: Int64 = 0
        if zone == 0x2b || zone == 0x2d {
            guard let hours = number(2), take(":") != nil, let minutes = number(2), hours <= 23, minutes <= 59 else {
                return nil
            }
            offset = (hours * 3600 + minutes * 60) * (zone == 0x2b ? 1 : -1)
        }
        guard rest.isEmpty else { return nil }
        return UnixTime(
            seconds: days(year, month, day) * secondsPerDay + hour * 3600 + minute * 60 + second - offset)
    }

    private static let secondsPerDay: Int64 = 86_400
    private static let earliest = days(0, 1, 1) * secondsPerDay
    private static let latest = days(10_000, 1, 1) * secondsPerDay - 1
    /// Days in 400 years, after which the Gregorian calendar repeats.
    private static let daysPerCycle: Int64 = 146_097
    /// Days from 0000-03-01 to 1970-01-01.
    private static let epochDay: Int64 = 719_468

    private static func daysInMonth(_ year: Int64, _ month: Int64) -> Int64 {
        month == 12 ? 31 : days(year, month + 1, 1) - days(year, month, 1)
    }

    /// Days since 1970-01-01 of a proleptic Gregorian date. Years are counted from March, so that the leap day is
    /// the last of its year and the month lengths follow one linear rule.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let (cycle, yearOfCycle) = (month > 2 ? year : year - 1).floorDivided(by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return cycle * daysPerCycle + yearOfCycle * 365 + yearOfCycle / 4 - yearOfCycle / 100 + dayOfYear - epochDay
    }

    /// The inverse of `days`.
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (cycle, dayOfCycle) = (days + epochDay).floorDivided(by: daysPerCycle)
        let yearOfCycle = (dayOfCycle - dayOfCycle / 1460 + dayOfCycle / 36_524 - dayOfCycle / 146_096) / 365
        let dayOfYear = dayOfCycle - (365 * yearOfCycle + yearOfCycle / 4 - yearOfCycle / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (cycle * 400 + yearOfCycle + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}

extension Int64 {
    /// Quotient rounded down and remainder from 0 up, for a positive divisor.
    fileprivate func floorDivided(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
