//! What is kept about a note follows it to its new path, and to nobody else.

use super::*;
use crate::index::store::moves::STATE_OF_NOTES;
use sqlx::Row;
use steward_domain::action::moves::plan_moves;
use steward_domain::record::moves::NoteMove;

/// Columns whose value is a path, but not that of a note, or that a scan writes anew from the notes themselves.
const NO_PATHS_OF_NOTES: [(&str, &str); 47] = [
    ("action_evidence", "action"),
    ("action_evidence", "ref"),
    ("action_sources", "action"),
    ("actions", "path"),
    ("documents", "path"),
    ("files", "path"),
    ("first_seen", "signal"),
    ("instinct_numbers", "path"),
    ("instincts", "path"),
    ("matters", "path"),
    ("other_notes", "path"),
    ("routes", "signal"),
    ("signals", "path"),
    ("signals", "source_event"),
    ("stream_events", "path"),
    ("tasks", "path"),
    ("tasks", "parent"),
    ("tasks", "parent_link"),
    ("tasks", "parent_key"),
    ("further_parents", "task"),
    ("further_parents", "link"),
    ("further_parents", "link_key"),
    ("further_parents", "parent"),
    // What notes are recognised by, and what is not settled yet.
    ("note_identities", "path"),
    ("gone_notes", "path"),
    ("doubtful_notes", "path"),
    ("doubtful_notes", "gone"),
    ("moves_by_hand", "old"),
    ("moves_by_hand", "new"),
    ("note_moves", "old"),
    ("note_moves", "new"),
    // The answer to a repeated check, which asks under the old path.
    ("matter_ticks", "observation"),
    // They hold a path inside a longer text, or a hash of it, and are written anew with the next two.
    ("actions", "proposal"),
    ("action_sources", "proposal"),
    ("actions", "changes"),
    ("signals", "proposal"),
    ("signals", "changes"),
    ("matters", "policy"),
    ("matters", "policy_faults"),
    // A page of a wiki is no note, and its rows follow its file.
    ("wiki_claim_provenance", "claim"),
    ("wiki_claim_provenance", "label"),
    ("wiki_pages", "file"),
    ("wiki_pages", "names"),
    ("wiki_pages", "slug"),
    ("wiki_pages", "summary"),
    ("wiki_pages", "tags"),
    ("wiki_pages", "title"),
];
/// Columns of rows that are read again from their files when a note has moved.
const READ_AGAIN: [(&str, &str); 4] =
    [("actions", "target"), ("actions", "moves_to"), ("actions", "moved_from"), ("signals", "target")];
/// Columns whose value is no path.
const OTHER_TEXTS: &[&str] = &[
    "answer",
    "batch_id",
    "before",
    "by",
    "ceiling",
    "class",
    "closed",
    "content",
    "cursor",
    "day",
    "decision",
    "disposition",
    "effect",
    "error",
    "exclusion",
    "fault",
    "field",
    "follows",
    "given",
    "hash",
    "id",
    "instinct",
    "issue",
    "key",
    "kind",
    "look_id",
    "mode",
    "name",
    "note",
    "outcome",
    "parent_fault",
    "pattern",
    "prev",
    "problem",
    "proposed_state",
    "question",
    "reason",
    "resolves",
    "run",
    "source",
    "state",
    "state_as_written",
    "status",
    "stream",
    "surface_class",
    "tracks_of",
    "trust_mode",
    "trust_subject",
    "value",
];

