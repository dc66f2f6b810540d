import CulvertCore
import CulvertIdentity

extension HostStore {
    /// Answers a pairing request that came through the tunnel from `node`, with `token` as the new device's token.
    /// Throws `state` when the answer could not be stored; the invite is then unused and
    /// ``PairingRefusal/hostState`` is the answer to give.
    package func pair(_ request: PairingRequest, node: NodeID, token: DeviceToken, now: UnixTime)
        throws(TransportError) -> PairingDecision
    {
        let redemption = try redeemInvite(
            tokenHash: TokenHash(ofText: request.pairingToken).bytes, nodeID: node.bytes,
            deviceName: request.deviceName, newTokenHash: token.hash.bytes, now: now)
        switch redemption {
        case .redeemed(let device):
            return .granted(PairingGrant(deviceToken: token.text, transports: device.transports))
        case .refused(let refusal):
            return .refused(refusal)
        }
    }
}
