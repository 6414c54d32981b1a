//! Runs every activity of the vault twice: the state afterwards is that of one run.

mod budget;
mod renamed;
mod unknown_sources;

use super::*;
use crate::signals::{SignalActivities, purge};
use crate::steward::clerks::Clerk;
use crate::steward::tick::{NewInterval, StewardActivities};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use steward_domain::action::audit::ResolverKind;
use steward_domain::action::plan::{ActionId, Disposition, Plan};
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::gates::mode::Mode;
use steward_domain::steward::clerk::{Judgement, TokenUsage, Verdict};
use steward_domain::steward::decide::{DecisionCase, decide};
use steward_domain::steward::guard::{
    CallId, GuardCap, GuardRefusal, ReserveOutcome, ReserveRequest, Settlement, SettlementOutcome,
};
use steward_domain::steward::tick::{MatterObservation, RunDisplay, TaskClock};
use steward_vault::action::writer::LockError;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop;
use steward_vault::steward::guard::Ledger;
use steward_vault::tracker::outbox::TrackerSite;
use steward_workflows::activities::{
    ApplyInput, ApplyOutput, ObserveInput, PurgeInput, PurgeOutput, ResolveInput, ResolveOutput, SettleCallInput,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A vault with the activities that share it.
pub(crate) struct VaultFixture {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) context: VaultContext,
    pub(crate) ledger: Arc<Ledger>,
    /// Who is asked about tasks.
    pub(crate) clerk: Arc<Clerk>,
    send_interval: UnboundedSender<NewInterval>,
    pub(crate) intervals: UnboundedReceiver<NewInterval>,
}

/// Opens the vault in a folder and takes its lock.
pub(crate) async fn open(folder: &Path, mode: Mode, tracker: Option<TrackerSite>) -> (VaultContext, Arc<Ledger>) {
    let root = VaultRoot::open(folder).unwrap();
    let own = folder.join(".steward");
    // A process that another test starts holds a copy of every open file for a moment, also of the lock.
    let free = (0..100_000).find_map(|_| match VaultWriter::lock(root.clone()) {
        Err(LockError::Held { .. }) => {
            std::thread::yield_now();
            None
        }
        taken => Some(taken.unwrap()),
    });
    let index = Arc::new(Index::open(&own).await.unwrap());
    index.sync_all(&root, Utc::now()).await.unwrap();
    let writer = Arc::new(free.expect("the vault is still held").with_tracker(tracker).with_index(&index));
    let caps = steward_domain::steward::guard::CallCaps::default();
    let ledger = Ledger::open(&own.join("ledger.db"), caps, &own.join("ledger.json")).unwrap();
    let policy = DecisionPolicy { mode, ..DecisionPolicy::default() };
    let settings = VaultSettings {
        policy,
        default_ceiling: Ceiling::Act,
        cadence: Cadence::default(),
        keep_events_days: purge::KEEP_EVENTS_DAYS,
        live_per_source_day: 20,
        reversal_budget: 0.05,
        display: RunDisplay::default(),
    };
    (VaultContext::new(writer, index, settings), Arc::new(ledger))
}

impl VaultFixture {
    async fn is_marked(&self) -> bool {
        !self.context.index.cursors().list_wake_marks().await.unwrap().is_empty()
    }

    pub(crate) async fn new(mode: Mode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let file = dir.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        put("matter/m.md", "---\ntype: matter\nname: M\nstate: open\n---\n");
        put("task/quiet.md", "---\ntype: task\nname: Q\nstate: open\nparent_matter: m\n---\n");
        put("task/pay.md", "---\ntype: task\nname: Pay\nstate: open  # by hand\nparent_matter: m\n---\n");
        put(
            "signal/1.md",
            "---\ntype: signal\ncreated: 2026-11-20\nsource_event_path: stream/mail/1.md\nsource_type: bank\nraw_quote: paid in full\ntarget_kind: task\n\
             target_path: task/pay.md\ntarget_confidence: 0.99\neffect: mutation\nmutation_proposal:\n  class: state_change\n  \
             set: {state: done}\neffect_confidence: 0.99\nstatus: unrouted\n---\n",
        );
        let opened = open(dir.path(), mode, Some(TrackerSite::default())).await;
        Self::from_parts(dir, opened)
    }

