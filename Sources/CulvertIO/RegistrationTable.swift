/// The handlers of a loop in reusable slots.
///
/// Each use of a slot has its own generation, so that an event for a descriptor that was deregistered in the same
/// batch finds nobody instead of the slot's next user.
struct RegistrationTable {
    private struct Slot {
        var handler: (any ReadinessHandler)?
        var generation: UInt32 = 0
        var descriptor: Int32 = -1
        var mode = TriggerMode.level
    }

    private var slots: [Slot] = []
    private var free: [Int] = []

    /// How many registrations there are.
    var count: Int { slots.count - free.count }

    mutating func add(_ descriptor: Int32, mode: TriggerMode, handler: any ReadinessHandler) -> Registration {
        let index: Int
        if let reused = free.popLast() {
            index = reused
        } else {
            index = slots.count
            slots.append(Slot())
        }
        slots[index].handler = handler
        slots[index].descriptor = descriptor
        slots[index].mode = mode
        return Registration(key: UInt64(slots[index].generation) << 32 | UInt64(index))
    }

    /// Forgets the registration; its descriptor, or nil when it was gone already.
    mutating func remove(_ registration: Registration) -> Int32? {
        guard let index = index(of: registration.key) else { return nil }
        let descriptor = slots[index].descriptor
        slots[index].generation &+= 1
        slots[index].handler = nil
        slots[index].descriptor = -1
        free.append(index)
        return descriptor
    }

    func handler(_ key: UInt64) -> (any ReadinessHandler)? {
        guard let index = index(of: key) else { return nil }
        return slots[index].handler
    }

    func descriptor(_ registration: Registration) -> (number: Int32, mode: TriggerMode)? {
        guard let index = index(of: registration.key) else { return nil }
        return (slots[index].descriptor, slots[index].mode)
    }

    /// Takes all handlers out, for the end of the loop.
    mutating func removeAll() -> [any ReadinessHandler] {
        var handlers: [any ReadinessHandler] = []
        for index in slots.indices {
            guard let handler = slots[index].handler else { continue }
            handlers.append(handler)
            slots[index].handler = nil
            slots[index].generation &+= 1
            slots[index].descriptor = -1
            free.append(index)
        }
        return handlers
    }

    private func index(of key: UInt64) -> Int? {
        let index = Int(truncatingIfNeeded: key & 0xffff_ffff)
        guard index < slots.count, slots[index].generation == UInt32(truncatingIfNeeded: key >> 32),
            slots[index].handler != nil
        else { return nil }
        return index
    }
}
