-- What records say of the tracker: the issue that one owes something to, and the action whose outcome
-- one tells. No record of before says anything.
ALTER TABLE actions ADD COLUMN issue TEXT;
ALTER TABLE actions ADD COLUMN tracks_of TEXT;
CREATE INDEX actions_that_owe ON actions (seq) WHERE issue IS NOT NULL;
CREATE INDEX actions_by_tracked ON actions (tracks_of) WHERE tracks_of IS NOT NULL;

PRAGMA user_version = 6;