    pub(crate) fn from_parts(dir: tempfile::TempDir, (context, ledger): (VaultContext, Arc<Ledger>)) -> Self {
        let (send_interval, intervals) = unbounded_channel();
        let clerk = Arc::new(Clerk::Rules(crate::steward::clerks::rules::RulesClerk));
        Self { dir, context, ledger, clerk, send_interval, intervals }
    }

    /// The activities of a tick, with the settings that the context has now.
    pub(crate) fn steward(&self) -> StewardActivities {
        StewardActivities {
            vault: self.context.clone(),
            ledger: Arc::clone(&self.ledger),
            clerk: Arc::clone(&self.clerk),
            intervals: self.send_interval.clone(),
        }
    }

    pub(crate) fn signals(&self) -> SignalActivities {
        SignalActivities::new(self.context.clone())
    }

    /// Adds lines to the frontmatter of `task/pay.md`, makes a live change of it, and returns the action's id.
    pub(crate) async fn changed(&self, more: &str) -> ActionId {
        let text = self.task().replace("parent_matter", &format!("{more}parent_matter"));
        std::fs::write(self.dir.path().join("task/pay.md"), text).unwrap();
        self.context.index.sync_all(self.context.writer.root(), Utc::now()).await.unwrap();
        let seen = self.see("check/1").await;
        match self.steward().apply_decision(apply_ask(&seen, "check/1")).await.unwrap() {
            ApplyOutput::Filed { action_id, disposition: Disposition::Live, .. } => action_id,
            other => panic!("{other:?}"),
        }
    }

    /// Undoes an action, as a workflow of this run.
    pub(crate) async fn undone(&self, id: &ActionId, run: &str) -> ResolveOutput {
        let ask = ResolveInput {
            kind: ResolutionKind::Undo,
            action: id.to_string(),
            by: "ann".into(),
            reason: None,
            edited: None,
            batch_id: None,
            resolved_by: Default::default(),
        };
        let workflow = WorkflowRef { id: "undo".into(), run_id: run.into() };
        self.context.handle_resolution(ask, workflow).await.unwrap()
    }

    pub(crate) async fn see(&self, check_id: &str) -> MatterObservation {
        let matter = RecordPath::parse("matter/m.md").unwrap();
        self.steward().observe_matter(ObserveInput { matter, check_id: check_id.into() }).await.unwrap()
    }

    /// Every file of the vault's record folders, by path.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        for folder in ["matter", "task", "signal", "event"] {
            let Ok(entries) = std::fs::read_dir(self.dir.path().join(folder)) else { continue };
            for entry in entries {
                let path = entry.unwrap().path();
                files.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
        files
    }

    async fn cursors(&self) -> Vec<String> {
        let matter = RecordPath::parse("matter/m.md").unwrap();
        let tasks = self.context.index.read().list_tasks_of_matter(&matter).await.unwrap();
        let counts = self.context.index.cursors().list_check_counts(chrono::NaiveDate::MIN).await.unwrap();
        tasks.iter().map(|t| format!("{t:?}")).chain(counts.iter().map(|l| format!("{l:?}"))).collect()
    }

    pub(crate) fn task(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("task/pay.md")).unwrap()
    }
}

