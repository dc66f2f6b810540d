import CLinux
import CulvertCore

extension clinux_address {
    init(_ address: SocketAddress) {
        switch address.ip {
        case .v4(let bits): self.init(high: 0, low: UInt64(bits), port: address.port, family: 4)
        case .v6(let high, let low): self.init(high: high, low: low, port: address.port, family: 6)
        }
    }

    /// The value with family 0.
    static var none: clinux_address { clinux_address(high: 0, low: 0, port: 0, family: 0) }

    /// The address; nil for family 0.
    var socketAddress: SocketAddress? {
        switch family {
        case 4: SocketAddress(.v4(UInt32(truncatingIfNeeded: low)), port: port)
        case 6: SocketAddress(.v6(high, low), port: port)
        default: nil
        }
    }
}
