/// The rule for names that people give to servers and devices, and that arrive from other machines.
package enum DisplayName {
    /// Whether `name` is 1 to 128 bytes of UTF-8, not blank, and free of what could forge a line or reverse one on a
    /// terminal: control characters, line and paragraph separators, direction marks and other invisible characters.
    package static func isAcceptable(_ name: String) -> Bool {
        guard name.utf8.count <= Limits.nameBytes else { return false }
        return name.unicodeScalars.allSatisfy(isAcceptable)
            && name.unicodeScalars.contains { !$0.properties.isWhitespace && !isJoiner($0) }
    }

    private static func isAcceptable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
        // Scripts and emoji need the joiners, which cannot change anything outside their own letters.
        case .format: isJoiner(scalar)
        default: true
        }
    }

    private static func isJoiner(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\u{200c}" || scalar == "\u{200d}"
    }
}
