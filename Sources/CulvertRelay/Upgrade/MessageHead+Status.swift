extension MessageHead {
    /// The version and the status code of a response (RFC 9112 section 4); nil when the first line is none of HTTP/1.
    var status: (version: Substring, code: Int)? {
        let parts = startLine.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "HTTP/1.1" || parts[0] == "HTTP/1.0", parts[1].utf8.count == 3,
            parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let code = Int(parts[1])
        else { return nil }
        return (parts[0], code)
    }
}
