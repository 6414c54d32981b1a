-- What was written into the frontmatter of tasks (only where the operator asked for it), to tell our
-- own dates from a human's. Like the cursors not in the files, and kept by a rebuild.
CREATE TABLE stamps (
    task TEXT PRIMARY KEY,
    -- The cursor that the file says or cannot say; null before the first.
    checked_at INTEGER,
    -- The last `next_check_after` that we set out to write, and the one that may still stand there
    -- where that did not come to be.
    written INTEGER,
    before INTEGER,
    retry_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Matters that a signal woke and whose schedule has not been triggered yet.
CREATE TABLE wakes (
    matter TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;

PRAGMA user_version = 2;
