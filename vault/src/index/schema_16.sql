-- What the stewards ask of a human, newest first.
CREATE INDEX actions_that_ask ON actions (at)
    WHERE decision = 'needs_input' AND kind = 'steward-action' AND landing = 'recorded';

PRAGMA user_version = 16;
