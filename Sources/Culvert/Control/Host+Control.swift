import CulvertCore

extension Host {
    /// Does what the owner asks over the control socket.
    func answer(_ request: ControlRequest) -> ControlResponse {
        do {
            switch request {
            case .devices: return .success(try devices())
            case .revoke(let id):
                try revoke(id)
                return .done
            case .rename(let id, let name):
                try rename(id, to: name)
                return .done
            case .makeInvite(let seconds): return .success(try makeInvite(validFor: seconds.map { .seconds($0) }))
            }
        } catch {
            return .failure(error)
        }
    }
}
