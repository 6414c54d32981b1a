-- What waits is told apart from what ever waited, so that lists and counts of it cost what waits and not what was ever
-- proposed. Whatever files an answer or takes one away keeps it true; rows go before they come anew.
ALTER TABLE actions ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;
UPDATE actions SET waits = 1 WHERE pending = 1 AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = actions.id);
CREATE TRIGGER action_waits AFTER INSERT ON actions WHEN new.pending = 1 BEGIN
    UPDATE actions SET waits = 1
    WHERE path = new.path AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = new.id);
END;
CREATE TRIGGER action_is_answered AFTER INSERT ON actions WHEN new.answers_of IS NOT NULL BEGIN
    UPDATE actions SET waits = 0 WHERE id = new.answers_of;
END;
CREATE TRIGGER action_waits_again AFTER DELETE ON actions WHEN old.answers_of IS NOT NULL BEGIN
    UPDATE actions SET waits = pending
    WHERE id = old.answers_of AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = old.answers_of);
END;
DROP INDEX actions_that_wait;
DROP INDEX actions_that_wait_by_target;
CREATE INDEX actions_that_wait ON actions (at) WHERE waits = 1;
CREATE INDEX actions_that_wait_by_target ON actions (target) WHERE waits = 1;
-- For the list of matters by state, and for what is wrong with a note.
CREATE INDEX matters_by_state ON matters (state);
CREATE INDEX matters_with_faults ON matters (path) WHERE policy_faults IS NOT NULL;
-- Words stand under numbers that go by kind and moment (`words.rs`), so that the newest are found first without sorting
-- any. All that is found by its words is read anew for it.
DROP TABLE words;
CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
UPDATE files SET hash = NULL WHERE kind IN ('matter', 'task', 'signal', 'event');

PRAGMA user_version = 15;
