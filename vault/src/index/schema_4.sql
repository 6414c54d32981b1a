-- Derived from the files under `stream/`. `source` is the folder, which nothing in the file can contradict.
CREATE TABLE stream_events (
    path TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    pattern TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    tries INTEGER NOT NULL,
    reason TEXT,
    hash TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX stream_events_that_wait ON stream_events (source, pattern, received_at) WHERE status = 'new';
CREATE INDEX stream_events_by_status ON stream_events (status, received_at);

-- Our own state: where each stream stands. Instants are microseconds since 1970.
CREATE TABLE stream_cursors (
    stream TEXT PRIMARY KEY,
    -- What only the adapter understands; null before the first round.
    cursor TEXT,
    paused INTEGER NOT NULL DEFAULT 0,
    ran_at INTEGER,
    -- Of the last round; null when it went well.
    error TEXT,
    failures INTEGER NOT NULL DEFAULT 0,
    -- What could not be taken in, ever.
    refused INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- What was taken in, so that an event that was purged is not taken in again.
CREATE TABLE stream_seen (
    stream TEXT NOT NULL,
    key TEXT NOT NULL,
    -- When it was last met.
    at INTEGER NOT NULL,
    PRIMARY KEY (stream, key)
) WITHOUT ROWID;
CREATE INDEX stream_seen_by_time ON stream_seen (at);

PRAGMA user_version = 4;
