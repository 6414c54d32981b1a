use super::*;
use crate::files::root::VaultRoot;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::time::{Duration, SystemTime};
use steward_domain::action::audit::{
    ActionKind, AuditDraft, AuditRecord, AuditResolution, ChainLink, CitedSignal, MutationProposal, WorkflowRef,
};
use steward_domain::action::mutation::{Mutation, MutationClass};
use steward_domain::action::plan::{ActionId, ContentHash, Disposition};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::RecordKind;
use steward_domain::steward::clerk::{ClerkMark, Judgement};
use steward_domain::steward::tick::{Cadence, MatterObservation, TaskClock};
use steward_domain::time;
use steward_domain::tracker::PlaneAction;

mod action;
mod answers;
mod asks;
mod cases;
mod charts;
mod drills;
mod extract;
mod lease;
mod links;
mod mapped;
mod moves;
mod note_policy;
mod observe;
mod pages;
mod plans;
mod pulse;
mod rebuild;
mod route;
mod scale;
mod search;
mod standing;
mod state;
mod stream;
mod sync;
mod taken_back;
mod timestamps;
mod tracker;
mod trust;
mod unfinished;
mod wake;
mod wiki;

/// A vault and its index. Every written file gets a later modification time.
struct Bench {
    dir: tempfile::TempDir,
    root: VaultRoot,
    index: Index,
    written: std::cell::Cell<u64>,
}

fn at(text: &str) -> DateTime<Utc> {
    time::parse(text).unwrap()
}

/// 21 November 2026 at this time of day.
fn noon(clock: &str) -> DateTime<Utc> {
    at(&format!("2026-11-21T{clock}Z"))
}

/// Gives the proposal of a record a replaced value of its own, so that no other proposal is equal.
fn no_other_is_equal(draft: &mut AuditDraft, number: usize) {
    let proposal = draft.proposal.as_mut().unwrap();
    proposal.replaces = Some(serde_json::json!(format!("open {number}")));
}

/// The end of that day.
fn tonight() -> DateTime<Utc> {
    noon("23:59:59")
}

fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap()
}

