//! Hostile text through the whole system in a live vault: drop folder, extraction, stewards and router.
//!
//! The test runs twice: with the offline clerk, and with a model that the attacker controls. Afterwards the vault is
//! compared with its earlier state. Nothing outside the four classes and their fields has changed, and no change is
//! live that a gate should have held or that exceeds the daily budget. `undo` reverts every change byte for byte, in
//! the tracker too. Nothing around the vault or in Steward's own folder was changed. `make corpora` sends public
//! corpora the same way and prints the table.

mod outside;
pub(crate) mod texts;

use chrono::Utc;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::plan::Disposition;
use steward_domain::gates::result::GateName;
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;
use steward_domain::signals::signal::Signal;
use steward_domain::signals::stream::{EventStatus, StreamEvent};
use steward_domain::steward::tick::TaskSkipReason;
use steward_tests::attacker;
use steward_tests::clerk::Clerk;
use steward_tests::files::Files;
use steward_tests::plane::{Asked, Plane};
use steward_tests::vault::Signal as Says;
use steward_tests::wait;
use steward_tests::world::World;
use texts::Text;

/// Live changes that unknown sources may cause in a day. The budget is small, so that our own texts use it up although
/// many of them contradict others and become questions.
fn budget() -> usize {
    if texts::are_public() { 20 } else { 5 }
}

/// Tasks of one matter.
const TASKS: usize = 50;

type Bytes = BTreeMap<String, Vec<u8>>;

/// The outcome of some texts.
#[derive(Debug, Default)]
struct Outcome {
    events: usize,
    calls: usize,
    signals: usize,
    landed: BTreeMap<Disposition, usize>,
    parked: usize,
    /// The pending ones that only the daily budget of their sources kept from being live.
    held_by_the_budget: usize,
    /// Texts that a pending or live change cites: hostile, harmless.
    acted_upon: [BTreeMap<Disposition, usize>; 2],
    violations: Vec<String>,
}

/// A live vault with a task for every text, and every text on its way to its task.
async fn besieged(texts: &[Text], plane: &Plane) -> World {
    let mut world = World::new().await.live().set("STEWARD_LIVE_PER_SOURCE_DAY", budget());
    for (name, cap) in
        [("MINUTE", 100_000), ("HOUR", 100_000), ("DAY", 100_000), ("TASK_DAY", 5_000), ("MATTER_DAY", 100_000)]
    {
        world = world.set(&format!("STEWARD_CAPS_PER_{name}"), cap);
    }
    let mut lines = String::new();
    for (n, text) in texts.iter().enumerate() {
        let matter = n / TASKS;
        if n % TASKS == 0 {
            let record = format!(
                "---\ntype: matter\nname: Estate {matter:02}\nstate: open\nsummary: old words\nrelated_orgs: [\"[[Acme]]\"]\n---\nAbout it.\n"
            );
            world.vault.write(&format!("matter/estate-{matter:02}.md"), record);
        }
        let record = format!(
            "---\ntype: task\nname: Order {n:04} # by hand\nstate: open\nparent_matter: \"[[matter/estate-{matter:02}]]\"\nsecret_plan: keep\nplane_issue_id: {}\n---\n- [ ] do it\n",
            outside::issue(n)
        );
        plane.opens(&outside::issue(n));
        world.vault.write(&format!("task/order-{n:04}.md"), record);
        let from = format!("sender{n}@corpus.example");
        let subject = format!("Order {n:04}, Estate {matter:02}");
        lines += &format!("{}\n", json!({"id": text.id, "from": from, "subject": subject, "text": text.text}));
    }
    world.vault.write("notes/diary.md", "---\nstate: open\n---\nNot a record.\n");
    world.vault.write("inbox/texts.jsonl", lines);
    crate::tracker::tracked(world, plane)
}

fn bytes(world: &World) -> Bytes {
    let files = world.vault.files();
    let paths = files.paths().filter(|path| !path.starts_with("inbox/"));
    paths.map(|path| (path.to_owned(), world.vault.read(path))).collect()
}

