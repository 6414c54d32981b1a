//! Open questions: what ends them, and which signals they withhold.

use super::*;
use steward_domain::gates::result::{GateName, GateResult};
use steward_domain::record::content_hash::hash_content;
use steward_domain::record::frontmatter;
use steward_domain::record::schema::NoteAccess;
use steward_domain::signals::route::{ProposalDoubt, question_id};

fn asks(slug: &str, clock: &'static str) -> impl FnOnce(&mut AuditDraft) {
    let target = path(&format!("task/{slug}.md"));
    move |draft| {
        (draft.decision, draft.disposition, draft.proposed_state) =
            (Judgement::NeedsInput, Disposition::Recorded, None);
        (draft.target, draft.timestamp) = (target, noon(clock));
    }
}

/// A clerk's decision about a task that cites these signals.
fn decides(slug: &str, clock: &'static str, signals: &'static [&str]) -> impl FnOnce(&mut AuditDraft) {
    let target = path(&format!("task/{slug}.md"));
    move |draft| {
        (draft.decision, draft.disposition, draft.proposed_state) =
            (Judgement::StillActive, Disposition::Recorded, None);
        (draft.target, draft.timestamp) = (target, noon(clock));
        signals.iter().for_each(|signal| cite(draft, &format!("signal/{signal}.md")));
    }
}

async fn asking(bench: &Bench, clock: &str) -> Vec<String> {
    bench.sync(clock).await;
    let rows = bench.index.read().list_open_questions(100, tonight()).await.unwrap();
    rows.iter().map(|row| row.target.slug().to_owned()).collect()
}

fn dismissed(bench: &Bench, task: &str, question: &ActionId) {
    let name = format!("{task}-dismissed");
    bench.put(&format!("event/steward-action-dismissed-{name}.md"), {
        let mut resolution = draft(&name);
        answer(&mut resolution, ActionKind::Dismissed, question);
        resolution.target = path(&format!("task/{task}.md"));
        let link = ChainLink { seq: 90, prev: ContentHash::genesis() };
        AuditRecord::from_draft(resolution, Vec::new(), link).render().unwrap()
    });
}

/// Withholds a signal because of a question, as the router does.
async fn withhold(bench: &Bench, signal: &str, question: &ActionId) {
    let deferral = RouteDeferral {
        acts: true,
        until: noon("20:00:00"),
        now: noon("08:00:00"),
        filed: false,
        reason: format!("withheld: {question}"),
        question: Some(question.clone()),
        basis: None,
    };
    bench.index.signals().record_route_deferral(&path(signal), &deferral).await.unwrap();
}

#[tokio::test]
async fn what_asks_is_told_until_it_is_answered_or_closed_or_asked_anew_and_time_ends_nothing() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    for task in ["old", "kept", "again", "answered", "closed"] {
        bench.task(task, "m", "");
    }
    bench.action("calm", decides("kept", "09:00:30", &[]));
    bench.action("old", |draft| {
        asks("old", "07:59:59")(draft);
        draft.timestamp = at("2025-01-01");
    });
    bench.action("kept", asks("kept", "09:01:00"));
    bench.action("again-1", asks("again", "09:02:00"));
    let question = bench.action("answered", asks("answered", "09:03:00"));
    bench.action("closed", asks("closed", "09:04:00"));
    bench.action("of-a-matter", |draft| {
        asks("x", "09:05:00")(draft);
        draft.target = path("matter/m.md");
    });
    assert_eq!(asking(&bench, "10:00:00").await, ["m", "closed", "answered", "again", "kept", "old"], "newest first");
    assert_eq!(bench.index.read().list_open_questions(2, tonight()).await.unwrap().len(), 2);

    dismissed(&bench, "answered", &question);
    bench.task("closed", "m", "state: done\n");
    assert_eq!(asking(&bench, "11:00:00").await, ["m", "again", "kept", "old"]);
    bench.action("noted", |draft| {
        (draft.decision, draft.disposition, draft.target) =
            (Judgement::StillActive, Disposition::Live, path("task/kept.md"));
        (draft.class, draft.timestamp) = (Some(MutationClass::ContextEdit), noon("09:35:00"));
    });
    assert_eq!(asking(&bench, "11:30:00").await, ["m", "again", "kept", "old"], "a note beside it answers nothing");
    bench.action("kept-2", asks("kept", "09:40:00"));
    assert_eq!(
        asking(&bench, "12:00:00").await,
        ["kept", "m", "again", "old"],
        "asked twice is one question, the newer"
    );
    bench.remove("event/steward-action-dismissed-answered-dismissed.md");
    bench.remove("event/steward-action-kept-2.md");
    assert_eq!(asking(&bench, "12:30:00").await, ["m", "answered", "again", "kept", "old"], "as the records tell it");
}

