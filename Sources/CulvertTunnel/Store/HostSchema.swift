import CSQLite
import CulvertCore
import Glibc

/// The shape of the host's database and how it came to be.
enum HostSchema {
    /// Marks the file as ours ("Culv"), so that another program's database is never migrated.
    static let applicationID: Int64 = 0x4375_6c76

    /// Step `n` takes the schema from version `n` to `n + 1`. A step that was released is never changed.
    private static let steps: [String] = [
        """
        CREATE TABLE devices (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            node_id BLOB CHECK (length(node_id) = 32),
            token_hash BLOB NOT NULL UNIQUE CHECK (length(token_hash) = 32),
            transports INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            last_seen_at INTEGER,
            revoked_at INTEGER
        ) STRICT;
        CREATE TABLE invites (
            token_hash BLOB PRIMARY KEY CHECK (length(token_hash) = 32),
            transports INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            used_at INTEGER,
            device_id TEXT REFERENCES devices (id)
        ) STRICT;
        CREATE INDEX invites_by_expiry ON invites (expires_at);
        """,
        // The relay that an invite names, and so every device that paired with it.
        """
        ALTER TABLE invites ADD COLUMN relay TEXT;
        ALTER TABLE devices ADD COLUMN relay TEXT;
        """,
    ]

    /// The version this program writes.
    static var currentVersion: Int64 { Int64(steps.count) }

    /// Makes sure that there is a database at `path` which only its owner can read.
    ///
    /// A new one is made under another name and then linked to its own, so that nobody ever sees it unfinished: SQLite
    /// cannot switch a database to WAL that another process has just found, and a crash leaves all of it or nothing.
    static func createFile(path: String) throws(TransportError) {
        var status = stat()
        if stat(path, &status) != 0 {
            guard errno == ENOENT else { throw creationError(errno) }
            try createNew(path: path)
            guard stat(path, &status) == 0 else { throw creationError(errno) }
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw TransportError(.state, "the host database is not a regular file; move it away")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw TransportError(.state, "others can read the host database; set its mode to 600")
        }
    }

    private static func createNew(path: String) throws(TransportError) {
        var template = Array("\(path).XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)  // mode 0600
        guard descriptor >= 0 else { throw creationError(errno) }
        // Closed before SQLite opens the file: closing it later would drop SQLite's locks, which are POSIX locks.
        close(descriptor)
        let temporary = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        defer { for suffix in ["", "-wal", "-shm", "-journal"] { unlink(temporary + suffix) } }
        try fill(path: temporary)
        guard link(temporary, path) == 0 || errno == EEXIST else { throw creationError(errno) }
    }

    /// Closing the last connection, on return, leaves one file without a log.
    private static func fill(path: String) throws(TransportError) {
        try prepare(SQLiteDatabase(path: path, waitMilliseconds: 0))
    }

    private static func creationError(_ code: Int32) -> TransportError {
        switch code {
        case ENOSPC, EDQUOT: SQLiteDatabase.error(SQLITE_FULL)
        case EROFS: TransportError(.state, "the state directory is read-only; check its permissions")
        default: TransportError(.state, "the host database cannot be created; check the state directory")
        }
    }

    /// Brings the database to the current version, or refuses it.
    static func prepare(_ database: SQLiteDatabase) throws(TransportError) {
        // Refused before anything is written, the switch to WAL included.
        try check(database)
        let faults = try database.rows("PRAGMA quick_check(1)") { $0.text(0) }
        guard faults == ["ok"] else { throw SQLiteDatabase.error(SQLITE_CORRUPT) }
        try database.execute("PRAGMA journal_mode = WAL")
        // FULL, not NORMAL: with NORMAL a power failure may undo the last transactions, and an undone revocation
        // or redemption is a credential that works again. The host writes a few times a day; it can wait.
        try database.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF")
        try database.execute("PRAGMA journal_size_limit = 1048576")
        guard try check(database) < currentVersion else { return }
        try database.transaction { () throws(TransportError) in
            // Another process may have been first.
            let version = try check(database)
            for step in Int(version)..<steps.count { try database.execute(steps[step]) }
            try database.execute("PRAGMA user_version = \(currentVersion); PRAGMA application_id = \(applicationID)")
        }
    }

    /// The version of the database, if this program can work with it.
    @discardableResult
    private static func check(_ database: SQLiteDatabase) throws(TransportError) -> Int64 {
        let version = try database.rows("PRAGMA user_version") { $0.integer(0) }.first ?? 0
        let application = try database.rows("PRAGMA application_id") { $0.integer(0) }.first ?? 0
        let tables = try database.rows("SELECT count(*) FROM sqlite_schema") { $0.integer(0) }.first ?? 0
        let isNew = version == 0 && application == 0 && tables == 0
        guard isNew || application == applicationID else {
            throw TransportError(.state, "the host database belongs to another program; move it away")
        }
        guard version <= currentVersion else {
            throw TransportError(.state, "the host database was written by a newer version; update this program")
        }
        return version
    }
}