impl Bench {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("vault")).unwrap();
        let root = VaultRoot::open(&dir.path().join("vault")).unwrap();
        let index = Index::open(&dir.path().join("state")).await.unwrap();
        Self { dir, root, index, written: std::cell::Cell::new(0) }
    }

    /// A bench whose empty vault was scanned, so that every later record is new.
    async fn scanned() -> Self {
        let bench = Self::new().await;
        bench.sync("00:00:00").await;
        bench
    }

    fn full(&self, path: &str) -> PathBuf {
        self.dir.path().join("vault").join(path)
    }

    fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let full = self.full(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(&full, text).unwrap();
        let tick = self.written.get() + 1;
        self.written.set(tick);
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + tick);
        File::options().write(true).open(&full).unwrap().set_modified(modified).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.full(path)).unwrap();
    }

    fn matter(&self, slug: &str) {
        self.put(&format!("matter/{slug}.md"), format!("---\ntype: matter\nname: The {slug}\nstate: open\n---\n"));
    }

    fn task(&self, slug: &str, matter: &str, more: &str) {
        self.put(&format!("task/{slug}.md"), task_text(matter, more));
    }

    fn signal(&self, slug: &str, target: &str, more: &str) {
        self.put(&format!("signal/{slug}.md"), signal_text(target, "2026-11-20T10:00:00Z", more));
    }

    /// Writes an audit record of a decision about a task.
    fn action(&self, slug: &str, change: impl FnOnce(&mut AuditDraft)) -> ActionId {
        self.owing_action(slug, change, None)
    }

    /// Writes an audit record with a tracker entry.
    fn owing_action(&self, slug: &str, change: impl FnOnce(&mut AuditDraft), tracker: Option<PlaneAction>) -> ActionId {
        let mut draft = draft(slug);
        change(&mut draft);
        let id = draft.id.clone();
        let link = ChainLink { seq: self.written.get() + 1, prev: ContentHash::genesis() };
        let record = AuditRecord::from_draft(draft, Vec::new(), link).with_tracker(tracker);
        self.put(&format!("event/steward-action-{slug}.md"), record.render().unwrap());
        id
    }

    async fn sync(&self, clock: &str) -> SyncReport {
        self.index.sync_all(&self.root, noon(clock)).await.unwrap()
    }

    async fn hint(&self, paths: &[&str], clock: &str) -> SyncReport {
        let paths: Vec<RecordPath> = paths.iter().map(|p| path(p)).collect();
        self.index.sync_paths(&self.root, &paths, noon(clock)).await.unwrap()
    }

    async fn look(&self, matter: &str, look_id: &str, clock: &str) -> MatterObservation {
        self.index.cursors().observe_due_tasks(&ask(matter, look_id, clock)).await.unwrap()
    }

    /// Records that a clerk answered about a task.
    async fn checked(&self, task: &str, seen: &MatterObservation, look_id: &str) {
        let done = CompletedCheck {
            task: path(task),
            check_id: look_id.into(),
            observed_at: seen.observed_at,
            had_signals: true,
            outcome: "still_active".into(),
            clock: open(),
            cadence: Cadence::default(),
        };
        self.index.cursors().record_check(&done).await.unwrap();
    }

    async fn problem_of(&self, path: &str) -> String {
        let problems = self.index.read().list_problems().await.unwrap();
        let found: Vec<_> = problems.iter().filter(|p| p.path == path).map(|p| p.message.as_str()).collect();
        assert!(!found.is_empty(), "no problem of {path} among {problems:?}");
        found.join(" | ")
    }

    /// Every row of the derived tables as text.
    async fn dump(&self, index: &Index) -> Vec<String> {
        let mut rows = Vec::new();
        let spoken = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.spoken USING fts5vocab(main, words, instance)";
        sqlx::query(spoken).execute(&index.store.writer).await.unwrap();
        for sql in [
            "SELECT 'd' || json_array(path, kind, at) FROM documents ORDER BY 1",
            "SELECT 'w' || json_array(d.path, s.term, s.offset) FROM temp.spoken s LEFT JOIN documents d ON d.id = s.doc & 536870911 ORDER BY 1",
            "SELECT 'f' || json_array(path, kind, hash, size, modified_ns, inode, problem) FROM files ORDER BY 1",
            "SELECT 'm' || json_array(path, name, state, state_as_written, ceiling, hash) FROM matters ORDER BY 1",
            "SELECT 't' || json_array(path, parent, id, name, state, state_as_written, surface_class, due,
                snoozed_until, next_check_after, hash) FROM tasks ORDER BY 1",
            "SELECT 'p' || json_array(task, position, parent) FROM further_parents ORDER BY 1",
            "SELECT 's' || json_array(path, target, created, source, instinct, note, effect, proposed_state,
                target_confidence, effect_confidence, applied, class, proposal, status, reason, source_event) FROM signals ORDER BY 1",
            "SELECT 'i' || json_array(path, source, observations, ceiling, start) FROM instincts ORDER BY 1",
            "SELECT 'a' || json_array(path, id, kind, target, at, decision, confidence, disposition, mode, pending,
                resolves, proposed_state, class, judged, issue, tracks_of, closed, moves_to, proposal, seq, edited, batch_id, waits, asks, content) FROM actions ORDER BY 1",
            "SELECT 'v' || json_array(path, source, pattern, received_at, status, tries, reason, hash)
                FROM stream_events ORDER BY 1",
            "SELECT 'e' || json_array(ref, action) FROM action_evidence ORDER BY 1",
            "SELECT 'c' || json_array(action, source, name, contribution, cited, supports, proposal, seq, at) FROM action_sources ORDER BY 1",
        ] {
            let part: Vec<String> = sqlx::query_scalar(sql).fetch_all(&index.store.writer).await.unwrap();
            rows.extend(part);
        }
        rows
    }
}

