-- What each source contributed to a decision, as the audit records tell it. Those are read anew for it, and
-- the instincts and signals for the names by which trust goes.
CREATE TABLE action_sources (
    action TEXT NOT NULL,
    -- The name by which trust goes.
    source TEXT NOT NULL,
    name TEXT NOT NULL,
    contribution REAL NOT NULL,
    PRIMARY KEY (action, source)
) WITHOUT ROWID;
UPDATE files SET hash = NULL WHERE kind IN ('event', 'instinct', 'signal');

PRAGMA user_version = 8;
