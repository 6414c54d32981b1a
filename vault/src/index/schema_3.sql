-- What the router and the look at a matter itself need to know. The files are read anew for it.
DROP TABLE signals;
-- `target` is null where no one record could be told; `class` and `proposal` where nothing usable is proposed.
CREATE TABLE signals (
    path TEXT PRIMARY KEY,
    target TEXT,
    created INTEGER NOT NULL,
    source TEXT NOT NULL,
    instinct TEXT NOT NULL,
    note TEXT NOT NULL,
    effect TEXT NOT NULL,
    class TEXT,
    -- JSON, in the form of `mutation_proposal`.
    proposal TEXT,
    proposed_state TEXT,
    target_confidence REAL NOT NULL,
    effect_confidence REAL NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    applied INTEGER NOT NULL,
    source_event TEXT
) WITHOUT ROWID;
CREATE INDEX signals_that_count ON signals (target) WHERE applied = 0 AND effect <> 'none';
CREATE INDEX signals_by_status ON signals (status);
CREATE INDEX signals_by_target ON signals (target, created);

ALTER TABLE matters ADD COLUMN state_as_written TEXT;
ALTER TABLE matters ADD COLUMN hash TEXT NOT NULL DEFAULT '';

-- Whether a clerk judged it; what the router did has asked nobody.
ALTER TABLE actions ADD COLUMN class TEXT;
ALTER TABLE actions ADD COLUMN judged INTEGER NOT NULL DEFAULT 1;

UPDATE files SET hash = NULL WHERE kind IN ('matter', 'signal');

-- Our own state: which signals the router has met.
CREATE TABLE routes (
    signal TEXT PRIMARY KEY,
    -- Whether changes could happen then.
    acts INTEGER NOT NULL,
    -- The moment after which its action is named, the same for every try; null while there is none.
    at INTEGER,
    -- It is left alone until then, unless it says something new.
    retry_at INTEGER NOT NULL,
    met_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX routes_by_time ON routes (at);

PRAGMA user_version = 3;