fn ask(matter: &str, look_id: &str, clock: &str) -> ObservationQuery {
    ObservationQuery {
        matter: path(matter),
        check_id: look_id.into(),
        now: noon(clock),
        cadence: Cadence::default(),
        policy: DecisionPolicy::default(),
        stopped: false,
        max_checks: 64,
        default_ceiling: Ceiling::Act,
    }
}

fn open() -> TaskClock {
    TaskClock { state: RecordState::Open, surface_class: Default::default(), due: None, snoozed_until: None }
}

fn task_text(matter: &str, more: &str) -> String {
    format!("---\ntype: task\nname: Do it\nparent_matter: \"[[matter/{matter}]]\"\n{more}---\nbody\n")
}

fn signal_text(target: &str, created: &str, more: &str) -> String {
    let kind = target.split('/').next().unwrap();
    format!(
        "---\ntype: signal\ncreated: {created}\nsource_type: gmail\nraw_quote: it is paid\ntarget_kind: {kind}\n\
         target_path: {target}\ntarget_confidence: 0.95\neffect_confidence: 0.91\nmutation_proposal:\n  \
         class: state_change\n  set:\n    state: done\n{}{more}---\n",
        if more.contains("effect:") { "" } else { "effect: mutation\n" }
    )
}

fn draft(slug: &str) -> AuditDraft {
    AuditDraft {
        kind: ActionKind::Action,
        id: ActionId::derive(&[slug]),
        timestamp: noon("09:00:00"),
        target: path("task/t.md"),
        target_kind: RecordKind::Task,
        named_after: None,
        class: None,
        decision: Judgement::LikelyDone,
        confidence: 0.9,
        mode: Mode::Live,
        disposition: Disposition::Live,
        gates: Vec::new(),
        prior_state: None,
        proposed_state: Some(RecordState::Done),
        proposal: Some(MutationProposal {
            mutation: Mutation::StateChange { to: RecordState::Done },
            replaces: None,
            moved_from: None,
        }),
        confirmable: true,
        pending_confirmation: false,
        evidence: Vec::new(),
        source_contributions: BTreeMap::new(),
        reasoning: "it was paid".into(),
        clerk: Some(ClerkMark::default()),
        workflow: WorkflowRef { id: "w".into(), run_id: "r".into() },
        resolution: None,
        trust: None,
        wiki: None,
    }
}

fn cite(draft: &mut AuditDraft, signal: &str) {
    draft.evidence.push(CitedSignal {
        reference: path(signal),
        source: "gmail".into(),
        note: "it is paid".into(),
        target_confidence: 0.9,
        effect_confidence: 0.9,
        supports: true,
    });
}

/// Makes the draft a resolution of an action.
fn answer(draft: &mut AuditDraft, kind: ActionKind, action: &ActionId) {
    draft.kind = kind;
    draft.resolution = Some(AuditResolution {
        action_id: action.clone(),
        decided_at: noon("09:00:00"),
        by: "ann".into(),
        reason: None,
        edited: false,
        batch_id: None,
        done: false,
        reopened: None,
        resolved_by: Default::default(),
    });
}

#[tokio::test]
async fn a_damaged_file_is_refused_by_name_and_can_be_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(FILE);
    fs::write(&file, "this is no database, it is a text of more than a hundred bytes ".repeat(20)).unwrap();
    let message = Index::open(dir.path()).await.unwrap_err().to_string();
    for part in ["state.db: damaged", "steward index rebuild", "cursors from the audit records"] {
        assert!(message.contains(part), "{message}");
    }
    let (index, aside) = Index::open_or_recreate(dir.path()).await.unwrap();
    assert!(!index.is_filled());
    assert_eq!(aside, Some(dir.path().join("state.db.damaged-1")));
    assert!(fs::read_to_string(aside.unwrap()).unwrap().starts_with("this is no database"));
}