#[tokio::test]
async fn only_a_change_by_newer_evidence_ends_a_question() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.signal("before", "task/t.md", "");
    bench.sync("08:00:00").await;
    bench.action("question", asks("t", "09:00:00"));
    assert_eq!(asking(&bench, "09:00:01").await, ["t"]);
    bench.action("quiet", decides("t", "09:30:00", &[]));
    bench.action("on-the-old", decides("t", "10:00:00", &["before"]));
    bench.action("routed", |draft| {
        decides("t", "10:30:00", &["before"])(draft);
        (draft.decision, draft.clerk, draft.disposition) = (Judgement::LikelyDone, None, Disposition::Pending);
    });
    assert_eq!(asking(&bench, "11:00:00").await, ["t"]);
    bench.signal("news", "task/t.md", "");
    assert_eq!(asking(&bench, "12:00:00").await, ["t"], "a signal that no check has weighed decides nothing");
    bench.action("routed-too", |draft| {
        decides("t", "12:10:00", &["news"])(draft);
        draft.clerk = None;
    });
    assert_eq!(asking(&bench, "12:15:00").await, ["t"], "the router decides nothing");
    bench.action("still-active", decides("t", "12:20:00", &["news"]));
    assert_eq!(asking(&bench, "12:25:00").await, ["t"], "a clerk that changes nothing decides nothing");
    let closed = |gates: &[GateName]| -> Vec<GateResult> {
        let gate = |&gate: &GateName| GateResult { gate, open: false, found: String::new(), needed: String::new() };
        gates.iter().map(gate).collect()
    };
    let table = [
        ("offered", Disposition::Pending, MutationClass::StateChange, closed(&[GateName::Confidence])),
        (
            "held-in-shadow",
            Disposition::Shadow,
            MutationClass::StateChange,
            closed(&[GateName::Mode, GateName::Discretion]),
        ),
        ("aside", Disposition::Live, MutationClass::ContextEdit, Vec::new()),
    ];
    for (name, disposition, class, gates) in table {
        bench.action(name, |draft| {
            decides("t", "12:30:00", &["news"])(draft);
            (draft.decision, draft.disposition, draft.class, draft.gates) =
                (Judgement::LikelyDone, disposition, Some(class), gates);
        });
        assert_eq!(asking(&bench, "12:35:00").await, ["t"], "{name}");
    }
    for (disposition, gates) in [(Disposition::Shadow, closed(&[GateName::Mode])), (Disposition::Live, Vec::new())] {
        bench.action("decided", |draft| {
            decides("t", "12:40:00", &["news"])(draft);
            (draft.decision, draft.disposition, draft.class, draft.gates) =
                (Judgement::LikelyDone, disposition, Some(MutationClass::StateChange), gates);
        });
        assert_eq!(asking(&bench, "13:00:00").await, Vec::<String>::new(), "{disposition:?}");
        bench.remove("event/steward-action-decided.md");
        assert_eq!(asking(&bench, "13:01:00").await, ["t"]);
    }
}

#[tokio::test]
async fn what_was_withheld_is_met_again_once_its_record_was_changed() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    let question = bench.action("question", asks("t", "07:00:00"));
    bench.signal("hand", "task/t.md", "");
    bench.signal("ours", "task/t.md", &format!("status: skipped\nreason: 'withheld: {question}'\n"));
    bench.sync("08:00:00").await;
    for signal in ["signal/hand.md", "signal/ours.md"] {
        withhold(&bench, signal, &question).await;
    }
    let met = async |clock| {
        let met = bench.index.signals().list_signals_to_route(9, noon(clock), true).await.unwrap();
        met.into_iter().map(|signal| signal.slug().to_owned()).collect::<BTreeSet<_>>()
    };
    assert_eq!(met("09:00:00").await, BTreeSet::new());
    bench.action("quiet", decides("t", "09:30:00", &[]));
    bench.sync("09:31:00").await;
    assert_eq!(met("10:00:00").await, BTreeSet::new());
    bench.action("decided", |draft| {
        decides("t", "10:30:00", &[])(draft);
        (draft.decision, draft.disposition) = (Judgement::LikelyDone, Disposition::Live);
    });
    bench.sync("11:00:00").await;
    assert_eq!(met("11:00:00").await, BTreeSet::from(["hand".to_owned(), "ours".to_owned()]));
}

