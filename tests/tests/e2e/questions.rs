//! A question stays until a person resolves it, and a proposal that newer messages contradict is not made beside it.

use serde_json::{Value, json};
use std::path::PathBuf;
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::plan::Disposition;
use steward_tests::clerk::{Clerk, Says};
use steward_tests::past;
use steward_tests::steward::Steward;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

const PAYMENT: &str = "task/hollins-final-payment.md";
/// "Settled in full" and "cross it off": both older than the payment that bounced.
const OLDER: u64 = 2;

/// A fresh example vault, and the binary on it.
async fn example(world: &World) -> (PathBuf, Steward) {
    let vault = world.folder.join("example");
    world.run(&["example", vault.to_str().unwrap()]).await.expect(0);
    (vault.clone(), world.steward.with("STEWARD_VAULT", vault.display()))
}

fn records(vault: &std::path::Path) -> Vec<AuditRecord> {
    let files = std::fs::read_dir(vault.join("event")).into_iter().flatten();
    let files = files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|ext| ext == "md"));
    files.map(|path| AuditRecord::parse(&std::fs::read(path).unwrap()).unwrap()).collect()
}

async fn json(steward: &Steward, arguments: &[&str]) -> Value {
    let mut all = vec!["--json"];
    all.extend(arguments);
    steward.run(&all).await.expect(0).json()
}

async fn route(world: &World, name: &str, rounds: usize) {
    for round in 0..rounds {
        world.begin_as(&format!("{name}-{round}"), "RouterWorkflow", &Value::Null).await.result().await;
    }
}

#[tokio::test]
async fn in_the_fresh_example_a_bounced_payment_is_asked_about_until_a_human_has_edited_the_task() {
    let world = World::new().await.live();
    let (vault, mut steward) = example(&world).await;
    // The steward's time for a signal ends at once, so the router handles every signal.
    steward.set("STEWARD_CADENCE_MATTER_SECONDS", 1);
    steward.set("STEWARD_CADENCE_TASK_HIGH_SECONDS", 1);
    let _worker = world.worker_with(&steward).await;
    let matters = std::fs::read_dir(vault.join("matter")).unwrap();
    for matter in matters {
        let matter = matter.unwrap().path();
        world.begin(matter.file_stem().unwrap().to_str().unwrap()).await.result().await;
    }
    route(&world, "first", 3).await;
    let why = async || json(&steward, &["why", "hollins-final-payment"]).await;
    let asked = why().await;
    let question = asked["asks"]["id"].as_str().unwrap_or_else(|| panic!("no question: {asked:#}")).to_owned();
    let withheld = asked["asks"]["withheld"].as_array().unwrap();
    assert_eq!(withheld.len() as u64, OLDER, "{asked:#}");
    for signal in withheld {
        let path = signal["path"].as_str().unwrap();
        let explained = json(&steward, &["signals", "explain", path]).await;
        assert!(explained["why"].as_str().unwrap().starts_with("withheld: "), "{explained:#}");
    }
    let proposals = || {
        let all = records(&vault).into_iter();
        all.filter(|r| r.draft.target.as_str() == PAYMENT && r.draft.disposition != Disposition::Recorded).count()
    };
    assert_eq!(proposals(), 0, "what is older than the bounce is not proposed: {:#?}", records(&vault));

    // The task has `surface_class: high`: it is checked although nothing is new.
    let filed = records(&vault).len();
    wait::until("a check without news", async || {
        world.begin("hollins-kitchen").await.result().await;
        let still = |r: &AuditRecord| {
            r.draft.target.as_str() == PAYMENT
                && r.draft.decision.as_str() == "still_active"
                && r.draft.evidence.is_empty()
        };
        (records(&vault).len() > filed && records(&vault).iter().any(still)).then_some(())
    })
    .await;
    route(&world, "second", 2).await;
    assert_eq!(why().await["asks"]["id"], json!(question), "a quiet check ends nothing");
    assert_eq!(proposals(), 0);

    let file = vault.join(PAYMENT);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("- [ ] Receipt to Dorothea", "- [ ] Receipt to Dorothea\n- [ ] Half now"))
        .unwrap();
    wait::until("the question to end", async || why().await["asks"].is_null().then_some(())).await;
    route(&world, "third", 2).await;
    assert_eq!(proposals(), 0, "and what was withheld is not offered after all");
}

