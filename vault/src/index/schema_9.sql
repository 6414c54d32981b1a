-- How far undos let a source or a class go, as the audit records tell it: the subject, and its mode until a human
-- raises it. There were no such records before.
ALTER TABLE actions ADD COLUMN trust_subject TEXT;
ALTER TABLE actions ADD COLUMN trust_mode TEXT;
CREATE INDEX actions_of_trust ON actions (seq) WHERE trust_subject IS NOT NULL;
CREATE INDEX actions_to_compare ON actions (at) WHERE kind = 'steward-action' AND landing IN ('shadow', 'pending', 'live');

PRAGMA user_version = 9;
