//! Runs signals of every kind through whole rounds: each is applied, proposed or skipped, and only once.

mod note_policy;

use super::*;
use crate::vault::tests::{VaultFixture, apply_ask};
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::gates::result::GateName;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::RecordKind;
use steward_vault::gates::stop;
use steward_workflows::activities::{ApplyOutput, ResolveInput, ResolveOutput};

fn run() -> WorkflowRef {
    WorkflowRef { id: "al-signal-router".into(), run_id: "run".into() }
}

fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap()
}

fn signal(target: &str, proposal: &str) -> String {
    let kind = target.split('/').next().unwrap();
    format!(
        "---\ntype: signal\ncreated: 2026-11-20\nsource_event_path: stream/mail/1.md\nsource_type: mail:bank\nraw_quote: so it is\ntarget_kind: {kind}\n\
         target_path: {target}\ntarget_confidence: 0.99\neffect: mutation\nmutation_proposal: {proposal}\n\
         effect_confidence: 0.99  # sure\nstatus: unrouted # new\n---\nwords\n"
    )
}

impl VaultFixture {
    fn put(&self, name: &str, text: &str) {
        let file = self.dir.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        self.put_event();
    }

    /// Writes the event that the signals were read from, so that they count as written by Steward.
    fn put_event(&self) {
        let event = self.dir.path().join("stream/mail/1.md");
        std::fs::create_dir_all(event.parent().unwrap()).unwrap();
        std::fs::write(event, "---\ntype: stream\n---\n").unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    async fn sync(&self) {
        self.context.index.sync_all(self.context.writer.root(), Utc::now()).await.unwrap();
    }

    async fn route(&self) -> RouteOutput {
        self.signals().route_signals(50, run()).await.unwrap()
    }

    /// The status and the reason of a signal.
    fn standing(&self, name: &str) -> (String, Option<String>) {
        let document = frontmatter::read_document(self.read(name).as_bytes()).unwrap();
        let signal = Signal::read(document.fields()).unwrap();
        (signal.status.as_str().into(), signal.reason)
    }

    fn records(&self) -> Vec<AuditRecord> {
        let files = self.files();
        let events = files.iter().filter(|(path, _)| path.parent().unwrap().ends_with("event"));
        events.map(|(_, bytes)| AuditRecord::parse(bytes).unwrap()).collect()
    }

    /// A fixture whose stewards had their interval, so that the router may change a state.
    async fn after_the_stewards_turn(mode: Mode) -> Self {
        let mut bench = Self::new(mode).await;
        bench.context.settings.cadence.matter_seconds = 0;
        bench
    }

    /// A fixture with one signal of each class, each with a target of the right kind.
    async fn of_all_classes(mode: Mode) -> Self {
        let bench = Self::after_the_stewards_turn(mode).await;
        bench.put("matter/farm.md", "---\ntype: matter\nname: F\nowner: ann\n---\n");
        bench.put("signal/context.md", &signal("matter/m.md", "{class: context_edit, set: {owner: bob}}"));
        bench.put("signal/parent.md", &signal("task/quiet.md", "{class: parent_matter, set: {parent_matter: farm}}"));
        bench.put("signal/related.md", &signal("task/quiet.md", "{class: related, add: {related_to: '[[Eve]]'}}"));
        bench.sync().await;
        bench
    }
}

#[tokio::test]
async fn signals_of_all_classes_are_acted_upon_once_and_say_so() {
    let bench = VaultFixture::of_all_classes(Mode::Live).await;
    let report = bench.route().await;
    assert_eq!(report.dispositions.get(&Disposition::Live), Some(&4), "{report:?}");
    assert!(bench.task().contains("state: done  # by hand"));
    assert!(bench.read("matter/m.md").contains("owner: bob"));
    let quiet = bench.read("task/quiet.md");
    assert!(quiet.contains("parent_matter: farm\nrelated_to:\n  - \"[[Eve]]\"\n"), "{quiet}");
    for name in ["signal/1.md", "signal/context.md", "signal/parent.md", "signal/related.md"] {
        let id = route::action_id(&path(name)).to_string();
        assert_eq!(bench.standing(name), ("applied".into(), Some(id)));
    }
    assert!(bench.read("signal/related.md").contains("status: applied # new\n"));
    let after = bench.files();
    for _ in 0..2 {
        assert_eq!(bench.route().await, RouteOutput::default());
    }
    assert_eq!(bench.files(), after);
    assert_eq!(bench.records().len(), 4);
}

#[tokio::test]
async fn in_shadow_every_action_is_said_once_and_no_file_but_its_record_comes() {
    let bench = VaultFixture::of_all_classes(Mode::Shadow).await;
    let before = bench.files();
    let report = bench.route().await;
    assert_eq!(report.dispositions.get(&Disposition::Shadow), Some(&4), "{report:?}");
    assert_eq!(bench.route().await, RouteOutput::default());
    let after = bench.files();
    assert_eq!(after.len(), before.len() + 4);
    assert!(before.iter().all(|(path, bytes)| &after[path] == bytes));
}

#[tokio::test]
async fn what_was_said_in_shadow_is_done_once_the_mode_allows_it() {
    let mut bench = VaultFixture::of_all_classes(Mode::Shadow).await;
    bench.route().await;
    bench.context.settings.policy.mode = Mode::Live;
    let report = bench.route().await;
    assert_eq!(report.dispositions.get(&Disposition::Live), Some(&4), "{report:?}");
    assert_eq!(bench.records().len(), 8);
    assert_eq!(bench.route().await, RouteOutput::default());
}

#[tokio::test]
async fn a_crash_after_the_record_and_before_anything_knows_of_it_changes_nothing() {
    let bench = VaultFixture::of_all_classes(Mode::Live).await;
    let policy = bench.context.settings.policy.clone();
    let round = RoutingRound { acts: true, policy, workflow: run(), now: Utc::now() };
    for name in ["signal/1.md", "signal/context.md", "signal/parent.md"] {
        let reference = path(name);
        let read = bench.signals().read_signal(&round, &reference).await.unwrap().unwrap();
        let named_after = bench.context.index.signals().begin_route(&reference, true, round.now).await.unwrap();
        let RouteDecision::Planned(plan) = bench.signals().decide_route(&round, &reference, &read, named_after) else {
            panic!("skipped")
        };
        bench.context.writer.apply_plan(*plan).unwrap();
        if name == "signal/parent.md" {
            // The index knows this record, and the signal does not show it yet.
            bench.sync().await;
        }
    }
    let report = bench.route().await;
    assert!(report.errors.is_empty(), "{report:?}");
    assert_eq!(bench.records().len(), 4, "three before and one now");
    for name in ["signal/1.md", "signal/context.md", "signal/parent.md", "signal/related.md"] {
        let id = route::action_id(&path(name)).to_string();
        assert_eq!(bench.standing(name), ("applied".into(), Some(id)), "{name}");
    }
}

#[tokio::test]
async fn whoever_comes_second_finds_the_evidence_claimed() {
    let bench = VaultFixture::after_the_stewards_turn(Mode::Live).await;
    bench.put_event();
    let seen = bench.see("run/1").await;
    let ApplyOutput::Filed { action_id, .. } = bench.steward().apply_decision(apply_ask(&seen, "run/1")).await.unwrap()
    else {
        panic!("not filed")
    };
    assert_eq!(bench.route().await.skipped.get("claimed"), Some(&1));
    assert_eq!(bench.standing("signal/1.md"), ("applied".into(), Some(action_id.to_string())));
    assert_eq!(bench.records().len(), 1);

    let bench = VaultFixture::after_the_stewards_turn(Mode::Live).await;
    bench.put("instinct/bank.md", "---\ntype: instinct\nceiling: confirm\n---\n");
    bench.sync().await;
    bench.route().await;
    assert_eq!(bench.standing("signal/1.md").0, "pending");
    assert_eq!(bench.see("run/2").await.task_checks.len(), 0, "the tick asks nobody about it");
}

#[tokio::test]
async fn what_was_left_to_the_steward_says_what_became_of_it_as_soon_as_it_has_decided() {
    let bench = VaultFixture::new(Mode::Live).await;
    bench.put_event();
    bench.sync().await;
    assert_eq!(bench.route().await.skipped.get("with_the_steward"), Some(&1));
    assert_eq!(bench.route().await, RouteOutput::default(), "and is left alone until then");
    let seen = bench.see("run/1").await;
    let applied = bench.steward().apply_decision(apply_ask(&seen, "run/1")).await.unwrap();
    let ApplyOutput::Filed { action_id, .. } = applied else { panic!("not filed") };
    assert_eq!(bench.route().await.skipped.get("claimed"), Some(&1));
    assert_eq!(bench.standing("signal/1.md"), ("applied".into(), Some(action_id.to_string())));
    assert_eq!(bench.route().await, RouteOutput::default());
}

#[tokio::test]
async fn a_signal_that_no_event_of_the_vault_stands_behind_keeps_every_byte_and_is_routed_once() {
    let bench = VaultFixture::of_all_classes(Mode::Live).await;
    std::fs::remove_dir_all(bench.dir.path().join("stream")).unwrap();
    bench.put("signal/none.md", &signal("task/quiet.md", "null").replace("effect: mutation", "effect: none"));
    std::fs::remove_dir_all(bench.dir.path().join("stream")).unwrap();
    bench.sync().await;
    let names = ["context", "parent", "related", "none", "1"].map(|name| format!("signal/{name}.md"));
    let before = names.each_ref().map(|name| bench.read(name));
    assert_eq!(bench.route().await.dispositions[&Disposition::Live], 4);
    assert_eq!(names.each_ref().map(|name| bench.read(name)), before);
    assert_eq!((bench.route().await.dispositions.len(), bench.records().len()), (0, 4));
}

#[tokio::test]
async fn a_fresh_change_of_state_is_left_to_the_steward_for_an_interval() {
    let bench = VaultFixture::new(Mode::Live).await;
    std::fs::remove_file(bench.dir.path().join("signal/1.md")).unwrap();
    bench.put("task/new.md", "---\ntype: task\nparent_matter: m\n---\n");
    bench.put("signal/new.md", &signal("task/new.md", "{class: state_change, set: {state: done}}"));
    bench.sync().await;
    let report = bench.route().await;
    assert_eq!(report.skipped.get("with_the_steward"), Some(&1), "{report:?}");
    assert_eq!(bench.standing("signal/new.md"), ("unrouted".into(), None));
    let later = Utc::now() + TimeDelta::seconds(1_801);
    let waiting = async |at| bench.context.index.signals().list_signals_to_route(9, at, true).await.unwrap();
    assert_eq!(waiting(Utc::now()).await, []);
    assert_eq!(waiting(later).await, [path("signal/new.md")]);
}

#[tokio::test]
async fn at_the_first_start_an_old_change_of_state_is_left_to_the_steward_too() {
    let bench = VaultFixture::new(Mode::Live).await;
    assert!(bench.read("signal/1.md").contains("created: 2026-11-20"));
    assert_eq!(bench.route().await.skipped.get("with_the_steward"), Some(&1));
    assert!(bench.task().contains("state: open"));
}

#[tokio::test]
async fn what_is_not_acted_upon_says_why() {
    let bench = VaultFixture::new(Mode::Live).await;
    let done = "{class: state_change, set: {state: done}}";
    let ambiguous = "---\ntype: signal\ncreated: 2026-11-20\nsource_event_path: stream/mail/1.md\nsource_type: x\nraw_quote: q\ntarget_kind: task\n\
        target_candidates:\n  - {path: task/pay.md, score: 0.5}\ntarget_confidence: 0.5\neffect: mutation\n\
        effect_confidence: 0.9\n---\n";
    let table = [
        (
            "asks",
            signal("task/pay.md", done).replace("effect: mutation", "effect: action"),
            "action_pending",
            "asks_the_principal",
        ),
        (
            "nothing",
            signal("task/pay.md", done).replace("effect: mutation", "effect: none"),
            "skipped",
            "not_a_mutation",
        ),
        ("vague", signal("task/pay.md", "{class: delete}"), "skipped", "no_proposal"),
        ("away", signal("task/away.md", done), "skipped", "target_missing"),
        ("wrong", signal("task/pay.md", "{class: context_edit, set: {owner: eve}}"), "skipped", "wrong_kind"),
        (
            "nowhere",
            signal("task/quiet.md", "{class: parent_matter, set: {parent_matter: x}}"),
            "skipped",
            "parent_missing",
        ),
        ("so", signal("task/quiet.md", "{class: parent_matter, set: {parent_matter: m}}"), "skipped", "already_so"),
        ("ambiguous", ambiguous.to_owned(), "skipped", "ambiguous_target"),
    ];
    for (name, text, _, _) in &table {
        bench.put(&format!("signal/{name}.md"), text);
    }
    bench.sync().await;
    bench.route().await;
    for (name, _, status, reason) in table {
        let standing = bench.standing(&format!("signal/{name}.md"));
        assert_eq!(standing, (status.into(), Some(reason.into())), "{name}");
    }
    let told = bench.read("signal/ambiguous.md").replace("target_kind", "target_path: task/quiet.md\ntarget_kind");
    let told = told.replace("effect: mutation", &format!("mutation_proposal: {done}\neffect: mutation"));
    bench.put("signal/ambiguous.md", &told);
    bench.sync().await;
    assert_eq!(bench.route().await.skipped.get("with_the_steward"), Some(&1), "a human has named the one");
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_and_hold_nobody_up() {
    let bench = VaultFixture::after_the_stewards_turn(Mode::Live).await;
    bench.put("task/broken.md", "---\ntype: task\nparent_matter: m\nstate: opne\n---\n");
    bench.put("signal/0.md", &signal("task/broken.md", "{class: related, add: {related_to: Eve}}"));
    bench.sync().await;
    let report = bench.route().await;
    assert!(report.errors.len() == 1 && report.errors[0].contains("task/broken.md: line 4: `state`"), "{report:?}");
    assert_eq!(report.dispositions.get(&Disposition::Live), Some(&1));
    assert_eq!(bench.route().await, RouteOutput::default(), "it is left alone for a while");
    assert_eq!(bench.standing("signal/0.md").0, "unrouted");
}

#[tokio::test]
async fn after_a_stop_nothing_is_routed() {
    let bench = VaultFixture::of_all_classes(Mode::Live).await;
    let stop = stop::VaultStop { at: "now".into(), by: "ann".into(), reason: None };
    stop::stop_vault(bench.context.writer.root(), &stop).unwrap();
    let before = bench.files();
    assert_eq!(bench.route().await, RouteOutput { stopped: true, ..RouteOutput::default() });
    assert_eq!(bench.files(), before);
}

#[tokio::test]
async fn a_name_that_was_taken_before_the_power_went_out_keeps_no_signal_back() {
    let mut bench = VaultFixture::of_all_classes(Mode::Live).await;
    let (now, signal) = (Utc::now(), path("signal/context.md"));
    let at = bench.context.index.signals().begin_route(&signal, true, now).await.unwrap();
    let round = RoutingRound { policy: bench.context.settings.policy.clone(), acts: true, workflow: run(), now };
    bench.context.settings.policy.mode = Mode::Shadow;
    assert!(matches!(
        bench.signals().route_signal(&round, &signal).await.unwrap(),
        RoutingOutcome::Landed(Disposition::Shadow)
    ));
    bench.context.settings.policy.mode = Mode::Live;
    // The process died before the signal was deferred, so its action is still named after that time.
    assert_eq!(bench.context.index.signals().begin_route(&signal, true, at).await.unwrap(), at);
    assert!(matches!(
        bench.signals().route_signal(&round, &signal).await.unwrap(),
        RoutingOutcome::Landed(Disposition::Live)
    ));
    assert_eq!(bench.records().len(), 2, "the shadow keeps its name, and the action has the next one");
    assert_eq!(bench.route().await.dispositions.get(&Disposition::Live), Some(&3), "the others are not kept back");
    assert!(bench.read("matter/m.md").contains("owner: bob"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_that_meet_act_upon_each_signal_once_and_agree_about_it() {
    let bench = VaultFixture::of_all_classes(Mode::Live).await;
    let signals = bench.signals();
    let runs = futures_util::future::join_all((0..4).map(|_| {
        let signals = signals.clone();
        tokio::spawn(async move { signals.route_signals(50, run()).await.unwrap() })
    }));
    let routed: Vec<RouteOutput> = runs.await.into_iter().map(Result::unwrap).collect();
    let live: u32 = routed.iter().filter_map(|r| r.dispositions.get(&Disposition::Live)).sum();
    assert_eq!(live, 4, "{routed:?}");
    assert!(routed.iter().all(|r| r.skipped.keys().all(|why| why == "claimed") && r.errors.is_empty()), "{routed:?}");
    for name in ["signal/1.md", "signal/context.md", "signal/parent.md", "signal/related.md"] {
        assert_eq!(bench.standing(name).0, "applied", "{name}");
    }
}

#[tokio::test]
async fn a_signal_whose_event_was_purged_says_what_became_of_it() {
    let bench = VaultFixture::after_the_stewards_turn(Mode::Live).await;
    let text = signal("task/quiet.md", "{class: related, add: {related_to: Eve}}").replace("mail/1.md", "mail/gone.md");
    let created = steward_domain::time::parse("2026-11-20").unwrap();
    let ours = Signal::record_path(&path("stream/mail/gone.md"), "so it is", created).unwrap();
    bench.put(ours.as_str(), &text);
    bench.put("signal/somebodys.md", &text.replace("Eve", "Zoe"));
    bench.sync().await;
    assert_eq!(bench.route().await.dispositions.get(&Disposition::Live), Some(&3));
    assert_eq!(bench.standing(ours.as_str()).0, "applied");
    assert_eq!(bench.standing("signal/somebodys.md").0, "unrouted", "what others wrote is theirs");
}

#[tokio::test]
async fn what_a_stop_met_on_its_way_is_done_once_the_vault_runs_again() {
    let bench = VaultFixture::of_all_classes(Mode::Live).await;
    let stop = stop::VaultStop { at: "now".into(), by: "ann".into(), reason: None };
    stop::stop_vault(bench.context.writer.root(), &stop).unwrap();
    let policy = bench.context.settings.policy.clone();
    let round = RoutingRound { policy, acts: true, workflow: run(), now: Utc::now() };
    let owner = bench.read("matter/m.md");
    let end = bench.signals().route_signal(&round, &path("signal/context.md")).await.unwrap();
    assert!(matches!(end, RoutingOutcome::Stopped));
    assert_eq!((bench.read("matter/m.md"), bench.records().len()), (owner, 0));
    stop::resume_vault(
        bench.context.writer.root(),
        &stop::VaultStop { at: "now".into(), by: "ops".into(), reason: None },
    )
    .unwrap();
    let later = Utc::now() + TimeDelta::seconds(11);
    assert!(
        bench
            .context
            .index
            .signals()
            .list_signals_to_route(9, later, true)
            .await
            .unwrap()
            .contains(&path("signal/context.md"))
    );
    let round = RoutingRound { now: later, ..round };
    let end = bench.signals().route_signal(&round, &path("signal/context.md")).await.unwrap();
    assert!(matches!(end, RoutingOutcome::Landed(Disposition::Live)));
    assert!(bench.read("matter/m.md").contains("owner: bob"));
    assert_eq!(bench.records().len(), 1);
}

#[tokio::test]
async fn what_no_steward_weighed_beside_the_words_of_others_waits_for_a_human() {
    let bench = VaultFixture::after_the_stewards_turn(Mode::Live).await;
    let other = signal("task/pay.md", "null").replace("effect: mutation", "effect: action");
    bench.put("signal/other.md", &other.replace("mail:bank", "mail:roofer").replace("mail/1.md", "mail/2.md"));
    bench.sync().await;
    let report = bench.route().await;
    assert_eq!(report.dispositions, [(Disposition::Pending, 1)].into(), "{report:?}");
    assert!(bench.task().contains("state: open"));
    assert!(bench.records()[0].draft.gates.iter().any(|gate| gate.gate == GateName::Steward && !gate.open));
}

#[tokio::test]
async fn an_answer_to_a_routed_change_shows_on_its_signal() {
    let edited = |to| Some(Mutation::StateChange { to });
    for (kind, edited, ceiling, status, state) in [
        (ResolutionKind::Confirm, None, "confirm", "applied", "done"),
        (ResolutionKind::Confirm, edited(RecordState::Done), "confirm", "applied", "done"),
        (ResolutionKind::Confirm, edited(RecordState::Archived), "confirm", "skipped", "archived"),
        (ResolutionKind::Dismiss, None, "confirm", "skipped", "open"),
        (ResolutionKind::Undo, None, "act", "skipped", "open"),
    ] {
        let bench = VaultFixture::after_the_stewards_turn(Mode::Live).await;
        bench.put("instinct/bank.md", &format!("---\ntype: instinct\nceiling: {ceiling}\n---\n"));
        bench.sync().await;
        bench.route().await;
        let action = route::action_id(&path("signal/1.md")).to_string();
        let ask = ResolveInput {
            kind,
            action,
            by: "ann".into(),
            reason: None,
            edited,
            batch_id: None,
            resolved_by: Default::default(),
        };
        let answered = bench.context.handle_resolution(ask, run()).await.unwrap();
        assert!(matches!(answered, ResolveOutput::Done { .. }), "{answered:?}");
        assert_eq!(bench.standing("signal/1.md").0, status);
        assert!(bench.task().contains(&format!("state: {state}")), "{}", bench.task());
        assert_eq!(bench.route().await, RouteOutput::default());
    }
}

#[tokio::test]
async fn a_ceiling_that_was_set_since_holds_a_confirmation_back() {
    for (file, text) in [
        ("matter/m.md", "---\ntype: matter\nname: M\nstate: open\nsteward_ceiling: ask\n---\n"),
        ("instinct/bank.md", "---\ntype: instinct\nceiling: ask\n---\n"),
    ] {
        let bench = VaultFixture::after_the_stewards_turn(Mode::Live).await;
        bench.put("instinct/bank.md", "---\ntype: instinct\nceiling: confirm\n---\n");
        bench.sync().await;
        bench.route().await;
        bench.put(file, text);
        let action = route::action_id(&path("signal/1.md")).to_string();
        let ask = ResolveInput {
            kind: ResolutionKind::Confirm,
            action,
            by: "ann".into(),
            reason: None,
            edited: None,
            batch_id: None,
            resolved_by: Default::default(),
        };
        let refused = bench.context.handle_resolution(ask, run()).await.unwrap();
        assert!(matches!(refused, ResolveOutput::Refused { status: 400, .. }), "{file}: {refused:?}");
        assert!(bench.task().contains("state: open"));
    }
}

#[tokio::test]
async fn a_task_is_sent_nowhere_that_the_note_there_forbids() {
    for (note, status) in
        [("", None), ("steward:\n  classes: [related]\n", Some(400)), ("steward_ceiling: ask\n", Some(400))]
    {
        let bench = VaultFixture::new(Mode::Live).await;
        bench.put("instinct/mail-bank.md", "---\ntype: instinct\nsource: mail:bank\nceiling: confirm\n---\n");
        for (slug, note) in [("farm", ""), ("house", note)] {
            bench.put(&format!("matter/{slug}.md"), &format!("---\ntype: matter\nname: N\nstate: open\n{note}---\n"));
        }
        let proposal = "{class: parent_matter, set: {parent_matter: farm}}";
        bench.put("signal/move.md", &signal("task/quiet.md", proposal));
        bench.sync().await;
        bench.route().await;
        let action = route::action_id(&path("signal/move.md")).to_string();
        let edited = Some(Mutation::ParentMatter { to: path("matter/house.md") });
        let ask = ResolveInput {
            kind: ResolutionKind::Confirm,
            action,
            by: "ann".into(),
            reason: None,
            edited,
            batch_id: None,
            resolved_by: Default::default(),
        };
        let answered = bench.context.handle_resolution(ask, run()).await.unwrap();
        let refused = match &answered {
            ResolveOutput::Refused { status, .. } => Some(*status),
            ResolveOutput::Done { .. } => None,
        };
        assert_eq!(refused, status, "{note}: {answered:?}");
        assert_eq!(bench.read("task/quiet.md").contains("parent_matter: house"), status.is_none(), "{note}");
    }
}

/// A signal with a request, an hour after all others.
fn newer_request(target: &str) -> String {
    let asks = signal(target, "null").replace("effect: mutation", "effect: action");
    asks.replace("mail:bank", "mail:unknown")
        .replace("mail/1.md", "mail/2.md")
        .replace("2026-11-20", "2026-11-20T01:00:00Z")
}

#[tokio::test]
async fn what_newer_words_contradict_becomes_one_question_and_is_listed_on_it() {
    for mode in [Mode::Live, Mode::Shadow] {
        let bench = VaultFixture::after_the_stewards_turn(mode).await;
        bench.put("signal/2.md", &signal("task/pay.md", "{class: state_change, set: {state: archived}}"));
        bench.put("signal/asks.md", &newer_request("task/pay.md"));
        bench.sync().await;
        for _ in 0..3 {
            bench.route().await;
        }
        let records = bench.records();
        assert_eq!(records.len(), 1, "{mode:?}: {records:#?}");
        assert!(records[0].draft.is_question() && bench.task().contains("state: open"), "{mode:?}");
        let question = &records[0].draft.id;
        let asked = bench.context.index.read().list_open_questions(9, Utc::now()).await.unwrap();
        assert_eq!(asked.iter().map(|row| &row.id).collect::<Vec<_>>(), [question], "{mode:?}");
        let listed = bench.context.index.read().list_signals_withheld_by(question, 9).await.unwrap();
        let listed: Vec<_> = listed.iter().map(|signal| signal.path.slug()).collect();
        assert_eq!(listed, ["1", "2"], "{mode:?}");
        let noted = bench.standing("signal/1.md");
        let expected = if mode == Mode::Live {
            ("skipped".to_owned(), Some(format!("withheld: {question}")))
        } else {
            ("unrouted".to_owned(), None)
        };
        assert_eq!(noted, expected, "{mode:?}");
    }
}

#[tokio::test]
async fn a_crash_after_a_question_was_filed_files_no_other() {
    let bench = VaultFixture::after_the_stewards_turn(Mode::Live).await;
    bench.put("signal/asks.md", &newer_request("task/pay.md"));
    bench.sync().await;
    let policy = bench.context.settings.policy.clone();
    let round = RoutingRound { acts: true, policy, workflow: run(), now: Utc::now() };
    let reference = path("signal/1.md");
    for synced in [false, true] {
        let read = bench.signals().read_signal(&round, &reference).await.unwrap().unwrap();
        let named_after = bench.context.index.signals().begin_route(&reference, true, round.now).await.unwrap();
        let routed = bench.signals().decide_route(&round, &reference, &read, named_after);
        if synced {
            assert!(matches!(routed, RouteDecision::Skipped(RouteSkip::Withheld(_))), "{routed:?}");
        } else {
            let RouteDecision::QuestionPlanned(plan) = routed else { panic!("{routed:?}") };
            assert!(!bench.context.writer.apply_plan(*plan.clone()).unwrap().repeated);
            assert!(bench.context.writer.apply_plan(*plan).unwrap().repeated);
            bench.sync().await;
        }
    }
    bench.route().await;
    assert_eq!(bench.records().len(), 1);
}

#[tokio::test]
async fn the_reason_of_a_failure_is_kept_with_the_signal() {
    let bench = VaultFixture::after_the_stewards_turn(Mode::Live).await;
    bench.put("signal/form.md", &signal("task/quiet.md", "{class: related, add: {related_to: Eve}}"));
    bench.put("task/quiet.md", "---\ntype: task\nparent_matter: m\nrelated_to: Bob\n---\n");
    bench.put("task/pay.md", "---\ntype: [\n---\n");
    bench.sync().await;
    bench.route().await;
    let signals = [path("signal/1.md"), path("signal/form.md")];
    let reasons = bench.context.index.signals().list_route_reasons(&signals).await.unwrap();
    assert!(reasons[&signals[0]].contains("task/pay.md: failed to"), "{reasons:?}");
    assert!(reasons[&signals[1]].starts_with("wrong_form: `related_to` of task/quiet.md is not a list"), "{reasons:?}");
}