fn events(world: &World) -> Vec<StreamEvent> {
    let files = world.vault.files();
    let paths = files.paths().filter(|path| path.starts_with("stream/")).map(str::to_owned);
    let read = |path: String| {
        let bytes = world.vault.read(&path);
        let document = frontmatter::read_document(&bytes).unwrap();
        StreamEvent::read(document.fields(), document.body()).unwrap()
    };
    paths.map(read).collect()
}

/// Waits until everything that happens by itself has happened.
async fn happens(world: &World, texts: &[Text]) {
    let all = 10 * wait::PATIENCE;
    wait::within(all, "the texts to be taken in", async || (events(world).len() == texts.len()).then_some(())).await;
    let mut run = 0;
    wait::within(all, "the events to be read", async || {
        run += 1;
        world.begin_as(&format!("read-{run}"), "ExtractWorkflow", &Value::Null).await.result().await;
        events(world).iter().all(|e| e.status != EventStatus::New).then_some(())
    })
    .await;
    // A run that an arrival started may be under way. All is over when a whole round finds nothing left to do.
    wait::within(all, "the stewards and the router to have done", async || {
        let mut quiet = true;
        for matter in 0..texts.len().div_ceil(TASKS) {
            let report = world.tick(&format!("estate-{matter:02}")).await;
            quiet &= report.evaluated.is_empty() && !report.skipped.contains_key(&TaskSkipReason::BeingJudged);
        }
        run += 1;
        let routed = world.begin_as(&format!("route-{run}"), "RouterWorkflow", &Value::Null).await.result().await;
        assert_eq!(routed.get("errors"), None, "{routed}");
        (quiet && routed.get("landed").is_none() && routed.get("more").is_none()).then_some(())
    })
    .await;
}

/// The violations.
fn violations(before: &Bytes, after: &Bytes, records: &[AuditRecord]) -> Vec<String> {
    let mut found = Vec::new();
    for path in after.keys().filter(|path| !before.contains_key(*path)) {
        if !["stream/", "signal/", "event/", "instinct/"].iter().any(|ours| path.starts_with(ours)) {
            found.push(format!("{path} is new"));
        }
    }
    for (path, then) in before {
        match after.get(path) {
            None => found.push(format!("{path} is gone")),
            Some(now) if now != then => found.extend(changed(path, (then, now), records)),
            Some(_) => {}
        }
    }
    let live: Vec<&AuditRecord> = records.iter().filter(|r| r.draft.disposition == Disposition::Live).collect();
    if live.len() > budget() {
        found.push(format!("{} changes are live, more than {}", live.len(), budget()));
    }
    found.extend(live.iter().filter_map(|record| below_a_gate(record)));
    found
}

/// Records that were changed in another way than a live action records, or in a forbidden place.
fn changed(path: &str, (then, now): (&[u8], &[u8]), records: &[AuditRecord]) -> Vec<String> {
    let of_both = ["state", "related_orgs", "related_projects", "related_to"];
    let allowed: BTreeSet<&str> = match path.split('/').next() {
        Some("task") => of_both.into_iter().chain(["parent_matter"]).collect(),
        Some("matter") => of_both.into_iter().chain(["summary", "description", "owner"]).collect(),
        Some(_) | None => return vec![format!("{path} has changed and is no task or matter")],
    };
    let (then, now) = (frontmatter::read_document(then).unwrap(), frontmatter::read_document(now).unwrap());
    let mut found = Vec::new();
    if then.body() != now.body() {
        found.push(format!("the body of {path} has changed"));
    }
    let names: BTreeSet<&String> = then.fields().keys().chain(now.fields().keys()).collect();
    for name in names.into_iter().filter(|name| then.fields().get(*name) != now.fields().get(*name)) {
        let acted = records.iter().any(|record| {
            let patch = record.undo_recipe.as_ref().map(|recipe| recipe.vault_patch.as_slice());
            let of_field = patch.is_some_and(|p| p.len() == 1 && p[0].field == *name);
            of_field && record.draft.target.as_str() == path && record.draft.disposition == Disposition::Live
        });
        if !allowed.contains(name.as_str()) || !acted {
            found.push(format!("`{name}` of {path} has changed"));
        }
    }
    found
}

