import CulvertCore
import CulvertIdentity

/// Which proxy leads to a relay, by the variables that curl reads too: `https_proxy` or `HTTPS_PROXY` for relays with
/// `https://`, and `no_proxy` or `NO_PROXY` for the exceptions. The lower-case name is looked at first; an empty value
/// is none.
package struct ProxySettings: Sendable {
    private enum Setting {
        case proxy(HTTPProxy)
        case malformed(TransportError)
    }

    /// The variables that matter.
    package static let variables = ["https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"]

    private let setting: Setting?
    private let exceptions: ProxyExceptions

    /// The settings in a process's environment.
    package init(environment: [String: String]) {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        exceptions = ProxyExceptions(value("no_proxy") ?? value("NO_PROXY") ?? "")
        if let text = value("https_proxy") {
            setting = HTTPProxy(text).map(Setting.proxy) ?? .malformed(Self.malformedLowerCase)
        } else if let text = value("HTTPS_PROXY") {
            setting = HTTPProxy(text).map(Setting.proxy) ?? .malformed(Self.malformedUpperCase)
        } else {
            setting = nil
        }
    }

    /// The proxy through which `relay` is reached; nil when there is none, and for relays with `http://`.
    ///
    /// - Throws: `state` when a proxy is needed and its URL is not one of an HTTP proxy. It names the variable, and
    ///   nothing of its value.
    package func proxy(for relay: RelayURL) throws(TransportError) -> HTTPProxy? {
        guard relay.isSecure, let setting, !exceptions.contain(host: relay.host, port: relay.port) else { return nil }
        switch setting {
        case .proxy(let proxy): return proxy
        case .malformed(let error): throw error
        }
    }

    private static let malformedLowerCase = TransportError(
        .state,
        """
        the variable https_proxy is not understood; it must be http://[USER:PASSWORD@]HOST[:PORT], or name the relay's \
        host in no_proxy
        """)
    private static let malformedUpperCase = TransportError(
        .state,
        """
        the variable HTTPS_PROXY is not understood; it must be http://[USER:PASSWORD@]HOST[:PORT], or name the relay's \
        host in NO_PROXY
        """)
}