impl Bench {
    /// Files the record of moves as the newest one of the chain, and reads it.
    async fn record_moves(&self, moves: &[(&str, Option<&str>)], clock: &str) {
        let moves: Vec<NoteMove> =
            moves.iter().map(|(from, to)| NoteMove { from: path(from), to: to.map(path) }).collect();
        for plan in plan_moves(&moves, "the test", noon(clock)).unwrap() {
            let link = ChainLink { seq: self.written.get() + 1, prev: ContentHash::genesis() };
            let record = AuditRecord::from_draft(plan.draft().clone(), Vec::new(), link);
            let record = record.with_moves(plan.recorded_moves());
            let file = plan.draft().record_path().unwrap();
            let text = record.render().unwrap();
            // The head as the writer keeps it.
            let sha256 = ContentHash::hash_bytes(text.as_bytes());
            let head = serde_json::json!({"seq": record.seq, "sha256": sha256.as_str()}).to_string();
            fs::create_dir_all(self.full(".steward")).unwrap();
            fs::write(self.full(".steward/chain.json"), head).unwrap();
            self.put(file.as_str(), text);
            self.hint(&[file.as_str()], clock).await;
        }
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.full(from), self.full(to)).unwrap();
    }

    /// The paths of our own state, by table.
    async fn state_paths(&self) -> BTreeMap<&'static str, BTreeSet<String>> {
        let mut found = BTreeMap::new();
        for (table, column) in STATE_OF_NOTES {
            let sql = format!("SELECT {column} FROM {table}");
            let rows: Vec<String> =
                sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_all(&self.index.store.writer).await.unwrap();
            found.insert(table, rows.into_iter().collect());
        }
        found
    }
}

#[tokio::test]
async fn every_column_that_holds_the_path_of_a_note_is_known() {
    let bench = Bench::new().await;
    let sql = "SELECT m.name AS t, c.name AS c FROM sqlite_master m JOIN pragma_table_info(m.name) c
        WHERE m.type = 'table' AND m.name NOT LIKE 'words%' AND m.name NOT LIKE '%sqlx%' AND m.name NOT LIKE 'sqlite_%'
            AND c.type = 'TEXT'";
    let rows = sqlx::query(sql).fetch_all(&bench.index.store.writer).await.unwrap();
    let columns: BTreeSet<(String, String)> = rows.iter().map(|row| (row.get("t"), row.get("c"))).collect();
    let known: BTreeSet<(String, String)> = STATE_OF_NOTES
        .iter()
        .chain(&READ_AGAIN)
        .chain(&NO_PATHS_OF_NOTES)
        .map(|(table, column)| ((*table).to_owned(), (*column).to_owned()))
        .collect();
    let stale: Vec<_> = known.difference(&columns).collect();
    assert!(stale.is_empty(), "these columns are gone: {stale:?}");
    let unknown: Vec<_> =
        columns.difference(&known).filter(|(_, column)| !OTHER_TEXTS.contains(&column.as_str())).collect();
    assert!(unknown.is_empty(), "say here whether these columns hold paths of notes: {unknown:?}");
}

#[tokio::test]
async fn everything_that_is_kept_about_a_task_follows_it() {
    let bench = Bench::scanned().await;
    bench.matter("house");
    bench.task("old", "house", "");
    bench.signal("s", "task/old.md", "");
    bench.sync("01:00:00").await;
    let seen = bench.look("matter/house.md", "l", "02:00:00").await;
    assert_eq!(seen.task_checks.len(), 1);
    bench.checked("task/old.md", &seen, "l").await;
    let question = bench.action("q", |draft| {
        draft.target = path("task/old.md");
        (draft.decision, draft.disposition) = (Judgement::NeedsInput, Disposition::Recorded);
        (draft.proposal, draft.proposed_state) = (None, None);
        cite(draft, "signal/s.md");
    });
    let proposal = bench.action("p", |draft| {
        draft.target = path("task/old.md");
        (draft.disposition, draft.pending_confirmation) = (Disposition::Pending, true);
        draft.class = Some(MutationClass::StateChange);
    });
    bench.sync("03:00:00").await;
    // A row in each of the other tables, whatever it is that fills them.
    for sql in [
        "INSERT INTO leases VALUES ('task/old.md', 'run', 0)",
        "INSERT INTO timestamp_writes (task, retry_at) VALUES ('task/old.md', 0)",
        "INSERT INTO wakes VALUES ('task/old.md', 0)",
        "INSERT INTO edits VALUES ('task/old.md', 'a', 'b', 0)",
        "INSERT INTO snoozes VALUES ('task/old.md', 0, 0)",
        "INSERT INTO matter_ticks VALUES ('task/old.md', 0, 'x', 0, '{}')",
    ] {
        sqlx::query(sql).execute(&bench.index.store.writer).await.unwrap();
    }
    bench.rename("task/old.md", "task/new.md");
    bench.sync("04:00:00").await;
    bench.record_moves(&[("task/old.md", Some("task/new.md"))], "05:00:00").await;

    for (table, paths) in bench.state_paths().await {
        assert!(!paths.contains("task/old.md"), "{table} still names the old path");
        assert!(paths.contains("task/new.md"), "{table} does not name the new path");
    }
    let asked = bench.index.read().find_open_question(&path("task/new.md")).await.unwrap();
    assert_eq!(asked.map(|row| row.id), Some(question));
    let waiting: Vec<(String, String)> = sqlx::query_as("SELECT id, target FROM actions WHERE waits = 1")
        .fetch_all(&bench.index.store.writer)
        .await
        .unwrap();
    assert_eq!(waiting, [(proposal.to_string(), "task/new.md".to_owned())]);
    // The signal was judged under the old name, so it is not judged again.
    let again = bench.look("matter/house.md", "m", "06:00:00").await;
    assert_eq!((again.task_checks.len(), again.signals), (0, 0), "{again:?}");
    bench.counts_as_rebuilt().await;
}

