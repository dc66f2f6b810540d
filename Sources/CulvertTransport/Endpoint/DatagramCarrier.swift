import CulvertCore

/// Carries the datagrams of relayed paths, whose addresses (``RelayedAddress``) no socket reaches. Confined to the loop
/// of the endpoint that it serves, which it gives arrivals by ``EndpointDriver/receive(_:from:to:ecn:)``.
package protocol DatagramCarrier: AnyObject {
    /// Whether the way to `remote` takes datagrams now. Connections wait while it does not, until
    /// ``QUICEndpoint/resumeHeld()``.
    func hasRoom(toward remote: SocketAddress) -> Bool

    /// Takes datagrams of `segment` bytes each, of which the last may be shorter, and drops what it has no room for.
    func carry(_ datagrams: UnsafeRawBufferPointer, segment: Int, to remote: SocketAddress, ecn: UInt8)
}
