import CSQLite
import CulvertCore

/// A value bound to a statement.
enum SQLiteValue {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])
}

/// The one owner of a database connection and of its prepared statements.
///
/// Confined to one thread, like everything that is not Sendable; the connection is opened without SQLite's own locks.
final class SQLiteDatabase {
    private let handle: OpaquePointer
    /// By the address of the statement's text, which is a literal and so has one address for the program's life.
    private var statements: [UnsafePointer<UInt8>: OpaquePointer] = [:]

    /// Opens the existing file at `path`. Throws `state`.
    init(path: String, waitMilliseconds: Int32) throws(TransportError) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &opened, flags, nil)
        guard code == SQLITE_OK, let opened else {
            sqlite3_close_v2(opened)  // on failure too there may be a handle, and nil is harmless
            throw Self.error(code)
        }
        handle = opened
        sqlite3_busy_timeout(handle, waitMilliseconds)
        if sqlite3_db_readonly(handle, "main") == 1 { throw Self.error(SQLITE_READONLY) }
    }

    deinit {
        for statement in statements.values { sqlite3_finalize(statement) }
        sqlite3_close_v2(handle)
    }

    /// Runs statements that are not worth keeping, one after another.
    func execute(_ sql: String) throws(TransportError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw Self.error(code) }
    }

    /// Runs a statement without rows; gives how many rows it changed.
    @discardableResult
    func run(_ sql: StaticString, _ values: [SQLiteValue] = []) throws(TransportError) -> Int {
        _ = try rows(sql, values) { _ in }
        return Int(sqlite3_changes(handle))
    }

    /// Runs a query and reads each row.
    func rows<Row>(
        _ sql: StaticString, _ values: [SQLiteValue] = [], read: (SQLiteRow) -> Row
    ) throws(TransportError) -> [Row] {
        let statement = try prepared(sql)
        // Resetting ends the read transaction that a half-stepped statement would hold open.
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in values.enumerated() {
            let code = Self.bind(value, to: statement, at: Int32(index + 1))
            guard code == SQLITE_OK else { throw Self.error(code) }
        }
        var rows: [Row] = []
        while true {
            let code = sqlite3_step(statement)
            switch code {
            case SQLITE_ROW: rows.append(read(SQLiteRow(statement: statement)))
            case SQLITE_DONE: return rows
            default: throw Self.error(code)
            }
        }
    }

    /// Runs `body` with the write lock held from the start, so that what it reads cannot change before it writes, in
    /// this process or another. Everything or nothing of it is kept.
    func transaction<Result>(_ body: () throws(TransportError) -> Result) throws(TransportError) -> Result {
        try run("BEGIN IMMEDIATE")
        do {
            let result = try body()
            try run("COMMIT")
            return result
        } catch {
            // Some failures (a full disk) have rolled back already.
            if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
            throw error
        }
    }

    private func prepared(_ sql: StaticString) throws(TransportError) -> OpaquePointer {
        if let statement = statements[sql.utf8Start] { return statement }
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(
            handle, sql.description, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement else { throw Self.error(code) }
        statements[sql.utf8Start] = statement
        return statement
    }

    private static func bind(_ value: SQLiteValue, to statement: OpaquePointer, at index: Int32) -> Int32 {
        // SQLITE_TRANSIENT, a macro that Swift cannot import: SQLite copies the bytes before the call returns.
        let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value {
        case .null: return sqlite3_bind_null(statement, index)
        case .integer(let number): return sqlite3_bind_int64(statement, index, number)
        case .text(var text):
            // By count, not up to a NUL: a name that only begins like another is another name.
            return text.withUTF8 { buffer in
                buffer.withMemoryRebound(to: CChar.self) {
                    sqlite3_bind_text(statement, index, $0.baseAddress, Int32($0.count), copied)
                }
            }
        case .blob(let bytes):
            return bytes.withUnsafeBytes { buffer in
                buffer.isEmpty
                    ? sqlite3_bind_zeroblob(statement, index, 0)
                    : sqlite3_bind_blob(statement, index, buffer.baseAddress, Int32(buffer.count), copied)
            }
        }
    }

    /// The error for a result code of SQLite, primary or extended.
    static func error(_ code: Int32) -> TransportError {
        switch code & 0xff {
        case SQLITE_FULL: TransportError(.state, "the disk is full; the host database was not changed")
        case SQLITE_READONLY: TransportError(.state, "the host database is read-only; check its permissions")
        case SQLITE_CORRUPT: TransportError(.state, "the host database is damaged; move it away and pair again")
        case SQLITE_NOTADB: TransportError(.state, "the host database is not a database; move it away and pair again")
        case SQLITE_BUSY, SQLITE_LOCKED: TransportError(.state, "another process is using the host database; try again")
        case SQLITE_CANTOPEN: TransportError(.state, "the host database cannot be opened; check its permissions")
        case SQLITE_PERM, SQLITE_AUTH: TransportError(.state, "access to the host database was denied")
        case SQLITE_NOMEM: TransportError(.state, "there is no memory for the host database")
        case SQLITE_CONSTRAINT: TransportError(.state, "the host database refused a value that breaks its rules")
        default: TransportError(.state, "the host database could not be read or written")
        }
    }
}

/// The current row of a query; valid only inside the closure that reads it.
struct SQLiteRow {
    fileprivate let statement: OpaquePointer

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

    func optionalInteger(_ column: Int32) -> Int64? {
        sqlite3_column_type(statement, column) == SQLITE_NULL ? nil : integer(column)
    }

    func text(_ column: Int32) -> String {
        guard let text = sqlite3_column_text(statement, column) else { return "" }
        let count = Int(sqlite3_column_bytes(statement, column))
        return String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
    }

    func optionalBlob(_ column: Int32) -> [UInt8]? {
        guard let bytes = sqlite3_column_blob(statement, column) else { return nil }
        return Array(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(statement, column))))
    }
}