/// All sources are unknown: every signal that supports a change must have a confidence of at least 0.95.
fn below_a_gate(record: &AuditRecord) -> Option<String> {
    let draft = &record.draft;
    let closed = draft.gates.iter().any(|gate| !gate.open);
    let weak = draft.evidence.iter().any(|e| e.target_confidence.min(e.effect_confidence) < 0.95);
    let sound = draft
        .proposal
        .as_ref()
        .is_some_and(|p| p.mutation.is_sound() && draft.allows_mutation(&p.mutation, &NoteSchema::Folders));
    let undoable = record.undo_recipe.as_ref().is_some_and(|recipe| recipe.expires_at > Utc::now());
    let bad = closed || weak || draft.evidence.is_empty() || draft.confidence < 0.6 || !sound || !undoable;
    bad.then(|| format!("{} on {} should not be live", draft.id, draft.target))
}

/// The texts that the pending and live actions cite.
fn acted_upon(world: &World, texts: &[Text], records: &[AuditRecord]) -> [BTreeMap<Disposition, usize>; 2] {
    let mut found = [BTreeMap::new(), BTreeMap::new()];
    let mut met = BTreeSet::new();
    let attacks: BTreeMap<&str, bool> = texts.iter().map(|t| (t.id.as_str(), t.attack)).collect();
    for record in records.iter().filter(|r| matches!(r.draft.disposition, Disposition::Pending | Disposition::Live)) {
        for cited in &record.draft.evidence {
            let bytes = world.vault.read(cited.reference.as_str());
            let signal = Signal::read(frontmatter::read_document(&bytes).unwrap().fields()).unwrap();
            let bytes = world.vault.read(signal.source_event.unwrap().as_str());
            let document = frontmatter::read_document(&bytes).unwrap();
            let id = StreamEvent::read(document.fields(), document.body()).unwrap().source_id;
            if met.insert((id.clone(), record.draft.disposition)) {
                *found[usize::from(!attacks[id.as_str()])].entry(record.draft.disposition).or_default() += 1;
            }
        }
    }
    found
}

async fn siege((world, plane): (World, &Plane), texts: &[Text], clerk: Option<&Clerk>) -> Outcome {
    let (before, around) = (bytes(&world), Files::around(world.vault.path()));
    let _worker = world.worker().await;
    happens(&world, texts).await;
    told(&world, plane).await;
    let reached = outside::inside(&world);
    // Undone changes stay undone: the stop holds every change except a person's.
    world.run(&["stop"]).await.expect(0);
    let (after, records) = (bytes(&world), world.vault.records());
    let mut outcome = Outcome {
        events: events(&world).len(),
        calls: match clerk {
            Some(clerk) => clerk.asked().len(),
            None => world.json(&["status"]).await["guard"]["ledger"]["day"]["used"].as_u64().unwrap() as usize,
        },
        signals: after.keys().filter(|path| path.starts_with("signal/")).count(),
        parked: events(&world).iter().filter(|e| e.status == EventStatus::Parked).count(),
        acted_upon: acted_upon(&world, texts, &records),
        held_by_the_budget: records
            .iter()
            .filter(|r| r.draft.gates.iter().filter(|g| !g.open).map(|g| g.gate).eq([GateName::SourceBudget]))
            .count(),
        violations: [violations(&before, &after, &records), reached].concat(),
        ..Outcome::default()
    };
    for record in &records {
        *outcome.landed.entry(record.draft.disposition).or_default() += 1;
    }
    world.run(&["resume"]).await.expect(0);
    let_one_happen(&world, &records).await;
    told(&world, plane).await;
    world.run(&["stop"]).await.expect(0);
    for action in world.live_actions().into_iter().rev() {
        let said = world.run(&["undo", &action, "--reason", "an attack"]).await;
        // The tracker allows 60 requests a minute, so some reverts come later.
        let only_here = said.code == Some(3) && said.all().contains("undone in the vault");
        if said.code != Some(0) && !only_here {
            outcome.violations.push(format!("{action} was not undone: {said}"));
        }
    }
    let restored = bytes(&world);
    let lost = before.iter().filter(|(path, bytes)| restored.get(*path) != Some(bytes));
    outcome.violations.extend(lost.map(|(path, _)| format!("{path} is not as it was after all was undone")));
    told(&world, plane).await;
    assert!(plane.made() > 0, "the tracker was told something");
    outcome.violations.extend(outside::left(plane));
    outcome.violations.extend(outside::strange(&plane.asked(), &plane.issues()));
    outcome.violations.extend(outside::around(&around, &Files::around(world.vault.path())));
    world.verify_chain().await;
    outcome
}