#[tokio::test]
async fn two_tasks_that_changed_places_keep_their_own_state() {
    let bench = Bench::scanned().await;
    bench.matter("house");
    for slug in ["a", "b"] {
        bench.task(slug, "house", &format!("owner: {slug}\n"));
        bench.signal(slug, &format!("task/{slug}.md"), "");
    }
    bench.sync("01:00:00").await;
    let seen = bench.look("matter/house.md", "l", "02:00:00").await;
    bench.checked("task/a.md", &seen, "l").await;
    let outcome = "UPDATE task_checks SET outcome = 'of a' WHERE task = 'task/a.md'";
    sqlx::query(outcome).execute(&bench.index.store.writer).await.unwrap();
    bench.action("x", |draft| draft.target = path("task/a.md"));
    bench.sync("03:00:00").await;
    bench.rename("task/a.md", "task/c");
    bench.rename("task/b.md", "task/a.md");
    bench.rename("task/c", "task/b.md");
    bench.sync("04:00:00").await;
    bench.record_moves(&[("task/a.md", Some("task/b.md")), ("task/b.md", Some("task/a.md"))], "05:00:00").await;
    let checks: Vec<(String, String)> = sqlx::query_as("SELECT task, outcome FROM task_checks ORDER BY task")
        .fetch_all(&bench.index.store.writer)
        .await
        .unwrap();
    assert_eq!(checks, [("task/b.md".to_owned(), "of a".to_owned())]);
    let targets = "SELECT path, target FROM signals UNION ALL SELECT path, target FROM actions WHERE kind = 'steward-action' ORDER BY 1";
    let targets: Vec<(String, String)> = sqlx::query_as(targets).fetch_all(&bench.index.store.writer).await.unwrap();
    let targets: Vec<(&str, &str)> = targets.iter().map(|(path, target)| (path.as_str(), target.as_str())).collect();
    assert_eq!(
        targets,
        [("event/steward-action-x.md", "task/b.md"), ("signal/a.md", "task/b.md"), ("signal/b.md", "task/a.md"),]
    );
    bench.counts_as_rebuilt().await;
}

#[tokio::test]
async fn a_lost_index_finds_the_same_from_the_records() {
    let bench = Bench::scanned().await;
    bench.matter("house");
    bench.task("old", "house", "");
    bench.signal("s", "task/old.md", "");
    bench.sync("01:00:00").await;
    bench.action("x", |draft| {
        draft.target = path("task/old.md");
        cite(draft, "signal/s.md");
    });
    bench.rename("task/old.md", "task/new.md");
    bench.sync("04:00:00").await;
    bench.record_moves(&[("task/old.md", Some("task/new.md"))], "05:00:00").await;
    // A signal that is younger than the move means whatever is at the path now.
    bench.put("signal/late.md", signal_text("task/old.md", "2026-11-22T10:00:00Z", ""));
    bench.sync("06:00:00").await;
    let before = bench.dump(&bench.index).await;
    let fresh = Index::open(&bench.dir.path().join("other")).await.unwrap();
    fresh.sync_all(&bench.root, noon("07:00:00")).await.unwrap();
    assert_eq!(bench.dump(&fresh).await, before);
    let checked: Vec<String> =
        sqlx::query_scalar("SELECT task FROM task_checks").fetch_all(&fresh.store.writer).await.unwrap();
    assert_eq!(checked, ["task/new.md"], "the cursor is restored under the new path");
    let late: String = sqlx::query_scalar("SELECT target FROM signals WHERE path = 'signal/late.md'")
        .fetch_one(&fresh.store.writer)
        .await
        .unwrap();
    assert_eq!(late, "task/old.md");
}

