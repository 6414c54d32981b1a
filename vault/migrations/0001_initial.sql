-- The tables of `state.db`. Instants are microseconds since 1970.
--
-- The first tables are derived from the files and can be refilled from them at any time.
CREATE TABLE files (
    path TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    -- Null: the file must be read again.
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
    state_as_written TEXT,
    ceiling TEXT NOT NULL,
    -- The policy in the matter's own note, and its invalid parts: JSON, null if there are none.
    policy TEXT,
    policy_faults TEXT,
    hash TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX matters_by_state ON matters (state);
CREATE INDEX matters_with_faults ON matters (path) WHERE policy_faults IS NOT NULL;

CREATE TABLE tasks (
    path TEXT PRIMARY KEY,
    -- The matter that the task's link names. If it names none, or several: the path that the link spells.
    parent TEXT NOT NULL,
    -- The link, and the name by which it finds a note.
    parent_link TEXT NOT NULL,
    parent_key TEXT NOT NULL,
    -- Why the link names no single note; null if it names one, or if there is none of that name.
    parent_fault TEXT,
    id TEXT,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    state_as_written TEXT,
    surface_class TEXT NOT NULL,
    due INTEGER,
    snoozed_until INTEGER,
    next_check_after INTEGER,
    -- How far a steward may go with this task, whatever its matter allows.
    ceiling TEXT NOT NULL DEFAULT 'act',
    -- Whether it has a due date that cannot be read.
    has_unreadable_due INTEGER NOT NULL DEFAULT 0,
    hash TEXT NOT NULL
) WITHOUT ROWID;
-- The other matters that a task belongs to. Their policies hold too.
CREATE TABLE further_parents (
    task TEXT NOT NULL,
    -- From 1, in the order of the note.
    position INTEGER NOT NULL,
    link TEXT NOT NULL,
    link_key TEXT NOT NULL,
    -- As in `tasks`.
    parent TEXT NOT NULL,
    fault TEXT,
    PRIMARY KEY (task, position)
) WITHOUT ROWID;
CREATE INDEX further_parents_with_fault ON further_parents (task) WHERE fault IS NOT NULL;
CREATE INDEX further_parents_by_key ON further_parents (link_key);
CREATE INDEX further_parents_by_parent ON further_parents (parent);
CREATE TRIGGER further_parents_go AFTER DELETE ON tasks BEGIN
    DELETE FROM further_parents WHERE task = OLD.path;
END;
CREATE INDEX tasks_by_parent ON tasks (parent);
CREATE INDEX tasks_by_parent_key ON tasks (parent_key);
CREATE INDEX tasks_with_fault ON tasks (path) WHERE parent_fault IS NOT NULL;
CREATE INDEX tasks_by_id ON tasks (id) WHERE id IS NOT NULL;

-- In a vault with a mapping: the notes that are neither matters nor tasks. Links may name them, and a scan need not
-- read them again while they stay as they are.
CREATE TABLE other_notes (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    -- Why a note that would be a matter or a task is left out, as JSON; null if it would be neither.
    exclusion TEXT
) WITHOUT ROWID;
CREATE INDEX notes_left_out ON other_notes (path) WHERE exclusion IS NOT NULL;

CREATE TABLE signals (
    path TEXT PRIMARY KEY,
    -- Null if no single record could be found.
    target TEXT,
    created INTEGER NOT NULL,
    source TEXT NOT NULL,
    instinct TEXT NOT NULL,
    note TEXT NOT NULL,
    effect TEXT NOT NULL,
    -- Null if nothing usable is proposed. `proposal` is JSON, in the form of `mutation_proposal`.
    class TEXT,
    proposal TEXT,
    proposed_state TEXT,
    -- The field that it would change and, in a set, the member.
    changes TEXT,
    target_confidence REAL NOT NULL,
    effect_confidence REAL NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    applied INTEGER NOT NULL,
    source_event TEXT
) WITHOUT ROWID;
CREATE INDEX signals_that_count ON signals (target) WHERE applied = 0 AND effect <> 'none';
CREATE INDEX signals_by_status ON signals (status, created);
CREATE INDEX signals_by_target ON signals (target, created);
CREATE INDEX signals_by_source ON signals (instinct, created);
CREATE INDEX signals_by_time ON signals (created);
CREATE INDEX signals_skipped ON signals (reason) WHERE status = 'skipped';
-- The signals that the router handles: those without an action, those that were ambiguous until a person named their
-- target, and those that are withheld while a question is open.
CREATE VIEW signals_to_route AS SELECT path, source FROM signals
    WHERE status = 'unrouted'
        OR (status = 'skipped' AND target IS NOT NULL AND (reason LIKE 'ambiguous%' OR reason LIKE 'withheld:%'));

CREATE TABLE instincts (
    path TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    observations INTEGER NOT NULL,
    -- 0 ask, 1 confirm, 2 act; null if no person set one.
    ceiling INTEGER,
    -- The confidence from which the average starts, if a person wrote one.
    start REAL
) WITHOUT ROWID;
CREATE INDEX instincts_by_source ON instincts (source);

-- Derived from the files under `stream/`. `source` is the name of the folder; a file cannot claim another one.
CREATE TABLE stream_events (
    path TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    pattern TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    tries INTEGER NOT NULL,
    reason TEXT,
    hash TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX stream_events_that_wait ON stream_events (source, pattern, received_at) WHERE status = 'new';
CREATE INDEX stream_events_by_status ON stream_events (status, received_at);

-- The audit records.
CREATE TABLE actions (
    path TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    at INTEGER NOT NULL,
    decision TEXT NOT NULL,
    confidence REAL NOT NULL,
    disposition TEXT NOT NULL,
    mode TEXT NOT NULL,
    pending INTEGER NOT NULL,
    -- The action that this record answers or reports on.
    follows TEXT,
    -- The same, if it ends that action. It is null once the answer was taken back, and where a person only says that a
    -- proposal is right.
    resolves TEXT,
    -- Whether a person has taken this answer back. Set by the triggers below.
    taken_back INTEGER NOT NULL DEFAULT 0,
    -- The proposal: its class and state, the field (and the member of a set) that it changes, the matters to which and
    -- from which a task moves, and a hash of all of it.
    class TEXT,
    proposed_state TEXT,
    changes TEXT,
    moves_to TEXT,
    moved_from TEXT,
    proposal TEXT,
    -- Whether a clerk judged it. The router asks no clerk.
    judged INTEGER NOT NULL,
    -- The names of the closed gates.
    closed TEXT NOT NULL DEFAULT '',
    -- The tracker's issue to which it owes a change, and the action whose delivery it reports.
    issue TEXT,
    tracks_of TEXT,
    -- A demotion or a restoration: its subject, and the subject's mode from then on.
    trust_subject TEXT,
    trust_mode TEXT,
    -- A hash of the target after our change; null if nothing was changed.
    content TEXT,
    -- The hash of the record before, and whether the record was renamed after it was filed. With these the index can
    -- check this part of the chain without reading a million files.
    prev TEXT,
    misnamed INTEGER NOT NULL DEFAULT 0,
    -- Whether a confirmation changed the proposal, and the batch in which it was given.
    edited INTEGER NOT NULL DEFAULT 0,
    batch_id TEXT,
    -- Whether a model resolved the action: trust learns nothing from it.
    by_agent INTEGER NOT NULL DEFAULT 0,
    -- Whether a person who says that a proposal is right has made the change.
    settles INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL,
    -- Set by the triggers below. `waits`: the proposal has no resolution. `asks`: this is the newest open question
    -- about its target.
    waits INTEGER NOT NULL DEFAULT 0,
    asks INTEGER NOT NULL DEFAULT 0,
    -- Whether it is a proposal under another mapping than the one in force, so it does not wait and claims no signal.
    ended INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX actions_by_id ON actions (id);
CREATE INDEX actions_by_seq ON actions (seq);
-- It holds the columns by which actions are counted and filtered, so that no row is read for that.
CREATE INDEX actions_by_time ON actions (at, path, kind, disposition, class);
CREATE INDEX actions_by_target ON actions (target, at);
CREATE INDEX actions_by_answer ON actions (resolves, kind, at, id) WHERE resolves IS NOT NULL;
CREATE INDEX actions_by_followed ON actions (follows, kind, seq) WHERE follows IS NOT NULL;
CREATE INDEX actions_that_say_right ON actions (follows) WHERE kind = 'steward-action-right';
CREATE INDEX actions_by_proposal ON actions (proposal, seq) WHERE proposal IS NOT NULL;
CREATE INDEX actions_batch ON actions (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX actions_that_wait ON actions (at) WHERE waits = 1;
CREATE INDEX actions_that_wait_by_target ON actions (target) WHERE waits = 1;
CREATE INDEX actions_that_live ON actions (at) WHERE disposition = 'live';
CREATE INDEX actions_that_owe ON actions (seq) WHERE issue IS NOT NULL;
CREATE INDEX actions_by_tracked ON actions (tracks_of) WHERE tracks_of IS NOT NULL;
CREATE INDEX actions_of_moves ON actions (seq) WHERE kind = 'steward-notes-moved';
CREATE INDEX actions_of_trust ON actions (seq) WHERE trust_subject IS NOT NULL;
CREATE INDEX actions_to_compare ON actions (at) WHERE kind IN ('steward-action', 'steward-action-confirmed')
    AND disposition IN ('shadow', 'pending', 'live');
CREATE INDEX actions_that_ask ON actions (seq) WHERE asks = 1;
CREATE INDEX actions_that_ask_by_target ON actions (target) WHERE asks = 1;
CREATE INDEX questions_by_target ON actions (target, seq)
    WHERE decision = 'needs_input' AND kind = 'steward-action' AND disposition = 'recorded';

-- An answer that was taken back resolves nothing. The records may be read in any order.
CREATE TRIGGER answer_is_taken_back AFTER INSERT ON actions WHEN new.kind = 'steward-action-reopened' BEGIN
    UPDATE actions SET taken_back = 1, resolves = NULL WHERE id = new.follows
        AND kind IN ('steward-action-dismissed', 'steward-action-right', 'steward-action-wrong');
END;
CREATE TRIGGER answer_was_taken_back AFTER INSERT ON actions
WHEN new.kind IN ('steward-action-dismissed', 'steward-action-right', 'steward-action-wrong') BEGIN
    UPDATE actions SET taken_back = 1, resolves = NULL WHERE path = new.path
        AND EXISTS (SELECT 1 FROM actions r WHERE r.follows = new.id AND r.kind = 'steward-action-reopened');
END;
CREATE TRIGGER answer_stands_again AFTER DELETE ON actions WHEN old.kind = 'steward-action-reopened' BEGIN
    UPDATE actions SET taken_back = 0, resolves = CASE WHEN kind <> 'steward-action-right' OR settles THEN follows END
    WHERE id = old.follows AND NOT EXISTS (
        SELECT 1 FROM actions r WHERE r.follows = old.follows AND r.kind = 'steward-action-reopened');
END;

-- Proposals that wait for a person. An answer to a proposal also answers the equal ones before it.
CREATE VIEW unanswered_proposals AS SELECT a.path FROM actions a
    WHERE a.pending = 1 AND a.ended = 0
        AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = a.id)
        AND NOT EXISTS (SELECT 1 FROM actions c INDEXED BY actions_by_proposal CROSS JOIN actions b ON b.resolves = c.id
            WHERE c.proposal = a.proposal AND b.seq > a.seq);

-- They are marked, so that the cost of listing and counting them depends on the open ones alone.
CREATE TRIGGER action_waits AFTER INSERT ON actions WHEN new.pending = 1 OR new.proposal IS NOT NULL BEGIN
    UPDATE actions SET waits = EXISTS (SELECT 1 FROM unanswered_proposals u WHERE u.path = actions.path)
    WHERE pending = 1 AND (path = new.path OR proposal = new.proposal);
END;
CREATE TRIGGER equal_action_is_gone AFTER DELETE ON actions WHEN old.proposal IS NOT NULL BEGIN
    UPDATE actions SET waits = EXISTS (SELECT 1 FROM unanswered_proposals u WHERE u.path = actions.path)
    WHERE pending = 1 AND proposal = old.proposal;
END;
CREATE TRIGGER action_is_answered AFTER INSERT ON actions WHEN new.resolves IS NOT NULL BEGIN
    UPDATE actions SET waits = EXISTS (SELECT 1 FROM unanswered_proposals u WHERE u.path = actions.path)
    WHERE pending = 1 AND (id = new.resolves
        OR proposal = (SELECT a.proposal FROM actions a WHERE a.id = new.resolves AND a.proposal IS NOT NULL));
END;
CREATE TRIGGER action_waits_again AFTER DELETE ON actions WHEN old.resolves IS NOT NULL BEGIN
    UPDATE actions SET waits = EXISTS (SELECT 1 FROM unanswered_proposals u WHERE u.path = actions.path)
    WHERE pending = 1 AND (id = old.resolves
        OR proposal = (SELECT a.proposal FROM actions a WHERE a.id = old.resolves AND a.proposal IS NOT NULL));
END;
CREATE TRIGGER action_is_answered_otherwise AFTER UPDATE OF resolves ON actions BEGIN
    UPDATE actions SET waits = EXISTS (SELECT 1 FROM unanswered_proposals u WHERE u.path = actions.path)
    WHERE pending = 1 AND (id = new.follows
        OR proposal = (SELECT a.proposal FROM actions a WHERE a.id = new.follows AND a.proposal IS NOT NULL));
END;

-- A question to a person stays open until it ends. Only the newest one about a record is open.
CREATE VIEW unanswered_questions AS SELECT p.path FROM actions p
    WHERE p.decision = 'needs_input' AND p.kind = 'steward-action' AND p.disposition = 'recorded'
        AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = p.id)
        AND NOT EXISTS (SELECT 1 FROM actions q INDEXED BY questions_by_target WHERE q.target = p.target
            AND q.decision = 'needs_input' AND q.kind = 'steward-action' AND q.disposition = 'recorded' AND q.seq > p.seq);
CREATE TRIGGER question_is_asked AFTER INSERT ON actions
WHEN new.decision = 'needs_input' AND new.kind = 'steward-action' AND new.disposition = 'recorded' BEGIN
    UPDATE actions SET asks = EXISTS (SELECT 1 FROM unanswered_questions u WHERE u.path = actions.path)
    WHERE target = new.target AND decision = 'needs_input' AND kind = 'steward-action' AND disposition = 'recorded';
END;
CREATE TRIGGER question_is_answered AFTER INSERT ON actions WHEN new.resolves IS NOT NULL BEGIN
    UPDATE actions SET asks = EXISTS (SELECT 1 FROM unanswered_questions u WHERE u.path = actions.path)
    WHERE id = new.resolves AND decision = 'needs_input' AND kind = 'steward-action' AND disposition = 'recorded';
END;
CREATE TRIGGER question_is_answered_otherwise AFTER UPDATE OF resolves ON actions BEGIN
    UPDATE actions SET asks = EXISTS (SELECT 1 FROM unanswered_questions u WHERE u.path = actions.path)
    WHERE id = new.follows AND decision = 'needs_input' AND kind = 'steward-action' AND disposition = 'recorded';
END;
CREATE TRIGGER question_is_asked_again AFTER DELETE ON actions
WHEN old.resolves IS NOT NULL
    OR (old.decision = 'needs_input' AND old.kind = 'steward-action' AND old.disposition = 'recorded') BEGIN
    UPDATE actions SET asks = EXISTS (SELECT 1 FROM unanswered_questions u WHERE u.path = actions.path)
    WHERE target = old.target AND decision = 'needs_input' AND kind = 'steward-action' AND disposition = 'recorded';
END;

CREATE TABLE action_evidence (
    ref TEXT NOT NULL,
    action TEXT NOT NULL,
    PRIMARY KEY (ref, action)
) WITHOUT ROWID;
CREATE INDEX evidence_by_action ON action_evidence (action);

-- The contribution of each source to a decision. A source that only supported it has none.
CREATE TABLE action_sources (
    action TEXT NOT NULL,
    -- The key under which the source's trust is kept.
    source TEXT NOT NULL,
    name TEXT NOT NULL,
    contribution REAL,
    cited INTEGER NOT NULL,
    supports INTEGER NOT NULL,
    -- The values of the action's row.
    proposal TEXT,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (action, source)
) WITHOUT ROWID;
CREATE INDEX sources_by_proposal ON action_sources (source, proposal, seq) WHERE supports = 1;
CREATE INDEX sources_by_time ON action_sources (source, at, action);

-- The texts for search: names of matters and tasks, quotes and sources of signals, and both for actions. Row numbers
-- are ordered by kind and moment (`words.rs`), so that the newest matches are found first without sorting.
CREATE TABLE documents (
    -- Never reused, so the highest one shows whether anything was written.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    -- Null for a record without a moment.
    at INTEGER
);
CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');

-- The moves of notes, from the chained audit records. What is kept under a path follows from them.
CREATE TABLE note_moves (
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    old TEXT NOT NULL,
    -- Null: the note ended, because another one was moved to its path.
    new TEXT,
    PRIMARY KEY (seq, old)
) WITHOUT ROWID;

CREATE INDEX moves_by_new ON note_moves (new) WHERE new IS NOT NULL;

-- The following tables are our own state, which is not in the files. A rebuild keeps it.
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

-- Notes whose cards and questions a person has put off. Any signal that is first seen later ends it.
CREATE TABLE snoozes (
    target TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;

-- The numbers that calibration wrote into instincts, as JSON. Any other number in the file is a person's.
CREATE TABLE instinct_numbers (
    path TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    -- What the file held until then. After a crash it still may.
    before TEXT,
    -- The number of a person that calibration changed last, and when.
    given TEXT,
    changed_at INTEGER,
    PRIMARY KEY (path, field)
) WITHOUT ROWID;

-- The tasks that a run is judging.
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

-- The checks that `looks` has counted, so that a repeated activity counts once.
CREATE TABLE look_marks (
    id TEXT PRIMARY KEY,
    day TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- The timestamps that were written into the frontmatter of tasks (only if the operator enabled that). They distinguish
-- our own dates from a person's.
CREATE TABLE timestamp_writes (
    task TEXT PRIMARY KEY,
    -- The time of the last check that the file holds, or that could not be written; null before the first one.
    checked_at INTEGER,
    -- The last `next_check_after` that we tried to write, and the one that may still be there if that write failed.
    written INTEGER,
    before INTEGER,
    retry_at INTEGER NOT NULL
) WITHOUT ROWID;

-- The matters that a signal woke and that no tick has observed since.
CREATE TABLE wakes (
    matter TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;

-- The router's list. Every signal has a row, so that signals that wait for later cost nothing.
CREATE TABLE routes (
    signal TEXT PRIMARY KEY,
    -- Whether the mode allowed changes at that time.
    acts INTEGER NOT NULL,
    -- The moment from which its action is named, the same for every try; null while there is none.
    at INTEGER,
    -- It is not routed again until then, unless the signal changes.
    retry_at INTEGER NOT NULL,
    met_at INTEGER NOT NULL,
    -- The router's last decision, in words, and the question on which the signal is listed.
    reason TEXT,
    question TEXT
) WITHOUT ROWID;
CREATE INDEX routes_by_time ON routes (at);
CREATE INDEX routes_by_turn ON routes (retry_at);
CREATE INDEX routes_of_shadow ON routes (signal) WHERE acts = 0;
CREATE INDEX routes_by_question ON routes (question) WHERE question IS NOT NULL;

-- The cursor and the status of each stream.
CREATE TABLE stream_cursors (
    stream TEXT PRIMARY KEY,
    -- Only the adapter understands it; null before the first run.
    cursor TEXT,
    paused INTEGER NOT NULL DEFAULT 0,
    ran_at INTEGER,
    -- The error of the last run; null if it succeeded.
    error TEXT,
    failures INTEGER NOT NULL DEFAULT 0,
    -- The total number of events that could not be ingested.
    refused INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- The events that were ingested, so that a removed event is not ingested again.
CREATE TABLE stream_seen (
    stream TEXT NOT NULL,
    key TEXT NOT NULL,
    -- When it was last received.
    at INTEGER NOT NULL,
    PRIMARY KEY (stream, key)
) WITHOUT ROWID;
CREATE INDEX stream_seen_by_time ON stream_seen (at);

-- The clerks' answers about raw events, so that the same question is paid for once. Losing them costs only those calls.
CREATE TABLE answers (
    -- SHA-256 of provider, model and the exact prompt, in hex.
    key TEXT PRIMARY KEY,
    answer TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX answers_by_time ON answers (at);

-- `contents`: a hash of each task and matter as it was last read. `edits`: the hashes of later content of a record with
-- an open question, after the action of that number. If they are lost, the question stays open.
CREATE TABLE contents (
    path TEXT PRIMARY KEY,
    content TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE edits (
    path TEXT NOT NULL,
    content TEXT NOT NULL,
    -- The hash before the edit.
    before TEXT NOT NULL,
    after_seq INTEGER NOT NULL,
    PRIMARY KEY (path, content)
) WITHOUT ROWID;

-- By what each note is recognised under another path. `hash` is that of the bytes, null if they were not read.
CREATE TABLE note_identities (
    path TEXT PRIMARY KEY,
    inode INTEGER NOT NULL,
    -- 0 if the file system keeps none.
    born_ns INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    hash TEXT,
    -- When it was first seen under this path; 0 if the first scan saw it.
    came_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX identities_by_inode ON note_identities (inode, born_ns);
CREATE INDEX identities_by_hash ON note_identities (hash) WHERE hash IS NOT NULL;
CREATE INDEX identities_by_arrival ON note_identities (came_at);

-- The notes that are gone from their path, and those that another file replaced there.
CREATE TABLE gone_notes (
    path TEXT NOT NULL,
    -- Null: neither matter nor task.
    kind TEXT,
    inode INTEGER NOT NULL,
    born_ns INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    hash TEXT,
    came_at INTEGER NOT NULL,
    gone_at INTEGER NOT NULL,
    PRIMARY KEY (path, inode, born_ns)
) WITHOUT ROWID;
CREATE INDEX gone_by_hash ON gone_notes (hash) WHERE hash IS NOT NULL;

-- Notes that could be a note that is gone. Until a person says so, they are only asked about.
CREATE TABLE doubtful_notes (
    path TEXT NOT NULL,
    gone TEXT NOT NULL,
    PRIMARY KEY (path, gone)
) WITHOUT ROWID;

-- How far a steward may go with each task and matter.
CREATE VIEW ceilings AS
    SELECT t.path, CASE
            WHEN EXISTS (SELECT 1 FROM doubtful_notes d WHERE d.path = t.path) THEN 'ask'
            WHEN EXISTS (SELECT 1 FROM further_parents p LEFT JOIN matters m ON m.path = p.parent
                WHERE p.task = t.path AND (m.path IS NULL OR m.ceiling = 'ask'
                    OR EXISTS (SELECT 1 FROM doubtful_notes d WHERE d.path = m.path))) THEN 'ask'
            WHEN t.ceiling = 'act' AND EXISTS (SELECT 1 FROM further_parents p JOIN matters m ON m.path = p.parent
                WHERE p.task = t.path AND m.ceiling = 'confirm') THEN 'confirm'
            ELSE t.ceiling END AS ceiling
        FROM tasks t
    UNION ALL SELECT m.path, IIF(EXISTS (SELECT 1 FROM doubtful_notes d WHERE d.path = m.path), 'ask', m.ceiling)
        FROM matters m;

-- What people said about notes that moved, until it is recorded.
CREATE TABLE moves_by_hand (
    old TEXT PRIMARY KEY,
    new TEXT NOT NULL,
    by TEXT NOT NULL
) WITHOUT ROWID;

-- The wikis of the vault. Each has a full-text table of its own, `wiki_words_<id>`, because the rank of a page depends on
-- the other pages of its wiki.
CREATE TABLE wikis (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
-- The Markdown files of the wikis that may be pages. A file that is no page, or cannot be read as one, has no slug.
CREATE TABLE wiki_pages (
    id INTEGER PRIMARY KEY,
    wiki INTEGER NOT NULL,
    -- Relative to the wiki.
    file TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    hash TEXT,
    slug TEXT,
    kind TEXT,
    -- The title and the aliases in lower case, as JSON: by these a page is called.
    names TEXT,
    title TEXT,
    summary TEXT,
    -- JSON.
    tags TEXT,
    UNIQUE (wiki, file)
);
-- The quotes on which the claims of a page rest.
CREATE TABLE wiki_claim_provenance (
    page INTEGER NOT NULL,
    -- The claim's id on its page, as in `c6107d23f~2`.
    claim TEXT NOT NULL,
    label TEXT NOT NULL,
    source TEXT NOT NULL,
    PRIMARY KEY (page, claim, label)
) WITHOUT ROWID;
CREATE INDEX wiki_claims_by_source ON wiki_claim_provenance (source, page);
CREATE TRIGGER wiki_page_goes AFTER DELETE ON wiki_pages BEGIN
    DELETE FROM wiki_claim_provenance WHERE page = OLD.id;
END;
