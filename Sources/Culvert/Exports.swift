// What an embedder meets in this module's API: errors, times and addresses; node IDs and invites.
@_exported import CulvertCore
@_exported import CulvertIdentity
import FoundationEssentials

extension TransportError: CustomStringConvertible, LocalizedError {
    /// The reason, for people.
    public var description: String { reason }
    /// The reason, for people.
    public var errorDescription: String? { reason }
}