pub(crate) fn apply_ask(seen: &MatterObservation, check_id: &str) -> ApplyInput {
    let check = &seen.task_checks[0];
    let verdict = Verdict {
        decision: Judgement::LikelyDone,
        confidence: 0.99,
        reasoning: "the bank says so".into(),
        evidence: vec![check.question.evidence[0].reference.clone()],
        source_contributions: BTreeMap::from([("bank".to_owned(), 0.99)]),
    };
    let plan: Plan = decide(&DecisionCase {
        check,
        policy: &seen.policy,
        matter_policy: seen.matter_policy.as_ref(),
        verdict: &verdict,
        clerk: &steward_domain::steward::clerk::ClerkMark::default(),
        caller_says_shadow: false,
        workflow: WorkflowRef { id: "w".into(), run_id: "r".into() },
        at: seen.observed_at,
    });
    let subject = &check.question.subject;
    let clock =
        TaskClock { state: subject.state, surface_class: subject.surface_class, due: None, snoozed_until: None };
    ApplyInput { plan, check_id: check_id.into(), observed_at: seen.observed_at, clock, had_signals: true }
}

#[tokio::test]
async fn looking_twice_is_looking_once() {
    let bench = VaultFixture::new(Mode::Shadow).await;
    let first = bench.see("run/1").await;
    let after_one = (bench.cursors().await, bench.files());
    assert_eq!(bench.see("run/1").await, first);
    assert_eq!((bench.cursors().await, bench.files()), after_one);
    assert_eq!((first.quiet, first.task_checks.len()), (1, 1));
}

#[tokio::test]
async fn applying_twice_changes_and_files_once() {
    let bench = VaultFixture::new(Mode::Live).await;
    let seen = bench.see("run/1").await;
    let ask = apply_ask(&seen, "run/1");
    let first = bench.steward().apply_decision(ask.clone()).await.unwrap();
    let after_one = (bench.cursors().await, bench.files());
    assert_eq!(bench.steward().apply_decision(ask).await.unwrap(), first);
    assert_eq!((bench.cursors().await, bench.files()), after_one);
    assert!(bench.task().contains("state: done  # by hand"), "{}", bench.task());
}

#[tokio::test]
async fn the_same_click_twice_undoes_once_and_says_the_same() {
    let bench = VaultFixture::new(Mode::Live).await;
    let before = bench.task();
    let seen = bench.see("run/1").await;
    let ApplyOutput::Filed { action_id, .. } = bench.steward().apply_decision(apply_ask(&seen, "run/1")).await.unwrap()
    else {
        panic!("not filed")
    };
    let ask = ResolveInput {
        kind: ResolutionKind::Undo,
        action: action_id.to_string(),
        by: "ann".into(),
        reason: None,
        edited: None,
        batch_id: None,
        resolved_by: Default::default(),
    };
    let click = WorkflowRef { id: "undo".into(), run_id: "click-1".into() };
    let first = bench.context.handle_resolution(ask.clone(), click.clone()).await.unwrap();
    assert!(matches!(first, ResolveOutput::Done { .. }), "{first:?}");
    let after_one = (bench.cursors().await, bench.files());
    assert_eq!(bench.context.handle_resolution(ask.clone(), click).await.unwrap(), first);
    assert_eq!((bench.cursors().await, bench.files()), after_one);
    assert_eq!(bench.task(), before);
    let other = WorkflowRef { id: "undo".into(), run_id: "click-2".into() };
    let refused = bench.context.handle_resolution(ask, other).await.unwrap();
    assert!(matches!(refused, ResolveOutput::Refused { status: 409, .. }), "{refused:?}");
}

#[tokio::test]
async fn an_undo_by_a_model_restores_the_note_and_leaves_the_trust_as_it_was() {
    let bench = VaultFixture::new(Mode::Live).await;
    let before = bench.task();
    let id = bench.changed("").await;
    let trust = async || {
        let view = bench.context.index.trust();
        (view.compute_source_trust(Utc::now()).await.unwrap(), view.read_mode_caps().await.unwrap())
    };
    let trusted = trust().await;
    let ask = ResolveInput {
        kind: ResolutionKind::Undo,
        action: id.to_string(),
        by: "ann via mcp".into(),
        reason: Some("a mail told me to".into()),
        edited: None,
        batch_id: None,
        resolved_by: ResolverKind::Agent,
    };
    let workflow = WorkflowRef { id: "undo".into(), run_id: "call".into() };
    let ResolveOutput::Done { record, lowered, .. } = bench.context.handle_resolution(ask, workflow).await.unwrap()
    else {
        panic!("not undone")
    };
    assert_eq!((bench.task(), lowered), (before, Vec::<String>::new()));
    let record = bench.context.read_record(&record).await.unwrap().unwrap();
    assert_eq!(record.draft.resolution.unwrap().resolved_by, ResolverKind::Agent);
    assert_eq!(trust().await, trusted);
}

