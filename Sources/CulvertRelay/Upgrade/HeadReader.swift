/// The lines of an HTTP/1.1 head: the first, and the fields.
package struct MessageHead: Hashable, Sendable {
    /// One field line.
    package struct Field: Hashable, Sendable {
        /// The name in lower case.
        package let name: String
        /// The value without the white space around it.
        package let value: String
    }

    /// The request line or the status line.
    package let startLine: String
    /// The fields in their order.
    package let fields: [Field]

    /// The values of every field called `name` (in lower case).
    package func values(_ name: String) -> [String] {
        fields.filter { $0.name == name }.map(\.value)
    }

    /// The value of the only field called `name`; nil when there is none or more than one.
    package func single(_ name: String) -> String? {
        let values = values(name)
        return values.count == 1 ? values[0] : nil
    }

    /// The members of a comma-separated list, over all fields called `name` (RFC 9110 section 5.6.1).
    package func list(_ name: String) -> [String] {
        values(name).flatMap { value in
            value.split(separator: ",").map { $0.trimmingSpace }.filter { !$0.isEmpty }
        }
    }
}

/// Takes the first bytes of a connection as they come and looks for a head in them.
///
/// Lines end in CRLF only, nothing is folded, no control character passes. The result does not depend on how the bytes
/// were cut; each byte is looked at once, and at most ``RelayLimits/head`` are kept.
package struct HeadReader: Sendable {
    private var line: [UInt8] = []
    private var length = 0
    private var sawCarriageReturn = false
    private var startLine: String?
    private var fields: [MessageHead.Field] = []
    private var fault: HeadFault?

    /// A reader at the start of a connection.
    package init() {}

    /// Takes bytes from the front of `input` up to the end of the head and returns that; nil when all of `input` was
    /// taken and there is more to come. Throws the same fault again ever after.
    package mutating func next(_ input: inout UnsafeRawBufferPointer) throws(HeadFault) -> MessageHead? {
        if let fault { throw fault }
        do throws(HeadFault) {
            for (offset, byte) in input.enumerated() {
                length += 1
                if let head = try take(byte) {
                    input = UnsafeRawBufferPointer(rebasing: input[(offset + 1)...])
                    self = HeadReader()
                    return head
                }
                guard length < RelayLimits.head else { throw .tooLong }
            }
            input = UnsafeRawBufferPointer(rebasing: input[input.endIndex...])
            return nil
        } catch {
            fault = error
            line = []
            fields = []
            throw error
        }
    }

    private mutating func take(_ byte: UInt8) throws(HeadFault) -> MessageHead? {
        if sawCarriageReturn {
            guard byte == 0x0a else { throw .lineEnding }
            sawCarriageReturn = false
            defer { line.removeAll(keepingCapacity: true) }
            return try endLine()
        }
        switch byte {
        case 0x0d: sawCarriageReturn = true
        case 0x0a: throw .lineEnding
        case 0x00..<0x09, 0x0b..<0x20, 0x7f: throw .controlCharacter
        default: line.append(byte)
        }
        return nil
    }

    private mutating func endLine() throws(HeadFault) -> MessageHead? {
        guard let startLine else {
            guard !line.isEmpty, let text = String(validating: line, as: Unicode.ASCII.self) else { throw .startLine }
            startLine = text
            return nil
        }
        guard !line.isEmpty else { return MessageHead(startLine: startLine, fields: fields) }
        guard fields.count < RelayLimits.headFields else { throw .tooManyFields }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0,
            line[..<colon].allSatisfy(\.isTokenCharacter)
        else { throw .field }
        let value = String(decoding: line[(colon + 1)...], as: UTF8.self)
        fields.append(
            MessageHead.Field(
                name: String(decoding: line[..<colon], as: UTF8.self).lowercased(), value: String(value.trimmingSpace)))
        return nil
    }
}

extension StringProtocol {
    /// Without the spaces and tabs around it.
    var trimmingSpace: String {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        let start = drop(while: isSpace)
        return String(start.prefix(start.count - start.reversed().prefix(while: isSpace).count))
    }
}

extension UInt8 {
    /// RFC 9110 section 5.6.2.
    var isTokenCharacter: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(self)
        }
    }
}
