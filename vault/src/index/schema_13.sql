-- For pages: what is shown newest first has an index in that order, and what waits or may be undone a small one of its own.
-- That of all actions holds what they are counted and chosen by, so that no row is read for it.
DROP INDEX actions_by_time;
CREATE INDEX actions_by_time ON actions (at, path, kind, landing, class);
CREATE INDEX actions_by_seq ON actions (seq);
CREATE INDEX actions_that_wait ON actions (at) WHERE pending = 1;
CREATE INDEX actions_that_wait_by_target ON actions (target) WHERE pending = 1;
CREATE INDEX actions_that_live ON actions (at) WHERE landing = 'live';
-- The moment of the action.
ALTER TABLE action_sources ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sources_by_time ON action_sources (source, at, action);
DROP INDEX signals_by_status;
CREATE INDEX signals_by_status ON signals (status, created);
CREATE INDEX signals_by_source ON signals (instinct, created);
CREATE INDEX signals_by_time ON signals (created);

-- What is found by its words: names of matters and tasks, quotes and sources of signals, and of actions both with what
-- they are about. The texts themselves stand elsewhere. Numbers are never given again, so the highest ever tells whether
-- anything was written.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    -- Null of what has no moment.
    at INTEGER
);
CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
-- Read anew for the words, and the events for the moments.
UPDATE files SET hash = NULL WHERE kind IN ('matter', 'task', 'signal', 'event');

PRAGMA user_version = 13;
