//! The fixture of these tests: a vault, and the checks that every test makes at its end.

use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::{ContentHash, Plan};
use steward_domain::action::target::WriteTarget;
use steward_domain::action::undo::{ResolutionKind, ResolutionRequest};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::record::entity::{RecordState, SignalEffect, SurfaceClass};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::clerk::{ClerkMark, ClerkQuestion, Judgement, QuestionSubject, SignalEvidence, Verdict};
use steward_domain::steward::decide::{DecisionCase, decide};
use steward_domain::steward::tick::TaskCheck;
use steward_domain::steward::timestamps::CheckTimestamps;
use steward_vault::action::chain;
use steward_vault::action::resolve::ResolutionError;
use steward_vault::action::writer::{ActionReceipt, LockError, VaultWriter};
use steward_vault::files::root::VaultRoot;

pub(crate) const TASK: &str = "---\ntype: task\nname: Pay the invoice\nstate: open  # since May\nowner: ann\nparent_matter: \
                               \"[[matter/house]]\"\n---\n\nBody, word for word.\n";

/// A vault, in memory if the system has `/dev/shm`: these tests need no real disk.
pub(crate) struct Desk {
    dir: tempfile::TempDir,
}

pub(crate) fn fast_dir() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

impl Desk {
    pub(crate) fn new() -> Self {
        let desk = Self { dir: fast_dir() };
        for folder in ["vault/task", "vault/matter", "vault/signal", "state"] {
            std::fs::create_dir_all(desk.dir.path().join(folder)).unwrap();
        }
        desk.write("task/pay.md", TASK.as_bytes());
        desk
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("vault")
    }

    /// The folder in which a deployment keeps its databases. The write path must not need it.
    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        std::fs::write(self.file(path), bytes).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        String::from_utf8(std::fs::read(self.file(path)).unwrap()).unwrap()
    }

    pub(crate) fn root(&self) -> VaultRoot {
        VaultRoot::open(&self.path()).unwrap()
    }

    pub(crate) fn writer(&self) -> VaultWriter {
        lock(&self.path())
    }

    /// Every audit record, by path.
    pub(crate) fn records(&self) -> BTreeMap<String, AuditRecord> {
        records(&self.path())
    }

    /// The number of files in `event/` that are real audit records.
    pub(crate) fn records_without_notes(&self) -> usize {
        let read = |name: &String| AuditRecord::parse(self.read(&format!("event/{name}")).as_bytes());
        names(&self.file("event")).iter().filter(|name| read(name).is_ok()).count()
    }

    pub(crate) fn conflicts(&self) -> Vec<String> {
        names(&self.file("conflict")).iter().map(|name| self.read(&format!("conflict/{name}"))).collect()
    }

    /// Checks that the chain is valid, and that nothing of a change under way is left.
    pub(crate) fn is_tidy(&self) {
        assert_eq!(faults(&self.root()), Vec::<String>::new());
        for folder in ["journal", "staged"] {
            assert_eq!(names(&self.file(&format!(".steward/{folder}"))), Vec::<String>::new(), "left in {folder}");
        }
        let own = names(&self.file(".steward"));
        assert!(!own.iter().any(|name| name.ends_with(".tmp")), "{own:?}");
    }
}

const SIGKILL: i32 = 9;

/// Runs one test of this program as a child, with variables of its own; returns whether it died at the crash point.
pub(crate) fn dies(test: &str, variables: &[(&str, &OsStr)], point: &str) -> bool {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .envs(variables.iter().copied())
        .env("STEWARD_CRASH_AT", point)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() || status.signal() == Some(SIGKILL), "{test} at {point}: the child failed by itself");
    status.signal() == Some(SIGKILL)
}

/// Takes the lock of a vault whose earlier writer has ended.
pub(crate) fn lock(vault: &Path) -> VaultWriter {
    try_lock(vault).unwrap()
}

/// Tries to take the lock several times: a process that another test just starts has a copy of every open file for a
/// moment, also of the lock's.
pub(crate) fn try_lock(vault: &Path) -> Result<VaultWriter, LockError> {
    for _ in 0..100 {
        match VaultWriter::lock(VaultRoot::open(vault).unwrap()) {
            Err(LockError::Held { .. }) => std::thread::yield_now(),
            taken => return taken,
        }
    }
    panic!("the vault is still held")
}

pub(crate) fn settle(writer: &VaultWriter) -> Vec<WriteTarget> {
    writer.settle_swaps_older_than(Duration::ZERO).unwrap()
}

pub(crate) fn faults(root: &VaultRoot) -> Vec<String> {
    chain::verify_chain(root).unwrap().faults
}

pub(crate) fn records(vault: &Path) -> BTreeMap<String, AuditRecord> {
    let audit = names(&vault.join("event")).into_iter().filter(|name| name.starts_with("steward-action"));
    audit
        .map(|name| {
            let bytes = std::fs::read(vault.join("event").join(&name)).unwrap();
            (format!("event/{name}"), AuditRecord::parse(&bytes).unwrap())
        })
        .collect()
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn task(slug: &str) -> RecordPath {
    RecordPath::new(RecordKind::Task, slug).unwrap()
}

pub(crate) fn noon() -> DateTime<Utc> {
    steward_domain::time::parse("2026-11-21T12:00:00Z").unwrap()
}

pub(crate) fn live() -> DecisionPolicy {
    DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() }
}

