// What an embedder meets in this module's API: errors, times and addresses; node IDs and invites.
@_exported import CulvertCore
@_exported import CulvertIdentity
