-- What the report and the backtest hold against other settings, as the audit records tell it: which gates stood
-- closed (their words), the matter that a task was to move to, and which sources were cited. The records are read
-- anew for it.
ALTER TABLE actions ADD COLUMN closed TEXT NOT NULL DEFAULT '';
ALTER TABLE actions ADD COLUMN moves_to TEXT;
-- What is changed: a field, and of a set the member.
ALTER TABLE actions ADD COLUMN changes TEXT;
ALTER TABLE action_sources ADD COLUMN cited INTEGER NOT NULL DEFAULT 0;
-- What became of a proposal is then told from this index alone.
DROP INDEX actions_by_answer;
CREATE INDEX actions_by_answer ON actions (answers_of, kind, at, id) WHERE answers_of IS NOT NULL;
UPDATE files SET hash = NULL WHERE kind = 'event';

PRAGMA user_version = 10;