#[tokio::test]
async fn reserving_settling_and_letting_go_twice_count_once() {
    let bench = VaultFixture::new(Mode::Shadow).await;
    bench.see("run/1").await;
    let request = ReserveRequest {
        call_id: CallId("run/1/pay/1".into()),
        task: Some("task/pay.md".into()),
        matter: Some("matter/m.md".into()),
        ..ReserveRequest::default()
    };
    let first = bench.steward().reserve_call(request.clone()).await.unwrap();
    assert_eq!(bench.steward().reserve_call(request.clone()).await.unwrap(), first);
    let usage = TokenUsage { prompt_tokens: 10, completion_tokens: 5 };
    let settlement = Settlement { call_id: request.call_id, outcome: SettlementOutcome::Answered { usage } };
    for _ in 0..2 {
        let ask = SettleCallInput { settlement: settlement.clone(), answer: None };
        bench.steward().settle_call(ask).await.unwrap();
        bench.context.index.cursors().release_leases("run").await.unwrap();
    }
    let status = bench.ledger.status(Utc::now()).await.ledger.unwrap();
    assert_eq!((status.minute.used, status.day_usage), (1, usage));
    assert_eq!(bench.see("other/1").await.task_checks.len(), 1, "the task is free for the next run");
}

#[tokio::test]
async fn a_refused_call_is_counted_once_however_often_it_is_asked() {
    let bench = VaultFixture::new(Mode::Live).await;
    let stop = stop::VaultStop { at: "now".into(), by: "ann".into(), reason: None };
    stop::stop_vault(bench.context.writer.root(), &stop).unwrap();
    let request = ReserveRequest { task: Some("task/pay.md".into()), ..ReserveRequest::default() };
    for _ in 0..2 {
        let outcome = bench.steward().reserve_call(request.clone()).await.unwrap();
        assert!(matches!(outcome, ReserveOutcome::Refused(GuardRefusal { cap: GuardCap::Stopped, .. })), "{outcome:?}");
    }
    let counts = bench.context.index.cursors().list_check_counts(chrono::NaiveDate::MIN).await.unwrap();
    assert_eq!(counts.iter().map(|l| l.count).sum::<u64>(), 1);
    assert!(bench.is_marked().await, "its matter is woken after the stop");
}

#[tokio::test]
async fn a_stop_between_decision_and_landing_files_nothing_and_leaves_the_task_due() {
    let bench = VaultFixture::new(Mode::Live).await;
    let ask = apply_ask(&bench.see("run/1").await, "run/1");
    let before = bench.task();
    let stop = stop::VaultStop { at: "now".into(), by: "ann".into(), reason: None };
    stop::stop_vault(bench.context.writer.root(), &stop).unwrap();
    let files = bench.files();
    assert_eq!(bench.steward().apply_decision(ask).await.unwrap(), ApplyOutput::Stopped);
    assert_eq!((bench.task(), bench.files()), (before, files));
    assert!(bench.is_marked().await, "also when it is resumed before the run ends");
    let seen = bench.see("run/2").await;
    assert!(seen.stopped && seen.task_checks.is_empty(), "{seen:?}");
    stop::resume_vault(bench.context.writer.root(), &stop).unwrap();
    bench.context.index.cursors().release_leases("run").await.unwrap();
    let seen = bench.see("run/3").await;
    assert_eq!(seen.task_checks[0].question.evidence.len(), 1, "the evidence was used up");
    let applied = bench.steward().apply_decision(apply_ask(&seen, "run/3")).await.unwrap();
    assert!(matches!(applied, ApplyOutput::Filed { disposition: Disposition::Live, .. }), "{applied:?}");
}