#[tokio::test]
async fn a_forged_record_of_moves_moves_nothing() {
    let bench = Bench::scanned().await;
    bench.matter("house");
    bench.task("a", "house", "");
    bench.sync("01:00:00").await;
    bench.action("x", |draft| draft.target = path("task/a.md"));
    let head = serde_json::json!({"seq": 7, "sha256": ContentHash::hash_bytes(b"the newest record").as_str()});
    fs::create_dir_all(bench.full(".steward")).unwrap();
    fs::write(bench.full(".steward/chain.json"), head.to_string()).unwrap();
    // One before the newest record that no record follows, one in its place, and one after it.
    for seq in [1, 7, 8, 999_999] {
        let moves = [NoteMove { from: path("task/a.md"), to: Some(path("task/b.md")) }];
        let plan = plan_moves(&moves, "nobody", noon(&format!("02:00:{:02}", seq % 60))).unwrap().remove(0);
        let link = ChainLink { seq, prev: ContentHash::genesis() };
        let record = AuditRecord::from_draft(plan.draft().clone(), Vec::new(), link).with_moves(&moves);
        bench.put(plan.draft().record_path().unwrap().as_str(), record.render().unwrap());
    }
    bench.sync("03:00:00").await;
    let target: String = sqlx::query_scalar("SELECT target FROM actions WHERE kind = 'steward-action'")
        .fetch_one(&bench.index.store.writer)
        .await
        .unwrap();
    assert_eq!(target, "task/a.md");
}

impl Bench {
    /// A bench whose task `old` goes while `new` comes, after an action about the old one or without any.
    async fn with_lost_task(has_history: bool) -> Self {
        let bench = Self::scanned().await;
        bench.matter("house");
        bench.task("old", "house", "");
        bench.sync("01:00:00").await;
        if has_history {
            bench.action("x", |draft| draft.target = path("task/old.md"));
        }
        bench.sync("02:00:00").await;
        bench.remove("task/old.md");
        bench.task("new", "house", "owner: ann\n");
        bench.sync("03:00:00").await;
        assert_eq!(bench.index.find_moves(noon("03:00:01")).await.unwrap(), FoundMoves::default());
        bench
    }

    async fn ceiling_of_new(&self) -> Ceiling {
        let target = path("task/new.md");
        self.index.signals().lowest_configured_ceiling(&target, None, &[], Ceiling::Act).await.unwrap()
    }
}

#[tokio::test]
async fn a_note_that_could_be_the_lost_one_is_only_asked_about() {
    let bench = Bench::with_lost_task(true).await;
    bench.signal("s", "task/new.md", "");
    bench.sync("03:10:00").await;
    let seen = bench.look("matter/house.md", "l", "04:00:00").await;
    assert_eq!(seen.task_checks.iter().map(|check| check.matter_ceiling).collect::<Vec<_>>(), [Ceiling::Ask]);
    assert_eq!(bench.ceiling_of_new().await, Ceiling::Ask);
    let lost = bench.index.list_lost_notes().await.unwrap();
    let lost: Vec<_> = lost.iter().map(|note| (note.path.as_str(), note.candidates.join(" "))).collect();
    assert_eq!(lost, [("task/old.md", "task/new.md".to_owned())]);
    // A person says that the old one was deleted.
    assert!(bench.index.forget_lost_note(&path("task/old.md")).await.unwrap());
    assert_eq!(bench.index.find_moves(noon("04:00:01")).await.unwrap(), FoundMoves::default());
    assert_eq!(bench.ceiling_of_new().await, Ceiling::Act);
    assert_eq!(bench.index.list_lost_notes().await.unwrap(), []);
}

