-- One act is one case, and who spoke for it is told from what was cited: a hash of what is proposed, beside the record
-- and beside each of its sources, and whether a source spoke for it. A source that only spoke has no contribution. The
-- records are read anew for it.
ALTER TABLE actions ADD COLUMN proposal TEXT;
CREATE INDEX actions_by_proposal ON actions (proposal, seq) WHERE proposal IS NOT NULL;
DROP TABLE action_sources;
CREATE TABLE action_sources (
    action TEXT NOT NULL,
    -- The name by which trust goes.
    source TEXT NOT NULL,
    name TEXT NOT NULL,
    contribution REAL,
    cited INTEGER NOT NULL,
    speaks INTEGER NOT NULL,
    -- As the record has them.
    proposal TEXT,
    seq INTEGER NOT NULL,
    PRIMARY KEY (action, source)
) WITHOUT ROWID;
CREATE INDEX sources_by_proposal ON action_sources (source, proposal, seq) WHERE speaks = 1;
-- What was confirmed may be written back as well.
DROP INDEX actions_to_compare;
CREATE INDEX actions_to_compare ON actions (at) WHERE kind IN ('steward-action', 'steward-action-confirmed')
    AND landing IN ('shadow', 'pending', 'live');
-- The hash of the record before, and whether it lies under another name than it was filed under: so much of the chain can
-- be told without reading a million files.
ALTER TABLE actions ADD COLUMN prev TEXT;
ALTER TABLE actions ADD COLUMN misnamed INTEGER NOT NULL DEFAULT 0;
UPDATE files SET hash = NULL WHERE kind = 'event';

PRAGMA user_version = 12;