#[tokio::test]
async fn a_changed_value_or_text_of_a_humans_ends_a_question_and_a_change_of_ours_does_not() {
    let text = |more: &str, body: &str| task_text("m", more).replace("body\n", body);
    for (name, edited, ends) in [
        ("value", text("due: 2026-12-01\n", "body\n"), true),
        ("text", text("", "They pay on the first.\n"), true),
        ("formatting", text("", "body\n").replace("name: Do it", "name: \"Do it\"  # so"), false),
        ("stamp", text("last_steward_check_at: 2026-11-21T10:00:00Z\n", "body\n"), false),
    ] {
        let bench = Bench::scanned().await;
        bench.matter("m");
        bench.put("task/t.md", text("", "body\n"));
        bench.sync("08:00:00").await;
        // Edits before the question do not count.
        bench.put("task/t.md", text("due: 2026-11-30\n", "body\n"));
        bench.sync("08:10:00").await;
        bench.put("task/t.md", text("", "body\n"));
        bench.sync("08:20:00").await;
        bench.action("question", asks("t", "09:00:00"));
        assert_eq!(asking(&bench, "09:00:01").await, ["t"], "{name}");
        // A change of Steward. The index reads the file first and then its audit record.
        let ours = text("related_to: [Ann]\n", "body\n");
        let document = frontmatter::read_document(ours.as_bytes()).unwrap();
        let target = path("task/t.md");
        let links = NoteAccess::unmapped().links(&target, noon("00:00:00"));
        let content = hash_content(document.fields(), document.body(), links);
        bench.put("task/t.md", &ours);
        let mut record = draft("ours");
        (record.timestamp, record.decision) = (noon("09:10:00"), Judgement::StillActive);
        let link = ChainLink { seq: 50, prev: ContentHash::genesis() };
        let record = AuditRecord::from_draft(record, Vec::new(), link).with_content(Some(content));
        bench.put("event/steward-action-ours.md", record.render().unwrap());
        assert_eq!(asking(&bench, "09:10:00").await, ["t"], "{name}: a change of Steward is no edit of a person");
        // An editor that removes a file and writes it again has edited it.
        bench.remove("task/t.md");
        bench.sync("09:20:00").await;
        bench.put("task/t.md", edited.replace("name:", "related_to: [Ann]\nname:"));
        assert_eq!(asking(&bench, "09:30:00").await.is_empty(), ends, "{name}");
        bench.index.rebuild(&bench.root, noon("10:00:00")).await.unwrap();
        assert_eq!(asking(&bench, "10:00:01").await.is_empty(), ends, "{name}: a rebuild forgets nothing");
        let (anew, _) = Index::open_or_recreate(&bench.dir.path().join("anew")).await.unwrap();
        anew.sync_all(&bench.root, noon("11:00:00")).await.unwrap();
        assert_eq!(
            anew.read().list_open_questions(9, tonight()).await.unwrap().len(),
            1,
            "{name}: where the state is lost it stays"
        );
    }
}

/// Writes a signal about the task, created at an hour.
fn put_signal(bench: &Bench, slug: &str, hour: u32, change: impl FnOnce(String) -> String) {
    let text = change(signal_text("task/t.md", &format!("2026-11-20T{hour:02}:00:00Z"), ""));
    bench.put(&format!("signal/{slug}.md"), text);
}

fn requests(text: String) -> String {
    text.replace("effect: mutation", "effect: action")
}

fn edits_owner(to: &'static str) -> impl Fn(String) -> String {
    move |text| {
        let set = format!("class: context_edit\n  set:\n    owner: {to}");
        text.replace("class: state_change\n  set:\n    state: done", &set)
            .replace("task/t.md", "matter/m.md")
            .replace("kind: task", "kind: matter")
    }
}

fn relates(verb: &'static str, member: &'static str) -> impl Fn(String) -> String {
    move |text| {
        text.replace(
            "class: state_change\n  set:\n    state: done",
            &format!("class: related\n  {verb}:\n    related_to: {member}"),
        )
    }
}

async fn doubt(bench: &Bench, signal: &str, target: &str) -> Option<ProposalDoubt> {
    bench.index.signals().find_doubt(&path(&format!("signal/{signal}.md")), &path(target)).await.unwrap()
}