#[tokio::test]
async fn a_plan_lands_no_livelier_than_the_process_that_lands_it_allows() {
    let live = DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() };
    let surer = DecisionPolicy { mode: Mode::LiveHighConfidenceOnly, high_confidence_threshold: 0.999, ..live.clone() };
    let confirm = DecisionPolicy { state_change_ceiling: Ceiling::Confirm, ..live.clone() };
    for (now, disposition) in [
        (DecisionPolicy::default(), Disposition::Shadow),
        (surer, Disposition::Pending),
        (DecisionPolicy { confidence_threshold: 0.999, ..live.clone() }, Disposition::Pending),
        (confirm, Disposition::Pending),
        (live, Disposition::Live),
    ] {
        let mut bench = VaultFixture::new(Mode::Live).await;
        let (ask, before) = (apply_ask(&bench.see("run/1").await, "run/1"), bench.task());
        bench.context.settings.policy = now.clone();
        let applied = bench.steward().apply_decision(ask).await.unwrap();
        assert!(
            matches!(&applied, ApplyOutput::Filed { disposition: found, .. } if *found == disposition),
            "{now:?}: {applied:?}"
        );
        assert_eq!(bench.task() == before, disposition != Disposition::Live, "{now:?}");
        let ApplyOutput::Filed { record, .. } = applied else { panic!("{applied:?}") };
        let record = bench.context.read_record(&record).await.unwrap().unwrap();
        assert_eq!(record.draft.mode, now.mode);
    }
}

#[tokio::test]
async fn a_matter_or_a_source_that_a_human_held_back_since_the_decision_is_held_at_landing() {
    type Hold = fn(&Path);
    let holds: [Hold; 2] = [
        |vault| {
            std::fs::write(vault.join("matter/m.md"), "---\ntype: matter\nname: M\nsteward_ceiling: confirm\n---\n")
                .unwrap()
        },
        |vault| {
            std::fs::create_dir_all(vault.join("instinct")).unwrap();
            std::fs::write(vault.join("instinct/bank.md"), "---\ntype: instinct\nceiling: confirm\n---\n").unwrap();
        },
    ];
    for (n, hold) in holds.into_iter().enumerate() {
        let bench = VaultFixture::new(Mode::Live).await;
        let (ask, before) = (apply_ask(&bench.see("run/1").await, "run/1"), bench.task());
        hold(bench.dir.path());
        if n == 1 {
            bench.context.index.sync_all(bench.context.writer.root(), Utc::now()).await.unwrap();
        }
        let applied = bench.steward().apply_decision(ask).await.unwrap();
        assert!(matches!(applied, ApplyOutput::Filed { disposition: Disposition::Pending, .. }), "{n}: {applied:?}");
        assert_eq!(bench.task(), before);
    }
}

#[tokio::test]
async fn a_plan_that_was_made_in_shadow_stays_a_shadow_where_the_mode_is_live() {
    let mut bench = VaultFixture::new(Mode::Shadow).await;
    let (ask, before) = (apply_ask(&bench.see("run/1").await, "run/1"), bench.task());
    bench.context.settings.policy.mode = Mode::Live;
    let applied = bench.steward().apply_decision(ask).await.unwrap();
    assert!(matches!(applied, ApplyOutput::Filed { disposition: Disposition::Shadow, .. }), "{applied:?}");
    assert_eq!(bench.task(), before);
}

#[tokio::test]
async fn a_record_that_a_human_changed_is_not_overwritten_and_stays_due() {
    let bench = VaultFixture::new(Mode::Live).await;
    let ask = apply_ask(&bench.see("run/1").await, "run/1");
    let edited = bench.task().replace("name: Pay", "name: Pay the roofer");
    write(bench.dir.path(), &edited);
    assert_eq!(bench.steward().apply_decision(ask).await.unwrap(), ApplyOutput::ChangedMeanwhile);
    assert_eq!(bench.task(), edited);
    assert_eq!(bench.see("run/2").await.task_checks[0].question.subject.task_name, "Pay the roofer");
}

