import CulvertCore

extension HostStore {
    /// Answers a pairing request that came through the tunnel from `nodeID`. `hash` is the hash that tokens are stored
    /// as, `newToken` makes a device token. Throws `state` when the answer could not be stored; the invite is then
    /// unused and ``PairingRefusal/hostState`` is the answer to give.
    package func pair(
        _ request: PairingRequest, nodeID: [UInt8], now: UnixTime, hash: (String) -> [UInt8], newToken: () -> String
    ) throws(TransportError) -> PairingDecision {
        let deviceToken = newToken()
        let redemption = try redeemInvite(
            tokenHash: hash(request.pairingToken), nodeID: nodeID, deviceName: request.deviceName,
            newTokenHash: hash(deviceToken), now: now)
        switch redemption {
        case .redeemed(let device):
            return .granted(PairingGrant(deviceToken: deviceToken, transports: device.transports))
        case .refused(let refusal):
            return .refused(refusal)
        }
    }
}