#[tokio::test]
async fn an_unknown_source_turns_a_proposal_into_a_question_and_a_dismissal_ends_it() {
    for mode in ["live", "shadow"] {
        let world = World::new().await.set("STEWARD_LIVE_MODE", mode);
        world.vault.matter("house");
        world.vault.task("rent", "house");
        let paid = Signal::done("rent");
        let asks =
            Signal { source: "mail:unknown", quote: "Which account?", proposes: "", effect: "action", ..paid.clone() };
        world.vault.signal("paid", &paid);
        world.vault.signal("asks", &Signal { created: paid.created + chrono::TimeDelta::minutes(5), ..asks });
        // No clerk answers, so only the router handles the two.
        let clerk = Clerk::start(|_| Says::Status(500, None)).await;
        let world = world.asking(&clerk).set("STEWARD_CADENCE_MATTER_SECONDS", 1);
        let _worker = world.worker().await;
        let question = wait::until("a question", async || {
            route(&world, "first", 1).await;
            world.vault.records().into_iter().find(|record| record.draft.is_question())
        })
        .await;
        let cited: Vec<_> = question.draft.evidence.iter().map(|cited| cited.reference.slug().to_owned()).collect();
        assert_eq!(cited, ["asks", "paid"], "{mode}");
        route(&world, "again", 3).await;
        assert_eq!(
            world.vault.records().len(),
            1,
            "{mode}: one question and nothing else: {:#?}",
            world.vault.records()
        );
        let why = world.json(&["why", "rent"]).await;
        assert_eq!(why["asks"]["withheld"][0]["path"], "signal/paid.md", "{mode}: {why:#}");
        let id = question.draft.id.to_string();
        world.run(&["dismiss", &id]).await.expect(0);
        wait::until("the question to end", async || world.json(&["why", "rent"]).await["asks"].is_null().then_some(()))
            .await;
        world.verify_chain().await;
    }
}

#[tokio::test]
async fn a_batch_confirms_nothing_that_newer_words_leave_unclear() {
    let world = World::new().await.live();
    world.vault.matter("house");
    for task in ["pay", "fit"] {
        world.vault.task(task, "house");
        world.vault.signal(task, &Signal { target_confidence: 0.8, ..Signal::done(task) });
    }
    let _worker = world.worker().await;
    world.tick("house").await;
    let waiting = |slug: &str| {
        let all = world.vault.records().into_iter();
        let id = all.filter(|r| r.draft.target.slug() == slug && r.draft.disposition == Disposition::Pending);
        id.map(|record| record.draft.id.to_string()).next().expect("a proposal that waits")
    };
    let (pay, fit) = (waiting("pay"), waiting("fit"));
    let asks =
        Signal { quote: "The payment bounced, what now?", proposes: "", effect: "action", ..Signal::done("pay") };
    world.vault.signal("asks", &Signal { created: asks.created + chrono::TimeDelta::minutes(5), ..asks });

    let explain = async |signal: &str| {
        let explained = world.json(&["signals", "explain", signal]).await;
        format!("{} / {}", explained["why"].as_str().unwrap(), explained["what_would_change_it"].as_str().unwrap())
    };
    wait::until("what the newer words ask to be explained", async || {
        explain("asks").await.contains("do what it asks").then_some(())
    })
    .await;
    assert!(explain("fit").await.contains(&format!("steward confirm {fit}")), "{}", explain("fit").await);
    let said = world.run(&["confirm", &pay, &fit]).await.expect(3);
    assert!(said.out.contains("1 confirmed, 1 refused") && said.out.contains("confirm it alone"), "{said}");
    assert_eq!((world.vault.state("pay").as_str(), world.vault.state("fit").as_str()), ("open", "done"));
    world.run(&["confirm", &pay]).await.expect(0);
    assert_eq!(world.vault.state("pay"), "done", "a human who looks at it alone may");
    assert!(explain("fit").await.starts_with("confirmed: "), "{}", explain("fit").await);
    let changed = world.vault.records().into_iter().find(|r| r.draft.kind.as_str().ends_with("confirmed")).unwrap();
    let of = changed.draft.target.slug().to_owned();
    world.run(&["undo", changed.draft.id.as_str()]).await.expect(0);
    assert!(explain(&of).await.starts_with("undone: "), "{}", explain(&of).await);
    world.verify_chain().await;
}