fn write(vault: &Path, text: &str) {
    std::fs::write(vault.join("task/pay.md"), text).unwrap();
}

#[tokio::test]
async fn a_change_of_cadence_is_passed_on_once_and_only_on_a_transition() {
    let mut bench = VaultFixture::new(Mode::Shadow).await;
    std::fs::remove_file(bench.dir.path().join("signal/1.md")).unwrap();
    bench.context.index.sync_all(bench.context.writer.root(), Utc::now()).await.unwrap();
    for n in 1..=4 {
        bench.see(&format!("run-{n}/1")).await;
    }
    let passed: Vec<NewInterval> = std::iter::from_fn(|| bench.intervals.try_recv().ok()).collect();
    assert_eq!(passed.len(), 1, "{passed:?}");
    assert_eq!(passed[0].seconds, 3_600);
}

#[tokio::test]
async fn ids_that_name_several_actions_or_none_are_refused_each_in_its_own_words() {
    let bench = VaultFixture::new(Mode::Shadow).await;
    let ask = |action: &str| ResolveInput {
        kind: ResolutionKind::Undo,
        action: action.into(),
        by: "ann".into(),
        reason: None,
        edited: None,
        batch_id: None,
        resolved_by: Default::default(),
    };
    let click = || WorkflowRef { id: "undo".into(), run_id: "click".into() };
    for (action, status, word) in [("ffff", 404, "no action"), ("fff", 400, "hex digits"), ("no id", 400, "hex digits")]
    {
        let refused = bench.context.handle_resolution(ask(action), click()).await.unwrap();
        let ResolveOutput::Refused { status: found, message, .. } = refused else { panic!("{refused:?}") };
        assert!(found == status && message.contains(word), "{action}: {found} {message}");
    }
    let seen = bench.see("run/1").await;
    let ApplyOutput::Filed { action_id, record, .. } =
        bench.steward().apply_decision(apply_ask(&seen, "run/1")).await.unwrap()
    else {
        panic!("not filed")
    };
    let text = std::fs::read_to_string(bench.dir.path().join(record.as_str())).unwrap();
    let other = text.replace(action_id.as_str(), &format!("{}0000000000", &action_id.as_str()[..6]));
    assert_ne!(other, text);
    // A copy is the same action. A record whose id has the same first digits is another one.
    let said = [("copy", &text, "changed nothing"), ("other", &other, "more digits")];
    for (slug, text, word) in said {
        let path = RecordPath::parse(&format!("event/steward-action-{slug}.md")).unwrap();
        std::fs::write(bench.dir.path().join(path.as_str()), text).unwrap();
        bench.context.reindex_paths(&[&path]).await.unwrap();
        let refused = bench.context.handle_resolution(ask(&action_id.as_str()[..6]), click()).await.unwrap();
        let ResolveOutput::Refused { status, message, .. } = refused else { panic!("{refused:?}") };
        assert!(status == 400 && message.contains(word), "{slug}: {status} {message}");
    }
}