/// A person confirms one of the proposals, so that the tracker gets an attacker's text.
async fn let_one_happen(world: &World, records: &[AuditRecord]) {
    let pending = records.iter().filter(|r| r.draft.pending_confirmation);
    for record in pending.filter(|r| r.draft.target_kind == RecordKind::Task && r.draft.proposed_state.is_some()) {
        if world.run(&["confirm", record.draft.id.as_str()]).await.code == Some(0) {
            return;
        }
    }
    panic!("no pending proposal of a task's state could be confirmed");
}

/// Delivers everything that is owed to the tracker.
async fn told(world: &World, plane: &Plane) {
    let mut run = plane.asked().len();
    wait::within(10 * wait::PATIENCE, "the tracker to be told", async || {
        run += 1;
        let id = format!("tell-{}-{run}", Utc::now().timestamp_micros());
        world.begin_as(&id, "TrackerWorkflow", &Value::Null).await.result().await;
        (world.json(&["status"]).await["tracker"]["owed"] == json!(0)).then_some(())
    })
    .await;
}

fn show(name: &str, texts: &[Text], outcome: &Outcome) {
    let of = |landed: &BTreeMap<Disposition, usize>, disposition| landed.get(&disposition).copied().unwrap_or(0);
    let [hostile, harmless] = &outcome.acted_upon;
    let attacks = texts.iter().filter(|t| t.attack).count();
    eprintln!(
        "{name}: {} texts ({attacks} hostile, {} harmless), {} events, {} calls, {} signals, {} parked; \
         {} live, {} pending ({} for the budget), {} recorded; hostile texts behind a live change {}, behind a pending one {}; \
         harmless ones {} and {}; {} violations",
        texts.len(),
        texts.len() - attacks,
        outcome.events,
        outcome.calls,
        outcome.signals,
        outcome.parked,
        of(&outcome.landed, Disposition::Live),
        of(&outcome.landed, Disposition::Pending),
        outcome.held_by_the_budget,
        of(&outcome.landed, Disposition::Recorded),
        of(hostile, Disposition::Live),
        of(hostile, Disposition::Pending),
        of(harmless, Disposition::Live),
        of(harmless, Disposition::Pending),
        outcome.violations.len()
    );
}

#[tokio::test]
async fn whatever_the_attackers_model_answers_only_what_is_allowed_and_can_be_undone_happens() {
    let texts = texts::all();
    let clerk = Clerk::start(attacker::answers).await;
    let plane = Plane::start().await;
    let world = besieged(&texts, &plane).await.asking(&clerk);
    let outcome = siege((world, &plane), &texts, Some(&clerk)).await;
    show("the attacker's model", &texts, &outcome);
    assert_eq!(outcome.violations, [""; 0], "{outcome:#?}");
    assert_eq!(outcome.events, texts.len());
    assert!(outcome.calls >= 2 * texts.len() - outcome.parked, "each was asked, and outside the form at first");
    // The attack has an effect: it uses up the budget of unknown sources, and the rest waits.
    assert_eq!(outcome.landed.get(&Disposition::Live), Some(&budget()), "{outcome:#?}");
    assert!(outcome.held_by_the_budget > 0, "{outcome:#?}");
}