#[tokio::test]
async fn explain_and_list_say_what_really_holds_a_signal_and_leave_its_file_as_it_is() {
    let world = World::new().await.live();
    world.vault.matter("house");
    let task =
        |more: &str| format!("---\ntype: task\nname: T\nstate: open\nparent_matter: \"[[matter/house]]\"\n{more}---\n");
    let proposes = |target: &str, member: &str| {
        format!(
            "---\ntype: signal\ncreated: 2026-11-20\nsource_type: mail\nraw_quote: so it is\ntarget_kind: task\n\
             target_path: task/{target}.md\ntarget_confidence: 0.99\neffect: mutation\n\
             mutation_proposal: {{class: related, {member}}}\neffect_confidence: 0.99\nstatus: unrouted\n---\n"
        )
    };
    let table = [
        ("scalar", task("related_to: Bob\n"), "add: {related_to: Eve}", "`related_to` of task/scalar.md is not a list"),
        ("member", task("related_to: [Bob]\n"), "remove: {related_to: Eve}", "`Eve` is not in `related_to`"),
        ("broken", "---\ntype: task\nname: [\n---\n".to_owned(), "add: {related_to: Eve}", "task/broken.md"),
        ("missing", String::new(), "add: {related_to: Eve}", "there is no task/missing.md"),
    ];
    for (name, text, change, _) in &table {
        if !text.is_empty() {
            world.vault.write(&format!("task/{name}.md"), text);
        }
        world.vault.write(&format!("signal/{name}.md"), proposes(name, change));
    }
    let before: Vec<_> = table.iter().map(|(name, ..)| world.vault.read(&format!("signal/{name}.md"))).collect();
    let _worker = world.worker().await;
    route(&world, "all", 1).await;
    let listed = wait::until("the router to have met all of them", async || {
        let listed = world.json(&["signals", "list"]).await;
        listed.as_array().unwrap().iter().all(|row| row["routed"].is_string()).then_some(listed)
    })
    .await;
    for (name, _, _, says) in &table {
        let explained = world.json(&["signals", "explain", name]).await;
        assert!(explained["why"].as_str().unwrap().contains(says), "{name}: {explained:#}");
        let path = format!("signal/{name}.md");
        let row = listed.as_array().unwrap().iter().find(|row| row["path"] == *path).unwrap();
        assert!(row["routed"].as_str().unwrap().contains(says), "{name}: {row:#}");
    }
    let after: Vec<_> = table.iter().map(|(name, ..)| world.vault.read(&format!("signal/{name}.md"))).collect();
    assert_eq!(after, before, "what people wrote is theirs");
}

#[tokio::test]
async fn an_edited_expiry_neither_opens_nor_closes_the_undo_window_and_is_reported() {
    let world = World::with_one_done().await.live();
    world.vault.task("old", "house");
    world.vault.set_state("rent", "open");
    let now = chrono::Utc::now();
    let old = past::change(&world.vault, "old", now - chrono::TimeDelta::days(8));
    let fresh = past::change(&world.vault, "rent", now - chrono::TimeDelta::hours(1));
    for record in world.vault.records() {
        let path = record.draft.record_path().unwrap();
        let text = String::from_utf8(world.vault.read(path.as_str())).unwrap();
        let written = steward_domain::time::format_millis(record.undo_deadline());
        let edited = if record.draft.id.to_string() == old { "2099-01-01T00:00:00Z" } else { "2020-01-01T00:00:00Z" };
        assert!(text.contains(&written), "{text}");
        world.vault.write(path.as_str(), text.replace(&written, edited));
    }
    let _worker = world.worker().await;
    let refused = world.run(&["undo", &old]).await;
    assert!(refused.to_string().contains("can no longer be undone"), "{refused}");
    assert_eq!(world.vault.state("old"), "done");
    world.run(&["undo", &fresh]).await.expect(0);
    assert_eq!(world.vault.state("rent"), "open");
    let verified = world.run(&["audit", "verify", "--json"]).await.json();
    let faults = verified["faults"].to_string();
    for edited in ["2099-01-01", "2020-01-01"] {
        assert!(faults.contains(&format!("`expires_at` was edited to {edited}")), "{faults}");
    }
}
