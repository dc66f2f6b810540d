import CulvertCore
import CulvertIO
import CulvertIdentity
import CulvertRelay

extension RelayConnection {
    // MARK: HTTP

    func takeRequest(_ rest: inout UnsafeMutableRawBufferPointer) {
        var input = UnsafeRawBufferPointer(rest)
        do throws(HeadFault) {
            let head = try reader?.next(&input)
            rest = UnsafeMutableRawBufferPointer(rebasing: rest[(rest.count - input.count)...])
            guard let head else { return }
            answer(try RelayRequest(head))
        } catch {
            server.metrics.refused(.malformed)
            reply(RelayAnswer.bytes(to: error))
            end(nil)
        }
    }

    private func answer(_ request: RelayRequest) {
        guard request.path != ClientUpgrade.path else { return upgrade(request) }
        server.metrics.requests += 1
        requests += 1
        let keepsAlive = request.keepsAlive && requests < RelayServerLimits.requestsPerConnection
        reply(RelayAnswer.bytes(to: request, keepsAlive: keepsAlive))
        guard keepsAlive else { return end(nil) }
        phaseDeadline = server.loop.now + RelayServerLimits.requestPause
        rearm()
    }

    private func upgrade(_ request: RelayRequest) {
        let upgrade: ServerUpgrade
        do throws(UpgradeFault) {
            upgrade = try ServerUpgrade.accept(request)
        } catch {
            server.metrics.refused(.malformed)
            reply(error.response)
            return end(nil)
        }
        token = request.accessToken?.hash
        guard server.access.admits(token) else {
            server.metrics.refused(.token)
            reply(RelayAnswer.unauthorized)
            return end(nil)
        }
        version = upgrade.version
        reader = nil
        reply(upgrade.response)
        phase = .handshake
        if let node = provedBefore(upgrade.proof) { establish(node) } else { challenge() }
    }

    /// The node whose key was proved by the TLS session itself, which saves the challenge's round trip.
    private func provedBefore(_ proof: RelayTLSProof?) -> NodeID? {
        guard let proof, let tls = stream as? TLSStream,
            let exported = tls.exportKeyingMaterial(
                label: RelayTLSProof.exporterLabel, context: RelayTLSProof.exporterContext(proof.nodeID),
                count: RelayLimits.exporter)
        else { return nil }
        return proof.verify(exported: exported) ? proof.nodeID : nil
    }

    // MARK: Handshake

    private func challenge() {
        var bytes = [UInt8](repeating: 0, count: RelayLimits.challenge)
        bytes.withUnsafeMutableBytes { SystemRandom.fill($0) }
        guard let challenge = RelayChallenge(bytes: bytes) else { return finish() }
        let handshake = RelayServerHandshake(challenge: challenge, version: version, at: server.loop.now)
        self.handshake = handshake
        send(handshake.greeting)
    }

    private func takeProof(_ message: UnsafeRawBufferPointer) throws(TransportError) {
        guard let step = try handshake?.receive(message) else { return }
        switch step {
        case .proved(let node): establish(node)
        case .denied(let denial): deny(denial, .proof)
        }
    }

    func establish(_ node: NodeID) {
        handshake = nil
        // The token again, as the rules may have changed since it was shown.
        guard server.access.admits(node), server.access.admits(token) else { return deny(.notAuthorized, .node) }
        nodeID = node
        let key = PeerKey(node)
        self.key = key
        phase = .established
        session = RelayServerSession(version: version, random: Self.random(), at: server.loop.now)
        send(RelayServerHandshake.confirmation)
        server.admit(self, as: key)
        rearm()
    }

    private func deny(_ denial: RelayDenial, _ reason: RelayServerMetrics.Refusal) {
        server.metrics.refused(reason)
        send(denial.frame)
        end(.policyViolation)
    }

    /// The rules have changed.
    func reconsider() {
        guard let nodeID, phase == .established, !(server.access.admits(nodeID) && server.access.admits(token)) else {
            return
        }
        server.metrics.refused(.node)
        end(.policyViolation)
    }

    /// The relay stops.
    func goAway() {
        if phase == .established {
            // A new relay process is there within a second; clients spread by themselves.
            send(RelayFrame.restarting(RelayRestart(reconnectIn: .zero, tryFor: .seconds(30))).encoded)
        }
        end(.goingAway)
    }

    // MARK: Messages

    func takeMessages(_ rest: inout UnsafeMutableRawBufferPointer) {
        do throws(WebSocketFault) {
            while phase == .established || phase == .handshake, let event = try decoder.next(&rest) {
                switch event {
                case .binary(let message): take(message)
                case .text: if phase == .handshake { breakOff(.unsupportedData) }
                case .ping(let payload): reply(WebSocketEncoder.pong(payload, mask: nil))
                case .pong: break
                case .close(let code): return end(code)
                }
            }
        } catch {
            breakOff(error.closeCode)
        }
    }

    @inline(__always)
    private func take(_ message: UnsafeRawBufferPointer) {
        do throws(TransportError) {
            guard phase == .established else { return try takeProof(message) }
            guard let event = try session?.receive(message, at: server.loop.now), let key else { return }
            switch event {
            case .forward(let view): server.forward(view, from: self, as: key)
            case .reply(let frame): send(frame)
            case .roundTrip, .nothing: break
            }
        } catch {
            breakOff(.protocolError)
        }
    }

    private func breakOff(_ code: WebSocketCloseCode) {
        server.metrics.refused(.protocolFault)
        end(code)
    }

    private func send(_ frame: [UInt8]) {
        reply(WebSocketEncoder.message(frame, mask: nil))
    }
}
