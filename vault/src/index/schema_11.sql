-- What a matter's own note allows its steward, and what of that cannot be understood (both JSON, null where there is
-- none); and where a task was before it was moved. Matters and the records of moves are read anew for it.
ALTER TABLE matters ADD COLUMN policy TEXT;
ALTER TABLE matters ADD COLUMN policy_faults TEXT;
ALTER TABLE actions ADD COLUMN moved_from TEXT;
UPDATE files SET hash = NULL WHERE kind = 'matter' OR path IN (SELECT path FROM actions WHERE class = 'parent_matter');

PRAGMA user_version = 11;
