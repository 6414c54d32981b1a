-- A question to a human stays until it has ended. `asks` marks the newest question about a record while nobody has
-- answered it; whatever files an action or takes one away keeps it true.
ALTER TABLE actions ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;
-- What the target said after a change of ours, as a hash; null where nothing was changed.
ALTER TABLE actions ADD COLUMN content TEXT;
DROP INDEX actions_that_ask;
CREATE INDEX actions_that_ask ON actions (seq) WHERE asks = 1;
CREATE INDEX actions_that_ask_by_target ON actions (target) WHERE asks = 1;
CREATE INDEX questions_by_target ON actions (target, seq)
    WHERE decision = 'needs_input' AND kind = 'steward-action' AND landing = 'recorded';
CREATE TRIGGER question_is_asked AFTER INSERT ON actions
WHEN new.decision = 'needs_input' AND new.kind = 'steward-action' AND new.landing = 'recorded' BEGIN
    UPDATE actions SET asks = 0 WHERE target = new.target AND asks = 1;
    UPDATE actions SET asks = 1 WHERE path = (
        SELECT q.path FROM actions q INDEXED BY questions_by_target
        WHERE q.target = new.target AND q.decision = 'needs_input' AND q.kind = 'steward-action' AND q.landing = 'recorded'
        ORDER BY q.seq DESC LIMIT 1) AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = actions.id);
END;
CREATE TRIGGER question_is_answered AFTER INSERT ON actions WHEN new.answers_of IS NOT NULL BEGIN
    UPDATE actions SET asks = 0 WHERE id = new.answers_of AND asks = 1;
END;
CREATE TRIGGER question_is_asked_again AFTER DELETE ON actions
WHEN old.answers_of IS NOT NULL
    OR (old.decision = 'needs_input' AND old.kind = 'steward-action' AND old.landing = 'recorded') BEGIN
    UPDATE actions SET asks = 1 WHERE path = (
        SELECT q.path FROM actions q INDEXED BY questions_by_target
        WHERE q.target = old.target AND q.decision = 'needs_input' AND q.kind = 'steward-action' AND q.landing = 'recorded'
        ORDER BY q.seq DESC LIMIT 1) AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = actions.id);
END;
-- The events are read anew for both.
UPDATE files SET hash = NULL WHERE kind = 'event';

-- Our own state, kept by a rebuild: what each task and matter said when it was last read, as a hash; and what a record
-- about which a human is asked has come to say since, after the action of that number. Where this is lost a question
-- stays.
CREATE TABLE contents (
    path TEXT PRIMARY KEY,
    content TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE edits (
    path TEXT NOT NULL,
    content TEXT NOT NULL,
    after_seq INTEGER NOT NULL,
    PRIMARY KEY (path, content)
) WITHOUT ROWID;
UPDATE files SET hash = NULL WHERE kind IN ('matter', 'task');

-- What the router last made of a signal, in words, and the question on which it is listed. Their own files need not
-- say it.
ALTER TABLE routes ADD COLUMN reason TEXT;
ALTER TABLE routes ADD COLUMN question TEXT;
CREATE INDEX routes_by_question ON routes (question) WHERE question IS NOT NULL;
CREATE INDEX signals_skipped ON signals (reason) WHERE status = 'skipped';

PRAGMA user_version = 18;