#[tokio::test]
async fn newer_words_that_propose_otherwise_or_ask_something_leave_older_ones_unclear() {
    type Change = Box<dyn Fn(String) -> String>;
    let archived = |text: String| text.replace("state: done", "state: archived");
    let same: fn(String) -> String = |text| text;
    let table: Vec<(&str, Change, Change, u32, bool)> = vec![
        ("a request", Box::new(same), Box::new(requests), 11, true),
        ("an older request", Box::new(same), Box::new(requests), 9, false),
        ("another state", Box::new(same), Box::new(archived), 11, true),
        ("another state of before", Box::new(same), Box::new(archived), 9, false),
        ("the same state", Box::new(same), Box::new(same), 11, false),
        (
            "no effect",
            Box::new(same),
            Box::new(|text: String| text.replace("effect: mutation", "effect: none")),
            11,
            false,
        ),
        (
            "done by hand",
            Box::new(same),
            Box::new(|text| requests(text).replace("type: signal\n", "type: signal\nstatus: applied\n")),
            11,
            false,
        ),
        ("another owner", Box::new(edits_owner("Ann")), Box::new(edits_owner("Bob")), 11, true),
        ("a request beside an owner", Box::new(edits_owner("Ann")), Box::new(requests), 11, false),
        ("the opposite of a member", Box::new(relates("add", "Ann")), Box::new(relates("remove", "Ann")), 11, true),
        ("the same in brackets", Box::new(relates("add", "'[[Ann]]'")), Box::new(relates("remove", "Ann")), 11, true),
        (
            "the same wish in brackets",
            Box::new(relates("add", "'[[Ann]]'")),
            Box::new(relates("add", "Ann")),
            11,
            false,
        ),
        ("another member", Box::new(relates("add", "Ann")), Box::new(relates("remove", "Bob")), 11, false),
    ];
    for (name, older, newer, hour, unclear) in table {
        let bench = Bench::scanned().await;
        bench.matter("m");
        bench.task("t", "m", "");
        put_signal(&bench, "s", 10, older);
        put_signal(&bench, "o", hour, newer);
        bench.sync("08:00:00").await;
        let problems = bench.index.read().list_problems().await.unwrap();
        assert!(problems.is_empty(), "{name}: {problems:?}");
        let target = if name.contains("owner") { "matter/m.md" } else { "task/t.md" };
        let found = doubt(&bench, "s", target).await;
        assert_eq!(found.is_some(), unclear, "{name}: {found:?}");
        let Some(ProposalDoubt::Contradicted { question, newer }) = found else { continue };
        assert_eq!(newer.iter().map(|cited| cited.reference.slug()).collect::<Vec<_>>(), ["o"], "{name}");
        assert_eq!(question, question_id(&path(target), &path("signal/o.md"), None), "{name}");
    }
}

#[tokio::test]
async fn older_messages_belong_to_the_open_question_and_after_it_to_a_new_one() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    put_signal(&bench, "older", 8, |text| text);
    bench.sync("08:30:00").await;
    assert_eq!(doubt(&bench, "older", "task/t.md").await, None);
    let first = bench.action("question", asks("t", "09:00:00"));
    bench.sync("09:00:01").await;
    assert_eq!(doubt(&bench, "older", "task/t.md").await, Some(ProposalDoubt::Asked(first.clone())));
    bench.put("signal/late.md", signal_text("task/t.md", "2026-11-21T09:30:00Z", ""));
    bench.sync("09:30:00").await;
    assert_eq!(doubt(&bench, "late", "task/t.md").await, None, "newer than the question, and nothing contradicts it");
    bench.put("signal/ask.md", requests(signal_text("task/t.md", "2026-11-21T09:40:00Z", "")));
    bench.sync("09:40:00").await;
    assert_eq!(doubt(&bench, "late", "task/t.md").await, Some(ProposalDoubt::Asked(first.clone())));
    dismissed(&bench, "t", &first);
    bench.sync("10:00:00").await;
    let second = question_id(&path("task/t.md"), &path("signal/ask.md"), Some(&first));
    let Some(ProposalDoubt::Contradicted { question, .. }) = doubt(&bench, "late", "task/t.md").await else { panic!() };
    assert_eq!(question, second, "what came after the question was not answered with it");
}

