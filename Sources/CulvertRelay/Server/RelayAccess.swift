import CulvertIdentity

/// Whom an operator admits. A client must pass every rule that is set; without any, everyone is admitted.
package struct RelayAccess: Sendable {
    /// Only these nodes, when set.
    package var allowed: Set<NodeID>?
    /// Never these nodes.
    package var denied: Set<NodeID> = []
    /// Only those who show one of these tokens, when there are any.
    package var tokens: [TokenHash] = []

    /// Everyone is admitted.
    package init() {}

    /// Whether the token that a request shows is enough. The comparison takes the same time for each wrong token.
    package func admits(_ token: TokenHash?) -> Bool {
        guard !tokens.isEmpty else { return true }
        guard let token else { return false }
        return tokens.reduce(false) { $0 || ($1 == token) }
    }

    /// Whether the node is welcome.
    package func admits(_ node: NodeID) -> Bool {
        !denied.contains(node) && (allowed?.contains(node) ?? true)
    }
}