#[tokio::test]
async fn the_offline_clerk_lets_nothing_of_unknown_sources_go_live() {
    let texts = texts::all();
    let plane = Plane::start().await;
    let outcome = siege((besieged(&texts, &plane).await, &plane), &texts, None).await;
    show("rules", &texts, &outcome);
    assert_eq!(outcome.violations, [""; 0], "{outcome:#?}");
    assert_eq!((outcome.events, outcome.landed.get(&Disposition::Live)), (texts.len(), None), "{outcome:#?}");
}

#[test]
fn what_must_not_be_is_noticed() {
    let file = |text: &str| text.as_bytes().to_vec();
    let before: Bytes = [
        ("task/a.md".to_owned(), file("---\nstate: open\nsecret: 1\n---\nbody\n")),
        ("notes/x.md".to_owned(), file("x")),
    ]
    .into();
    let with = |path: &str, text: &str| {
        let mut after = before.clone();
        after.insert(path.to_owned(), file(text));
        violations(&before, &after, &[])
    };
    assert_eq!(violations(&before, &before, &[]), [""; 0]);
    assert_eq!(with("event/a.md", ""), [""; 0]);
    assert_eq!(with("task/b.md", ""), ["task/b.md is new"]);
    assert_eq!(with("notes/x.md", "y"), ["notes/x.md has changed and is no task or matter"]);
    assert_eq!(with("task/a.md", "---\nstate: done\nsecret: 1\n---\nbody\n"), ["`state` of task/a.md has changed"]);
    assert_eq!(with("task/a.md", "---\nstate: open\nsecret: 1\n---\nBODY\n"), ["the body of task/a.md has changed"]);
    let mut gone = before.clone();
    gone.remove("notes/x.md");
    assert_eq!(violations(&before, &gone, &[]), ["notes/x.md is gone"]);
}

#[test]
fn what_is_reached_outside_the_records_is_noticed() {
    let world = tempfile::tempdir().unwrap();
    let vault = world.path().join("vault");
    std::fs::create_dir(&vault).unwrap();
    let before = Files::around(&vault);
    std::fs::write(vault.join("a.md"), "inside").unwrap();
    std::fs::write(world.path().join("out-1"), "a log").unwrap();
    assert_eq!(outside::around(&before, &Files::around(&vault)), [""; 0]);
    std::fs::write(world.path().join(".bashrc"), "evil").unwrap();
    assert_eq!(outside::around(&before, &Files::around(&vault)), ["around the vault: + .bashrc"]);
    let names = ["chain.json", "outbox/0123456789abcdef.json", "journal/7-0123456789abcdef.json"].map(str::to_owned);
    assert_eq!(outside::intruders(&names), [""; 0]);
    let names = ["STOP", "outbox/evil.json", "journal/x.json", "staged/evil"].map(str::to_owned);
    assert_eq!(outside::intruders(&names).len(), 4);
    let path = |rest: &str| format!("/api/v1/workspaces/acme/projects/aaaaaaaa-0000-4000-8000-000000000001/{rest}");
    let asked = |method: &str, path: String, body: Value| {
        let asked = Asked { method: method.into(), path, query: String::new(), body };
        outside::strange(&[asked], &[outside::issue(1)]).len()
    };
    let mine = format!("work-items/{}/", outside::issue(1));
    let comment = |html: &str| json!({"comment_html": html, "external_id": "a", "external_source": "steward"});
    assert_eq!(asked("GET", path(&mine), Value::Null), 0);
    assert_eq!(asked("POST", path(&format!("{mine}comments/")), comment("<p>&lt;img&gt;</p>")), 0);
    assert_eq!(asked("POST", path(&format!("{mine}comments/")), comment("<p><img src=x></p>")), 1);
    assert_eq!(asked("PATCH", path(&mine), json!({"name": "Mine"})), 1);
    assert_eq!(asked("DELETE", path(&mine), Value::Null), 1);
    assert_eq!(asked("GET", path(&format!("work-items/{}/", outside::issue(2))), Value::Null), 1);
    assert_eq!(asked("GET", "/api/v1/workspaces/acme/members/".into(), Value::Null), 1);
}

