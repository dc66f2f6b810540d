import CSodium

/// Bytes that are overwritten when the last reference goes, and that no description, mirror or dump shows.
///
/// `@unchecked Sendable` holds because the storage is written in `init`, before the reference can be shared, and in
/// `deinit`, when no other reference is left; in between it is only read.
final class SecretBytes: @unchecked Sendable {
    private let storage: UnsafeMutablePointer<UInt8>
    private let count: Int

    /// Copies `bytes`. What the caller holds is the caller's to forget.
    convenience init(_ bytes: some Collection<UInt8>) {
        self.init(count: bytes.count) { room in
            _ = UnsafeMutableBufferPointer(start: room, count: bytes.count).update(fromContentsOf: bytes)
        }
    }

    /// Room for `count` zero bytes that `body` fills in place, so that no copy is left anywhere.
    init(count: Int, filledBy body: (UnsafeMutablePointer<UInt8>) -> Void) {
        self.count = count
        storage = .allocate(capacity: count)
        storage.initialize(repeating: 0, count: count)
        body(storage)
    }

    deinit {
        sodium_memzero(storage, count)
        storage.deallocate()
    }

    /// Lends the bytes for the time of the call; the pointer must not leave it.
    func withPointer<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
        // Without it the optimiser may drop the last reference after the pointer was read and before it is used.
        withExtendedLifetime(self) { body(storage) }
    }

    /// Lends the bytes for the time of the call; the buffer must not leave it.
    func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        withPointer { body(UnsafeBufferPointer(start: $0, count: count)) }
    }

    /// Compares in a time that depends on the lengths only.
    func isEqual(to other: SecretBytes) -> Bool {
        withPointer { mine in
            other.withPointer { theirs in count == other.count && sodium_memcmp(mine, theirs, count) == 0 }
        }
    }
}

/// A value whose text must not reach a log by accident: it prints as `<redacted>` and has no children to reflect.
protocol Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension Redacted {
    /// The type's name and nothing of the value.
    public var description: String { "\(Self.self)(<redacted>)" }
    /// The type's name and nothing of the value.
    public var debugDescription: String { description }
    /// No children, so that `dump` shows nothing either.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
