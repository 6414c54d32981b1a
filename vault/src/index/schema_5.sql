-- What clerks answered about raw events, so that the same question is paid for once. Ours, like the
-- cursors, and worth no more than the calls it saves. Instants are microseconds since 1970.
CREATE TABLE answers (
    -- SHA-256 of provider, model and the exact prompt, in hex.
    key TEXT PRIMARY KEY,
    answer TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX answers_by_time ON answers (at);

PRAGMA user_version = 5;
