import Glibc

/// Owns a file descriptor and closes it when it goes away.
package struct FileDescriptor: ~Copyable {
    /// The number for system calls; -1 once closed. It must not outlive the owner.
    package private(set) var number: Int32

    /// Takes over `number`.
    package init(owning number: Int32) {
        self.number = number
    }

    /// Whether the descriptor is still open.
    package var isOpen: Bool { number >= 0 }

    /// Closes now; a second call does nothing.
    package mutating func close() {
        guard isOpen else { return }
        // Linux frees the number even when close reports an error, so there is nothing to repeat.
        _ = Glibc.close(number)
        number = -1
    }

    deinit {
        if number >= 0 { _ = Glibc.close(number) }
    }
}
