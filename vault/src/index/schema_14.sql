-- Whether a confirmation let something else happen than was proposed, and which answers were given together, which are
-- one row and one lesson. Records of before have no such answers.
ALTER TABLE actions ADD COLUMN edited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE actions ADD COLUMN together TEXT;
CREATE INDEX actions_together ON actions (together) WHERE together IS NOT NULL;

PRAGMA user_version = 14;