#[tokio::test]
async fn an_index_knows_whether_its_file_is_away_or_another() {
    let dir = tempfile::tempdir().unwrap();
    let (file, aside) = (dir.path().join(FILE), dir.path().join("aside"));
    let index = Index::open(dir.path()).await.unwrap();
    assert_eq!(index.file_status(), IndexFileStatus::InPlace);
    fs::rename(&file, &aside).unwrap();
    assert_eq!(index.file_status(), IndexFileStatus::Missing);
    fs::write(&file, "").unwrap();
    assert_eq!(index.file_status(), IndexFileStatus::Replaced);
    fs::rename(&aside, &file).unwrap();
    assert_eq!(index.file_status(), IndexFileStatus::InPlace);
}

#[tokio::test]
async fn a_torn_page_is_found_when_the_file_is_opened() {
    let bench = Bench::new().await;
    for n in 0..200 {
        bench.matter(&format!("m{n}"));
    }
    bench.sync("01:00:00").await;
    bench.index.close().await;
    let file = bench.dir.path().join("state").join(FILE);
    let mut bytes = fs::read(&file).unwrap();
    let half = bytes.len() / 2;
    bytes[4096..half].fill(0x5a);
    fs::write(&file, bytes).unwrap();
    let message = Index::open(&bench.dir.path().join("state")).await.unwrap_err().to_string();
    assert!(message.contains("damaged") && message.contains("steward index rebuild"), "{message}");
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let index = Index::open(dir.path()).await.unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (99, 'later', TRUE, x'', 0)";
    sqlx::query(newer).execute(&index.store.writer).await.unwrap();
    index.close().await;
    let message = Index::open(dir.path()).await.unwrap_err().to_string();
    assert!(message.contains("newer Steward") && message.contains("steward index rebuild"), "{message}");
}

#[tokio::test]
async fn a_foreign_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let index = Index::open(dir.path()).await.unwrap();
    sqlx::raw_sql("DROP TABLE _sqlx_migrations").execute(&index.store.writer).await.unwrap();
    index.close().await;
    let message = Index::open(dir.path()).await.unwrap_err().to_string();
    assert!(message.contains("another program") && message.contains("steward index rebuild"), "{message}");
}

#[tokio::test]
async fn what_was_learned_survives_the_process() {
    let bench = Bench::new().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    bench.look("matter/m.md", "l1", "02:00:00").await;
    bench.index.close().await;
    let again = Index::open(&bench.dir.path().join("state")).await.unwrap();
    assert!(again.is_filled());
    let seen = again.cursors().observe_due_tasks(&ask("matter/m.md", "l2", "02:30:00")).await.unwrap();
    assert_eq!((seen.quiet, seen.streak), (0, 2));
}

#[tokio::test]
async fn two_processes_share_one_file() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    let other = Index::open(&bench.dir.path().join("state")).await.unwrap();
    bench.sync("01:00:00").await;
    assert_eq!(other.read().list_matters(&Cadence::default()).await.unwrap().len(), 1);
    other.sync_all(&bench.root, noon("01:00:01")).await.unwrap();
    bench.look("matter/m.md", "l1", "02:00:00").await;
    assert_eq!(other.look_streak("matter/m.md").await, 1);
}

impl Index {
    async fn look_streak(&self, matter: &str) -> i64 {
        let sql = "SELECT streak FROM matter_ticks WHERE matter = ?1";
        sqlx::query_scalar(sql).bind(matter).fetch_one(&self.store.reader).await.unwrap()
    }
}

#[test]
fn a_source_goes_by_its_whole_name() {
    use steward_domain::signals::signal::source_key;
    assert_eq!((source_key(" WhatsApp ").as_str(), source_key("my-bank").as_str()), ("whatsapp", "my-bank"));
    let names = ["mail:a@b-c.example", "mail:a.b@c.example", "mail-a-b-c-example", "é", "e", "", "my bank", "my-bank"];
    let keys: std::collections::BTreeSet<String> = names.iter().map(|name| source_key(name)).collect();
    assert_eq!(keys.len(), names.len(), "{keys:?}");
    assert!(source_key("Mail:A@b-c.example").starts_with("mail-a-b-c-example-"));
    for key in keys.iter().chain([&source_key(&"x:".repeat(500))]) {
        assert!(RecordPath::new(RecordKind::Instinct, key).is_ok(), "{key}");
    }
}
