-- Derived from the files: refilled from them at any time.
CREATE TABLE files (
    path TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    hash TEXT,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    problem TEXT
) WITHOUT ROWID;
CREATE INDEX files_by_kind ON files (kind);
CREATE INDEX files_with_problems ON files (path) WHERE problem IS NOT NULL;

CREATE TABLE matters (
    path TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    ceiling TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE tasks (
    path TEXT PRIMARY KEY,
    parent TEXT NOT NULL,
    id TEXT,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    state_as_written TEXT,
    surface_class TEXT NOT NULL,
    due INTEGER,
    snoozed_until INTEGER,
    next_check_after INTEGER,
    hash TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX tasks_by_parent ON tasks (parent);
CREATE INDEX tasks_by_id ON tasks (id) WHERE id IS NOT NULL;

CREATE TABLE signals (
    path TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    created INTEGER NOT NULL,
    source TEXT NOT NULL,
    instinct TEXT NOT NULL,
    note TEXT NOT NULL,
    effect TEXT NOT NULL,
    proposed_state TEXT,
    target_confidence REAL NOT NULL,
    effect_confidence REAL NOT NULL,
    applied INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX signals_that_count ON signals (target) WHERE applied = 0 AND effect <> 'none';

-- `ceiling`: 0 ask, 1 confirm, 2 act, null where no human set one.
CREATE TABLE instincts (
    path TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    observations INTEGER NOT NULL,
    ceiling INTEGER
) WITHOUT ROWID;
CREATE INDEX instincts_by_source ON instincts (source);

CREATE TABLE actions (
    path TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    at INTEGER NOT NULL,
    decision TEXT NOT NULL,
    confidence REAL NOT NULL,
    landing TEXT NOT NULL,
    mode TEXT NOT NULL,
    pending INTEGER NOT NULL,
    answers_of TEXT,
    proposed_state TEXT,
    seq INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX actions_by_id ON actions (id);
CREATE INDEX actions_by_time ON actions (at);
CREATE INDEX actions_by_target ON actions (target, at);
CREATE INDEX actions_by_answer ON actions (answers_of) WHERE answers_of IS NOT NULL;

CREATE TABLE action_evidence (
    ref TEXT NOT NULL,
    action TEXT NOT NULL,
    PRIMARY KEY (ref, action)
) WITHOUT ROWID;
CREATE INDEX evidence_by_action ON action_evidence (action);

-- Our own state: not in the files, kept by a rebuild. Instants are microseconds since 1970.
CREATE TABLE task_checks (
    task TEXT PRIMARY KEY,
    last_check_at INTEGER NOT NULL,
    next_check_after INTEGER,
    outcome TEXT NOT NULL,
    streak INTEGER NOT NULL,
    look_id TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE matter_ticks (
    matter TEXT PRIMARY KEY,
    streak INTEGER NOT NULL,
    look_id TEXT NOT NULL,
    observed_at INTEGER NOT NULL,
    observation TEXT NOT NULL
);
CREATE INDEX ticks_by_time ON matter_ticks (observed_at);

-- Tasks that a run is judging.
CREATE TABLE leases (
    task TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE first_seen (
    signal TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE looks (
    day TEXT NOT NULL,
    reason TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (day, reason)
) WITHOUT ROWID;

-- Which looks `looks` has counted one by one, so that a repeated activity counts once.
CREATE TABLE look_marks (
    id TEXT PRIMARY KEY,
    day TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

PRAGMA user_version = 1;
