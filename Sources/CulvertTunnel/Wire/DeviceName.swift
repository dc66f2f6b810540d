/// Names that devices give themselves, made fit to be printed in a listing.
package enum DeviceName {
    /// What a device is called that sent no usable name.
    package static let placeholder = "unnamed device"

    /// `name` without control, format and line-separating characters (they could move a terminal's cursor or reverse
    /// the text around them), without white space around it, and cut to the limits; nil when nothing is left.
    package static func sanitized(_ name: String) -> String? {
        var clean = String.UnicodeScalarView()
        for scalar in name.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
                // A tab or line break between words separates them; the rest is dropped.
                if scalar.properties.isWhitespace { clean.append(" ") }
            default: clean.append(scalar)
            }
        }
        let trimmed = String(clean).drop(while: \.isWhitespace)
        var short = ""
        for character in trimmed.prefix(TunnelLimits.deviceNameCharacters) {
            guard short.utf8.count + character.utf8.count <= TunnelLimits.deviceNameBytes else { break }
            short.append(character)
        }
        while short.last?.isWhitespace == true { short.removeLast() }
        return short.isEmpty ? nil : short
    }
}
