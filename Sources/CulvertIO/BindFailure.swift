import CulvertCore
import Glibc

/// Why a socket could not be opened at an address.
enum BindFailure: Error {
    case noSuchFamily, noSuchAddress, inUse, notAllowed, exhausted, refused

    /// The meaning of a negated errno.
    init(_ result: Int32) {
        self =
            switch -result {
            case EAFNOSUPPORT, EPFNOSUPPORT: .noSuchFamily
            case EADDRNOTAVAIL: .noSuchAddress
            case EADDRINUSE: .inUse
            case EACCES, EPERM: .notAllowed
            case EMFILE, ENFILE, ENOMEM, ENOBUFS: .exhausted
            default: .refused
            }
    }

    var transportError: TransportError {
        switch self {
        case .noSuchFamily:
            TransportError(.localListener, "this machine has no addresses of that family; listen on another one")
        case .noSuchAddress:
            TransportError(.localListener, "the address to listen on is not one of this machine; choose another one")
        case .inUse:
            TransportError(.localListener, "the port is in use by another program; choose another one")
        case .notAllowed:
            TransportError(.localListener, "the port may not be opened by this user; choose one above 1023")
        case .exhausted:
            TransportError(.limit, "no more sockets can be opened; raise the limit on open files")
        case .refused:
            TransportError(.localListener, "the address to listen on was refused by the system; choose another one")
        }
    }
}
