import Glibc

/// The one owner of a file descriptor, which it closes at the end of its life.
package struct FileDescriptor: ~Copyable {
    /// The descriptor.
    package let number: Int32

    /// Takes `number` over.
    package init(_ number: Int32) {
        self.number = number
    }

    deinit {
        _ = Glibc.close(number)
    }
}