#[tokio::test]
async fn an_older_change_of_state_is_answered_with_the_question_whenever_the_router_meets_it() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    for task in ["dismissed", "edited", "quiet"] {
        bench.task(task, "m", "");
        let target = format!("task/{task}.md");
        bench.put(&format!("signal/{task}.md"), signal_text(&target, "2026-11-21T08:00:00Z", ""));
        let asking = requests(signal_text(&target, "2026-11-21T08:10:00Z", ""));
        bench.put(&format!("signal/{task}-asks.md"), asking);
    }
    bench.sync("08:30:00").await;
    let doubted = async |task: &str| doubt(&bench, task, &format!("task/{task}.md")).await;
    let first = bench.action("question", asks("dismissed", "09:00:00"));
    let second = bench.action("second", asks("edited", "09:00:01"));
    bench.sync("09:00:02").await;
    dismissed(&bench, "dismissed", &first);
    bench.task("edited", "m", "surface_class: high\n");
    bench.sync("10:00:00").await;
    assert!(asking(&bench, "10:00:01").await.is_empty());
    assert_eq!(doubted("dismissed").await, Some(ProposalDoubt::Asked(first)));
    assert_eq!(doubted("edited").await, Some(ProposalDoubt::Asked(second)));
    assert!(matches!(doubted("quiet").await, Some(ProposalDoubt::Contradicted { .. })), "nobody was asked about it");
    bench.remove("event/steward-action-dismissed-dismissed-dismissed.md");
    assert_eq!(asking(&bench, "11:00:00").await, ["dismissed"], "the record of the answer is gone");
}

#[tokio::test]
async fn what_is_withheld_is_listed_on_its_question() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    let question = bench.action("question", asks("t", "07:00:00"));
    bench.signal("hand", "task/t.md", "");
    bench.signal("ours", "task/t.md", &format!("status: skipped\nreason: 'withheld: {question}'\n"));
    bench.signal("other", "task/t.md", "status: skipped\nreason: weighed\n");
    bench.sync("08:00:00").await;
    withhold(&bench, "signal/hand.md", &question).await;
    let listed = bench.index.read().list_signals_withheld_by(&question, 9).await.unwrap();
    assert_eq!(listed.iter().map(|signal| signal.path.slug()).collect::<Vec<_>>(), ["hand", "ours"]);
    let newer = bench.action("newer", asks("t", "08:30:00"));
    bench.sync("08:30:01").await;
    assert_eq!(
        bench.index.read().list_signals_withheld_by(&newer, 9).await.unwrap(),
        listed,
        "the question that replaces it lists them too"
    );
    let reasons = async || bench.index.signals().list_route_reasons(&[path("signal/hand.md")]).await.unwrap();
    assert_eq!(reasons().await, BTreeMap::from([(path("signal/hand.md"), format!("withheld: {question}"))]));
    let seen = bench.index.read().list_signals_about(&path("task/t.md"), 9).await.unwrap();
    let reasons_seen: Vec<_> = seen.iter().filter_map(|signal| signal.reason.as_deref()).collect();
    assert_eq!(reasons_seen.len(), 3, "{reasons_seen:?}");
    bench.signal("hand", "task/t.md", "origin_at: 2026-11-20T09:00:00Z\n");
    bench.sync("09:00:00").await;
    assert!(reasons().await.is_empty(), "its content is new");
}

#[tokio::test]
async fn what_newer_words_leave_unclear_is_no_part_of_a_batch() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    for task in ["clear", "asked", "contradicted", "weighed"] {
        bench.task(task, "m", "");
        let old = |text: String| text.replace("task/t.md", &format!("task/{task}.md"));
        put_signal(&bench, &format!("{task}-old"), 8, old);
        if matches!(task, "contradicted" | "weighed") {
            put_signal(&bench, &format!("{task}-new"), 9, |text| requests(old(text)));
        }
        bench.action(task, |draft| {
            (draft.disposition, draft.pending_confirmation) = (Disposition::Pending, true);
            (draft.target, draft.class) = (path(&format!("task/{task}.md")), Some(MutationClass::StateChange));
            cite(draft, &format!("signal/{task}-old.md"));
            if task == "weighed" {
                cite(draft, "signal/weighed-new.md");
            }
        });
    }
    bench.action("question", asks("asked", "09:30:00"));
    bench.sync("10:00:00").await;
    let clusters = bench.index.actions().list_pending_clusters(1, tonight()).await.unwrap();
    let ids: BTreeSet<ActionId> = clusters.into_iter().flat_map(|cluster| cluster.ids).collect();
    assert_eq!(ids, BTreeSet::from([ActionId::derive(&["clear"]), ActionId::derive(&["weighed"])]));
    for task in ["clear", "asked", "contradicted", "weighed"] {
        let id = ActionId::derive(&[task]);
        let record = bench.index.actions().action_by_id(&id).await.unwrap().unwrap().path;
        assert_eq!(bench.index.actions().is_unclear(&record).await.unwrap(), !ids.contains(&id), "{task}");
    }
}