#[tokio::test]
async fn only_events_that_have_served_and_are_old_are_purged_and_twice_is_once() {
    use steward_domain::signals::stream::{EventStatus, IncomingEvent, StreamEvent};
    let bench = VaultFixture::new(Mode::Live).await;
    let now = Utc::now();
    for (id, status, age) in [
        ("old", EventStatus::Extracted, 8),
        ("older", EventStatus::Extracted, 9),
        ("young", EventStatus::Extracted, 6),
        ("parked", EventStatus::Parked, 30),
        ("waiting", EventStatus::New, 30),
    ] {
        let incoming = IncomingEvent { source_id: id, pattern: "x:y", text: "paid", ..IncomingEvent::default() };
        let event = StreamEvent::new("mail", &incoming, now - chrono::TimeDelta::days(age));
        let event = StreamEvent { status, ..event };
        let path = RecordPath::parse(&format!("stream/mail/{id}.md")).unwrap();
        bench.context.writer.create_file(&path, event.render().as_bytes()).unwrap();
    }
    bench.context.index.sync_all(bench.context.writer.root(), now).await.unwrap();
    let step = async || purge::purge_events(&bench.context, &PurgeInput { limit: 1 }, now).await.unwrap();
    assert_eq!(step().await, PurgeOutput { gone: 1, more: true });
    assert_eq!(step().await, PurgeOutput { gone: 1, more: true });
    assert_eq!(step().await, PurgeOutput { gone: 0, more: false });
    let mail = &bench.context.index.signals().list_stream_counts().await.unwrap()[0];
    assert_eq!((mail.extracted, mail.parked, mail.new), (1, 1, 1));
}

/// A person lowers a ceiling and confirms at once: nobody has told the index yet. The rest of the vault is not read for it.
#[tokio::test]
async fn a_ceiling_that_was_just_lowered_holds_a_confirmation_and_no_other_file_is_read_for_it() {
    type Edit = fn(&Path);
    let edits: [(&str, Edit); 4] = [
        ("the matter", |vault| {
            std::fs::write(vault.join("matter/m.md"), "---\ntype: matter\nname: M\nsteward_ceiling: ask\n---\n")
                .unwrap();
        }),
        ("its note", |vault| {
            let note = "---\ntype: matter\nname: M\nsteward:\n  ceiling: ask\n---\n";
            std::fs::write(vault.join("matter/m.md"), note).unwrap();
        }),
        ("a new instinct of the source", |vault| {
            std::fs::create_dir_all(vault.join("instinct")).unwrap();
            std::fs::write(vault.join("instinct/bank.md"), "---\ntype: instinct\nceiling: ask\n---\n").unwrap();
        }),
        ("the matter to which the task was just moved", |vault| {
            std::fs::write(vault.join("matter/n.md"), "---\ntype: matter\nname: N\nsteward_ceiling: ask\n---\n")
                .unwrap();
            let moved = "---\ntype: task\nname: Pay\nstate: open  # by hand\nparent_matter: n\n---\n";
            std::fs::write(vault.join("task/pay.md"), moved).unwrap();
        }),
    ];
    for (what, edit) in edits {
        let mut bench = VaultFixture::new(Mode::Live).await;
        bench.context.settings.policy.state_change_ceiling = Ceiling::Confirm;
        let ask = apply_ask(&bench.see("run/1").await, "run/1");
        let ApplyOutput::Filed { action_id, disposition: Disposition::Pending, .. } =
            bench.steward().apply_decision(ask).await.unwrap()
        else {
            panic!("it waits for a person")
        };
        edit(bench.dir.path());
        let quiet = bench.dir.path().join("task/quiet.md");
        std::fs::write(&quiet, "---\ntype: task\nname: Renamed\nstate: open\nparent_matter: m\n---\n").unwrap();
        let before = bench.task();
        let ask = ResolveInput {
            kind: ResolutionKind::Confirm,
            action: action_id.to_string(),
            by: "ann".into(),
            reason: None,
            edited: None,
            batch_id: None,
            resolved_by: Default::default(),
        };
        let workflow = WorkflowRef { id: "confirm".into(), run_id: "c/1".into() };
        let resolved = bench.context.handle_resolution(ask, workflow).await.unwrap();
        let expected = ResolutionRefusal::HumanOnly { id: action_id.to_string() };
        assert!(
            matches!(&resolved, ResolveOutput::Refused { refusal, .. } if *refusal == expected),
            "{what}: {resolved:?}"
        );
        assert_eq!(bench.task(), before, "{what}");
        let known =
            bench.context.index.read().list_tasks_of_matter(&RecordPath::parse("matter/m.md").unwrap()).await.unwrap();
        assert!(known.iter().any(|task| task.name == "Q"), "{what}: {known:?}");
    }
}