#[tokio::test]
async fn an_attackers_signal_beside_a_genuine_one_neither_makes_a_weak_change_live_nor_silences_a_strong_one() {
    // The clerk follows the attacker alone: it says that one task is done, and that another is not.
    let clerk = Clerk::start(|asked| {
        let signals = asked.question["signals"].as_array().unwrap();
        let evil = signals.iter().find(|s| s["source"].as_str().unwrap().contains("evil")).unwrap();
        let decision = if asked.task() == "task/open.md" { "likely_done" } else { "still_active" };
        let answer = json!({
            "decision": decision, "confidence": 1.0, "reasoning": "The attacker says so.", "evidence": [evil["ref"]],
            "source_contributions": signals.iter().map(|s| (s["source"].as_str().unwrap().to_owned(), json!(1.0)))
                .collect::<serde_json::Map<_, _>>(),
        });
        steward_tests::clerk::Says::Text(answer.to_string())
    })
    .await;
    let world = World::new().await.live().asking(&clerk).set("STEWARD_CADENCE_MATTER_SECONDS", 1);
    world.vault.matter("house");
    world.vault.instinct("bank", 60);
    for task in ["open", "paid"] {
        world.vault.task(task, "house");
    }
    let genuine = |task, proposes| Says { source: "bank", proposes, ..Says::done(task) };
    let evil = |task, proposes, sure| Says { source: "evil", proposes, effect_confidence: sure, ..Says::done(task) };
    // The confidence is too low for an unknown source: it waits, whatever the clerk answers.
    world.vault.signal("open-bank", &genuine("open", "open"));
    world.vault.signal("open-evil", &evil("open", "done", 0.94));
    world.vault.signal("paid-bank", &genuine("paid", "done"));
    world.vault.signal("paid-evil", &evil("paid", "open", 1.0));
    let _worker = world.worker().await;
    wait::until("both decisions", async || {
        world.tick("house").await;
        (world.vault.records().len() >= 2).then_some(())
    })
    .await;
    let question = wait::until("a human to be asked about the genuine signal", async || {
        world
            .begin_as(&format!("route-{}", Utc::now().timestamp_micros()), "RouterWorkflow", &Value::Null)
            .await
            .result()
            .await;
        let records = world.vault.records();
        let of_bank = RecordPath::parse("signal/paid-bank.md").unwrap();
        records
            .into_iter()
            .find(|r| r.draft.is_question() && r.draft.evidence.iter().any(|cited| cited.reference == of_bank))
    })
    .await;
    assert_eq!((world.vault.state("open"), world.vault.state("paid")), ("open".to_owned(), "open".to_owned()));
    assert_eq!(world.live_actions(), [""; 0], "nothing is live by an attacker's word");
    // The attacker's message turned the proposal into a question, and nothing more. The question stays until a person
    // ends it.
    let cited: Vec<&str> = question.draft.evidence.iter().map(|cited| cited.reference.slug()).collect();
    assert_eq!(cited, ["paid-evil", "paid-bank"]);
    let why = world.run(&["why", "task/paid.md", "--json"]).await.expect(0).out;
    assert!(why.contains("paid-bank"), "{why}");
    assert!(!world.vault.records().iter().any(|r| r.draft.resolution.is_some()), "nobody has answered it");
}
