import Glibc

/// How many files the process may have open. A login shell's usual soft limit of 1,024 is fewer than the sockets of
/// as many connections, and only programs that still use select(2) need it to be so low.
enum DescriptorLimit {
    /// Raises the soft limit to the hard one.
    static func raise() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