/// A check at noon, and the next one at four.
pub(crate) fn timestamps() -> CheckTimestamps {
    CheckTimestamps::new(noon(), Some(noon() + TimeDelta::hours(4)), [])
}

/// A task's text with these timestamps.
pub(crate) fn timestamped(text: &str) -> String {
    let lines = "last_steward_check_at: \"2026-11-21T12:00:00Z\"\nnext_check_after: \"2026-11-21T16:00:00Z\"\n---\n";
    let (above, below) = text[3..].split_once("---\n").unwrap();
    format!("---{above}{lines}{below}")
}

/// The input of a decision with every gate open. A test changes the part that it is about.
pub(crate) struct Wish {
    pub(crate) target: RecordPath,
    /// The content that was judged.
    pub(crate) bytes: Vec<u8>,
    pub(crate) run: String,
    pub(crate) at: DateTime<Utc>,
    pub(crate) policy: DecisionPolicy,
    pub(crate) confidence: f64,
    pub(crate) ceiling: Ceiling,
    pub(crate) decision: Judgement,
    pub(crate) reasoning: String,
}

impl Wish {
    pub(crate) fn done(slug: &str, bytes: &[u8], run: &str) -> Self {
        Self {
            target: task(slug),
            bytes: bytes.to_vec(),
            run: run.into(),
            at: noon(),
            policy: live(),
            confidence: 0.9,
            ceiling: Ceiling::Act,
            decision: Judgement::LikelyDone,
            reasoning: "the bank says so".into(),
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn plan(&self) -> Plan {
        let written =
            steward_domain::record::frontmatter::read_document(&self.bytes).unwrap().fields().get("state").cloned();
        let written = written.and_then(|s| s.as_str().map(str::to_owned));
        let check = TaskCheck {
            question: self.question(RecordState::parse(written.as_deref().unwrap_or("open")).unwrap()),
            before: ContentHash::hash_bytes(&self.bytes),
            state_as_written: written,
            matter_ceiling: self.ceiling,
            further_policies: Vec::new(),
            known_verdict: None,
        };
        let verdict = Verdict {
            decision: self.decision,
            confidence: self.confidence,
            reasoning: self.reasoning.clone(),
            evidence: check.question.evidence.iter().map(|e| e.reference.clone()).collect(),
            source_contributions: BTreeMap::from([("gmail".to_owned(), 0.8)]),
        };
        decide(&DecisionCase {
            check: &check,
            policy: &self.policy,
            matter_policy: None,
            verdict: &verdict,
            clerk: &ClerkMark { provider: "rules".into(), model: "rules-1".into(), ..ClerkMark::default() },
            caller_says_shadow: false,
            workflow: WorkflowRef { id: "al-steward-house".into(), run_id: self.run.clone() },
            at: self.at,
        })
    }

    fn question(&self, state: RecordState) -> ClerkQuestion {
        let evidence = SignalEvidence {
            source: "gmail".into(),
            reference: RecordPath::parse("signal/20261120T080000Z-0a1b2c3d.md").unwrap(),
            note: "the invoice has been paid".into(),
            created: self.at - TimeDelta::hours(1),
            effect: SignalEffect::Mutation,
            proposed_state: Some(RecordState::Done),
            target_confidence: 0.97,
            effect_confidence: 0.97,
            observations: 60,
            ceiling: Ceiling::Act,
        };
        let subject = QuestionSubject {
            task: self.target.clone(),
            task_name: "Pay the invoice".into(),
            matter: RecordPath::parse("matter/house.md").unwrap(),
            matter_name: "The house".into(),
            state,
            surface_class: SurfaceClass::Normal,
            due: None,
            description_hash: None,
            last_decision: None,
        };
        ClerkQuestion { subject, evidence: vec![evidence], complaint: None, asked_at: self.at }
    }
}

/// One click.
pub(crate) struct Click<'a> {
    pub(crate) kind: ResolutionKind,
    pub(crate) record: &'a RecordPath,
    pub(crate) run: &'a str,
    pub(crate) policy: DecisionPolicy,
    pub(crate) ceiling: Ceiling,
    pub(crate) now: DateTime<Utc>,
    pub(crate) edited: Option<Mutation>,
}

impl<'a> Click<'a> {
    pub(crate) fn new(kind: ResolutionKind, record: &'a RecordPath, run: &'a str) -> Self {
        Self {
            kind,
            record,
            run,
            policy: live(),
            ceiling: Ceiling::Act,
            now: noon() + TimeDelta::hours(1),
            edited: None,
        }
    }

    pub(crate) fn ask(&self, writer: &VaultWriter) -> Result<ActionReceipt, ResolutionError> {
        let request = ResolutionRequest {
            kind: self.kind,
            by: "ann",
            reason: Some("not yet"),
            edited: self.edited.as_ref(),
            batch_id: None,
            resolved_by: Default::default(),
            policy: &self.policy,
            ceiling: self.ceiling,
            workflow: WorkflowRef { id: format!("al-{}", self.kind.as_str()), run_id: self.run.into() },
            now: self.now,
        };
        writer.resolve_action(self.record, &request).map(|resolved| resolved.receipt)
    }

    /// The status of the refusal.
    pub(crate) fn refused(&self, writer: &VaultWriter) -> u16 {
        match self.ask(writer) {
            Err(ResolutionError::Refused(refusal)) => refusal.http_status(),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
}

pub(crate) fn count(records: &BTreeMap<String, AuditRecord>, kind: ActionKind) -> usize {
    records.values().filter(|r| r.draft.kind == kind).count()
}