#[tokio::test]
async fn a_note_that_nobody_acted_on_may_go_without_a_word() {
    let bench = Bench::with_lost_task(false).await;
    assert_eq!(bench.index.list_lost_notes().await.unwrap(), []);
    assert_eq!(bench.ceiling_of_new().await, Ceiling::Act);
}

#[tokio::test]
async fn a_lost_note_is_remembered_for_14_days() {
    let bench = Bench::with_lost_task(true).await;
    for (days, is_known) in [(13, true), (15, false)] {
        bench.index.find_moves(noon("03:00:00") + chrono::TimeDelta::days(days)).await.unwrap();
        assert_eq!(bench.index.list_lost_notes().await.unwrap().len(), usize::from(is_known), "after {days} days");
    }
}

#[tokio::test]
async fn a_rewritten_link_ends_no_question() {
    for links_first in [true, false] {
        let bench = Bench::scanned().await;
        bench.matter("old");
        bench.task("t", "old", "");
        let text = |name: &str| format!("{}See [[matter/{name}]].\n", task_text(name, "").replace("body\n", ""));
        bench.put("task/t.md", text("old"));
        bench.sync("01:00:00").await;
        bench.action("q", |draft| {
            draft.target = path("task/t.md");
            (draft.decision, draft.disposition) = (Judgement::NeedsInput, Disposition::Recorded);
            (draft.proposal, draft.proposed_state) = (None, None);
        });
        let is_open = async || bench.index.read().find_open_question(&path("task/t.md")).await.unwrap().is_some();
        bench.sync("02:00:00").await;
        assert!(is_open().await);
        // Obsidian renames the matter and rewrites the links to it, quoted anew.
        bench.rename("matter/old.md", "matter/new.md");
        if links_first {
            bench.put("task/t.md", text("new").replace('"', "'"));
        }
        bench.sync("03:00:00").await;
        bench.record_moves(&[("matter/old.md", Some("matter/new.md"))], "03:10:00").await;
        if !links_first {
            bench.put("task/t.md", text("new").replace('"', "'"));
            bench.sync("03:20:00").await;
        }
        assert!(is_open().await, "links first: {links_first}");
        // A person writes something.
        bench.put("task/t.md", text("new").replace("See", "Ask about"));
        bench.sync("04:00:00").await;
        assert!(!is_open().await);
    }
}

#[tokio::test]
async fn what_was_said_about_a_note_that_is_no_more_reaches_nobody() {
    let bench = Bench::scanned().await;
    bench.matter("house");
    bench.task("p", "house", "");
    bench.task("q", "house", "owner: q\n");
    bench.signal("s", "task/p.md", "");
    bench.sync("01:00:00").await;
    bench.action("ask", |draft| {
        draft.target = path("task/p.md");
        (draft.decision, draft.disposition) = (Judgement::NeedsInput, Disposition::Recorded);
        (draft.proposal, draft.proposed_state) = (None, None);
    });
    bench.sync("02:00:00").await;
    bench.rename("task/q.md", "task/p.md");
    bench.sync("03:00:00").await;
    bench.record_moves(&[("task/q.md", Some("task/p.md")), ("task/p.md", None)], "03:10:00").await;
    let seen = bench.look("matter/house.md", "l", "04:00:00").await;
    assert_eq!((seen.signals, seen.task_checks.len()), (0, 0), "{seen:?}");
    assert!(bench.index.read().find_open_question(&path("task/p.md")).await.unwrap().is_none());
    bench.counts_as_rebuilt().await;
}

#[tokio::test]
async fn who_waits_for_a_move_also_waits_for_its_history() {
    let bench = Bench::scanned().await;
    let meta = async |text: &'static str| {
        sqlx::query(text).execute(&bench.index.store.writer).await.unwrap();
    };
    meta("INSERT INTO meta (key, value) VALUES ('moves_pending', 1)").await;
    let old = path("task/p.md");
    let waits = bench.index.wait_for_said_move(&old);
    tokio::pin!(waits);
    assert!(tokio::time::timeout(std::time::Duration::from_millis(300), &mut waits).await.is_err());
    meta("DELETE FROM meta WHERE key = 'moves_pending'").await;
    assert!(waits.await.unwrap());
}
