import CulvertCore
import FoundationEssentials

/// Reads wire JSON (RFC 8259) more strictly than the decoder behind it: one UTF-8 object, no key twice in any object,
/// bounded nesting. Two readers of a text with a repeated key may see two different messages.
enum StrictJSON {
    /// Decodes one JSON object; fields that `Message` does not name are ignored.
    static func decode<Message: Decodable>(
        _ type: Message.Type, from bytes: [UInt8]
    ) throws(TransportError) -> Message {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw TransportError(.framing, "the message's header is not UTF-8")
        }
        var scanner = JSONScanner(bytes)
        guard scanner.isOneObject() else {
            throw TransportError(.framing, "the message's header is not one well-formed JSON object")
        }
        do {
            return try JSONDecoder().decode(type, from: Data(bytes))
        } catch {
            throw TransportError(.framing, "the message's header lacks a field or has one of the wrong type")
        }
    }

    /// The message as JSON; keys in alphabetical order, so that equal messages are equal bytes.
    static func encode(_ message: some Encodable) throws(TransportError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return Array(try encoder.encode(message))
        } catch {
            throw TransportError(.framing, "the message could not be written as JSON")
        }
    }
}

/// Walks a JSON text once and finds out whether it is well formed.
private struct JSONScanner {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func isOneObject() -> Bool {
        skipSpace()
        guard peek() == UInt8(ascii: "{"), value(depth: 1) else { return false }
        skipSpace()
        return position == bytes.count
    }

    private func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func accept(_ byte: UInt8) -> Bool {
        guard peek() == byte else { return false }
        position += 1
        return true
    }

    private mutating func accept(_ character: Unicode.Scalar) -> Bool { accept(UInt8(ascii: character)) }

    private mutating func skipSpace() {
        while let byte = peek(), byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d { position += 1 }
    }

    private mutating func value(depth: Int) -> Bool {
        switch peek() {
        case UInt8(ascii: "{"): depth <= TunnelLimits.jsonDepth && object(depth: depth)
        case UInt8(ascii: "["): depth <= TunnelLimits.jsonDepth && array(depth: depth)
        case UInt8(ascii: "\""): string() != nil
        case UInt8(ascii: "t"): word("true")
        case UInt8(ascii: "f"): word("false")
        case UInt8(ascii: "n"): word("null")
        default: number()
        }
    }

    private mutating func object(depth: Int) -> Bool {
        position += 1
        skipSpace()
        if accept("}") { return true }
        // Strings compare by canonical equivalence, at least as broadly as the decoder tells keys apart.
        var keys = Set<String>()
        repeat {
            skipSpace()
            guard let key = string(), keys.insert(key).inserted else { return false }
            skipSpace()
            guard accept(":") else { return false }
            skipSpace()
            guard value(depth: depth + 1) else { return false }
            skipSpace()
        } while accept(",")
        return accept("}")
    }

    private mutating func array(depth: Int) -> Bool {
        position += 1
        skipSpace()
        if accept("]") { return true }
        repeat {
            skipSpace()
            guard value(depth: depth + 1) else { return false }
            skipSpace()
        } while accept(",")
        return accept("]")
    }

    /// The text of a string with its escapes resolved; nil when it is malformed.
    private mutating func string() -> String? {
        guard accept("\"") else { return nil }
        var text: [UInt8] = []
        while let byte = peek() {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let scalar = escape() else { return nil }
                text.append(contentsOf: String(scalar).utf8)
            case 0x00..<0x20: return nil
            default: text.append(byte)
            }
        }
        return nil
    }

    private mutating func escape() -> Unicode.Scalar? {
        guard let byte = peek() else { return nil }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            guard let unit = hexUnit() else { return nil }
            guard unit >> 10 == 0x36 else { return Unicode.Scalar(unit) }  // nil for a lone trailing surrogate
            guard accept("\\"), accept("u"), let low = hexUnit(), low >> 10 == 0x37 else { return nil }
            return Unicode.Scalar(0x10000 + (unit & 0x3ff) << 10 + (low & 0x3ff))
        default: return nil
        }
    }

    private mutating func hexUnit() -> UInt32? {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = peek() else { return nil }
            switch byte {
            case 0x30...0x39: unit = unit << 4 | UInt32(byte - 0x30)
            case 0x41...0x46: unit = unit << 4 | UInt32(byte - 0x41 + 10)
            case 0x61...0x66: unit = unit << 4 | UInt32(byte - 0x61 + 10)
            default: return nil
            }
            position += 1
        }
        return unit
    }

    private mutating func word(_ word: StaticString) -> Bool {
        word.withUTF8Buffer { letters in
            guard bytes[position...].starts(with: letters) else { return false }
            position += letters.count
            return true
        }
    }

    private mutating func number() -> Bool {
        _ = accept("-")
        guard accept("0") || digits() else { return false }
        if accept("."), !digits() { return false }
        if accept("e") || accept("E") {
            if !accept("+") { _ = accept("-") }
            return digits()
        }
        return true
    }

    private mutating func digits() -> Bool {
        let start = position
        while let byte = peek(), (0x30...0x39).contains(byte) { position += 1 }
        return position > start
    }
}
