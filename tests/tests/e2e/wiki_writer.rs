//! A model writes the pages of a wiki, on the real binary and with a scripted provider: what it says is found in the source, or is
//! refused; nothing is paid for twice; a stop holds it.

use crate::wiki_runs::{Desk, LEASE};
use serde_json::{Value, json};
use std::time::Duration;
use steward_tests::clerk::{Asked, Clerk, Says};
use steward_tests::run;
use steward_tests::steward::Steward;
use steward_tests::wait;
use steward_tests::world::World;

pub(crate) const QUOTE: &str = "The lease of Plot 12 ends on 31 March 2027.";

pub(crate) type Calls = Vec<(String, Value)>;

pub(crate) fn call(name: &str, arguments: Value) -> (String, Value) {
    (name.to_owned(), arguments)
}

pub(crate) fn write(kind: &str, title: &str, content: &str) -> (String, Value) {
    call("write_wiki_page", json!({"page_type": kind, "title": title, "content": content, "summary": "About it."}))
}

pub(crate) fn quoted(statement: &str) -> String {
    format!("{statement}[^1]\n\n[^1]: \"{QUOTE}\"\n")
}

/// A summary, an entity and an idea in two turns.
pub(crate) fn good_turns() -> Vec<Calls> {
    vec![
        vec![write("summary", "The lease", &quoted("The lease of plot 12 ends in 2027."))],
        vec![
            write("entity", "Plot 12", &quoted("Its lease ends on 31 March 2027.")),
            call("update_ideas", json!({"ideas": ["Who pays for it?"]})),
        ],
    ]
}

/// How many turns the model has answered in this conversation.
fn count_answers(asked: &Asked) -> usize {
    asked.body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant").count()
}

pub(crate) fn answer(turns: &[Calls], asked: &Asked) -> Says {
    turns
        .get(count_answers(asked))
        .map_or_else(|| Says::Text("I am done.".to_owned()), |calls| Says::Calls(calls.clone()))
}

/// A desk whose wiki is written by this provider, and whose pages nobody else needs to check.
pub(crate) async fn desk(name: &str, clerk: &Clerk) -> Desk {
    let world = World::new().await.asking_as(name, clerk);
    let world = if name == "openai" { world.asking(clerk) } else { world };
    // Nobody checks what it writes; the tests of the verifier set one.
    let world = world.set("STEWARD_WIKI_ALLOW_UNVERIFIED", "true").set("STEWARD_WIKI_VERIFIER", "rules");
    let desk = Desk::build(world.steward.clone(), world);
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    worker.stop().await;
    desk
}

pub(crate) async fn ingest(desk: &Desk) -> Value {
    let document = desk.write("2026-11-20-lease.md", LEASE);
    desk.wiki(&["ingest", "allotment", &document, "--json"]).await.json()[0]["ingested"].clone()
}

#[tokio::test]
async fn a_model_of_any_vendor_writes_pages_that_go_back() {
    for name in ["openai", "anthropic", "ollama"] {
        let clerk = Clerk::start(|asked| answer(&good_turns(), asked)).await;
        let desk = desk(name, &clerk).await;
        let _worker = desk.world.worker().await;
        let done = ingest(&desk).await;
        assert_eq!(
            (&done["kind"], &done["writer"]),
            (&json!("committed"), &json!(format!("{name}/scripted"))),
            "{done:#}"
        );
        let page = desk.read("entities/plot-12.md");
        assert!(page.contains("Its lease ends on 31 March 2027.[^c") && page.contains("confidence: 0.7"), "{page}");
        assert!(page.contains("See also: [[summary-2026-11-20-lease|The lease]]"), "{page}");
        assert!(desk.read("_ideas.md").contains("Who pays for it?"));
        // Every turn has one request, and each sends the words of the turns before.
        let asked = clerk.asked();
        assert_eq!(asked.iter().map(count_answers).collect::<Vec<_>>(), [0, 1, 2], "{name}");
        assert!(asked[2].body.to_string().contains("Written: plot-12.md"), "{name}");
        let why = desk.wiki(&["why", "allotment", "plot-12", "--json"]).await.expect(0).json();
        assert_eq!(why["claims"][0]["anchors"][0]["verified_against_source"], true, "{why:#}");
        desk.is_sound().await;
        let run = done["run"].as_str().unwrap().rsplit('-').next().unwrap().to_owned();
        let record = desk.wiki(&["runs", "show", &run]).await.expect(0).out;
        assert!(record.contains("plot-12"), "{record}");
        desk.wiki(&["runs", "revert", &run]).await.expect(0);
        assert!(!desk.has("entities/plot-12.md"));
        desk.is_sound().await;
    }
}

#[tokio::test]
async fn pages_that_no_second_model_checked_wait_for_a_person() {
    let clerk = Clerk::start(|asked| answer(&good_turns(), asked)).await;
    let desk = desk("openai", &clerk).await;
    let steward = desk.steward.with("STEWARD_WIKI_ALLOW_UNVERIFIED", "false");
    let _worker = desk.world.worker_with(&steward).await;
    let done = ingest(&desk).await;
    assert_eq!(done["kind"], "pending", "{done:#}");
    assert!(!desk.has("entities/plot-12.md"));
    let run = done["run"].as_str().unwrap().rsplit('-').next().unwrap().to_owned();
    let listed = desk.wiki(&["runs", "list"]).await.expect(0).out;
    assert!(listed.contains("unverified: no second model checked it"), "{listed}");
    desk.steward.run_in_terminal(&["wiki", "runs", "approve", &run], "y\n").await.expect(0);
    assert!(desk.has("entities/plot-12.md"));
    desk.is_sound().await;
}

#[tokio::test]
async fn whatever_a_model_says_only_quoted_pages_of_the_wiki_change() {
    let invented = write("entity", "Plot 13", "It is free.[^1]\n\n[^1]: \"Plot 13 is free of any charge.\"\n");
    let calls: Vec<Calls> = vec![
        vec![
            call("run_shell", json!({"command": "rm -rf /"})),
            call("delete_wiki_page", json!({"slug": "overview"})),
            call("read_page", json!({"slug": "../../../etc/passwd"})),
            invented.clone(),
            write("summary", "The lease", &quoted("The lease ends in 2027.")),
        ],
        vec![
            write("entity", "KNOWLEDGE", &quoted("Its lease ends.")),
            write("overview", "Overview", &quoted("All is well.")),
            write("concept", "../../../tmp/evil", &quoted("The lease ends.")),
            call(
                "edit_wiki_page",
                json!({"slug": "summary-2026-11-20-lease", "old": "The lease ends in 2027.", "new": ""}),
            ),
        ],
    ];
    let clerk = Clerk::start(move |asked| answer(&calls, asked)).await;
    // The verifier belongs to whoever owns the writer.
    let verifier = Clerk::start(|asked| report(asked, "nothing of this")).await;
    let desk = checked_desk(&clerk, &verifier).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let before = desk.read("KNOWLEDGE.md");
    let done = ingest(&desk).await;
    assert_eq!(done["kind"], "committed", "{done:#}");
    let mut pages: Vec<&str> = done["pages"].as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect();
    pages.sort_unstable();
    assert_eq!(pages, ["concepts/tmp-evil.md", "entities/knowledge-page.md", "summaries/summary-2026-11-20-lease.md"]);
    assert_eq!(desk.read("KNOWLEDGE.md"), before);
    let replies = clerk.asked()[1].body["messages"].to_string();
    for part in ["unknown tool", "quote not in source", "there is no page of this name"] {
        assert!(replies.contains(part), "{part}: {replies}");
    }
    desk.is_sound().await;
    // One that floods its answer is ended, and changes nothing.
    let flood: Calls = (0..10_000).map(|n| call("read_page", json!({"slug": format!("page-{n}")}))).collect();
    let clerk = Clerk::start(move |_| Says::Calls(flood.clone())).await;
    let flooded = self::desk("openai", &clerk).await;
    let _worker = flooded.world.worker().await;
    let done = ingest(&flooded).await;
    let message = done["message"].as_str().unwrap();
    assert!(message.starts_with("writer_failed: 10000 calls in one answer"), "{done:#}");
    assert_eq!(clerk.asked().len(), 3);
    // One that says nothing else is ended, and changes nothing.
    let clerk = Clerk::start(move |asked| {
        let mut call = invented.clone();
        call.1["title"] = json!(format!("Plot {}", count_answers(asked)));
        Says::Calls(vec![call])
    })
    .await;
    let stuck = self::desk("openai", &clerk).await;
    let _worker = stuck.world.worker().await;
    let done = ingest(&stuck).await;
    assert!(done["kind"] == "refused" && done["message"].as_str().unwrap().starts_with("writer_stuck"), "{done:#}");
    assert!(!stuck.has("entities/plot-0.md") && clerk.asked().len() == 3);
    stuck.is_sound().await;
}

#[tokio::test]
async fn a_server_without_tools_is_asked_by_the_form_and_one_that_fails_is_given_up() {
    let clerk = Clerk::start(|asked| {
        if asked.body.get("tools").is_some() {
            return Says::Error(400, "this model does not support tools".to_owned());
        }
        match good_turns().get(count_answers(asked)) {
            Some(calls) => {
                let form = |(name, arguments): &(String, Value)| {
                    let mut form = arguments.clone();
                    form["tool"] = json!(name);
                    form
                };
                Says::Text(json!({"calls": calls.iter().map(form).collect::<Vec<_>>()}).to_string())
            }
            None => Says::Text(json!({"calls": []}).to_string()),
        }
    })
    .await;
    for name in ["openai", "ollama"] {
        let desk = desk(name, &clerk).await;
        let _worker = desk.world.worker().await;
        let done = ingest(&desk).await;
        assert_eq!(done["kind"], "committed", "{name}: {done:#}");
        desk.is_sound().await;
    }
    let broken = Clerk::start(|asked| match asked.number {
        1 => Says::Status(429, Some("1".to_owned())),
        _ => Says::Status(503, None),
    })
    .await;
    let desk = desk("openai", &broken).await;
    let _worker = desk.world.worker().await;
    let done = ingest(&desk).await;
    assert!(done["kind"] == "refused" && done["message"].as_str().unwrap().starts_with("writer_failed"), "{done:#}");
    assert_eq!(broken.asked().len(), 4, "a 429 is no failure of the model");
    let listed = desk.wiki(&["runs", "list", "--json"]).await.expect(0).json();
    assert_eq!(listed[0]["state"], "rejected", "{listed:#}");
}

#[tokio::test]
async fn a_crash_pays_for_no_answer_twice_but_the_one_in_flight() {
    for point in run::choose_cases(
        ["before-turn:2", "after-answer:1", "after-answer:2", "after-turn:1", "after-turn:3"].to_vec(),
    ) {
        let clerk = Clerk::start(|asked| answer(&good_turns(), asked)).await;
        let desk = desk("openai", &clerk).await;
        let document = desk.write("2026-11-20-lease.md", LEASE);
        let workers = desk.ingest_over_crash(&document, point).await;
        assert_eq!(workers.len(), 2, "{point} was not met");
        assert_eq!(clerk.asked().len(), 3, "{point}");
        desk.is_sound().await;
    }
}

#[tokio::test]
async fn a_stop_holds_the_writer_and_it_goes_on_afterwards() {
    // The first turn is held, and then the last one, after which the run is staged.
    for held in [0, 2] {
        hold_turn(held).await;
    }
}

/// Stops while the turn after so many answers is under way.
async fn hold_turn(held: usize) {
    let (open, gate) = steward_tests::clerk::gate();
    let clerk = Clerk::start(move |asked| match count_answers(asked) == held {
        true => Says::Once(gate.clone(), Box::new(answer(&good_turns(), asked))),
        false => answer(&good_turns(), asked),
    })
    .await;
    let desk = desk("openai", &clerk).await;
    let _worker = desk.world.worker().await;
    let document = desk.write("2026-11-20-lease.md", LEASE);
    let arguments = ["ingest", "allotment", document.as_str(), "--json"];
    let command = desk.wiki(&arguments);
    tokio::pin!(command);
    let stopped = async {
        wait::until("the turn", async || (clerk.asked().len() == held + 1).then_some(())).await;
        desk.steward.run(&["stop"]).await.expect(0);
        open.send(true).unwrap();
        // The answer in flight is kept, and no other turn begins.
        wait::a_moment(Duration::from_secs(3)).await;
        assert_eq!(clerk.asked().len(), held + 1);
        assert!(!desk.has("entities/plot-12.md"));
        desk.steward.run(&["resume"]).await.expect(0);
    };
    let (said, ()) = tokio::join!(&mut command, stopped);
    let done = said.expect(0).json();
    assert_eq!(done[0]["ingested"]["kind"], "committed", "{done:#}");
    assert_eq!(clerk.asked().len(), 3);
    desk.is_sound().await;
}

/// Reports all claims of a question: those whose statement holds the word do not stand. No pair of claims disagrees.
pub(crate) fn report(asked: &Asked, wrong: &str) -> Says {
    if let Some(pairs) = asked.question.get("pairs") {
        let agree = |pair: &Value| json!({"id": pair["id"], "relation": "supports", "reason": "Both say so."});
        let pairs: Vec<Value> = pairs.as_array().unwrap().iter().map(agree).collect();
        return Says::Calls(vec![call("report_pairs", json!({"pairs": pairs}))]);
    }
    let verdict = |claim: &Value| {
        let is_wrong = claim["statement"].as_str().unwrap().contains(wrong);
        let support = if is_wrong { "does_not_support" } else { "supports" };
        json!({"id": claim["id"], "support": support, "reason": "The document says otherwise."})
    };
    let claims: Vec<Value> = asked.question["claims"].as_array().unwrap().iter().map(verdict).collect();
    Says::Calls(vec![call("report_claims", json!({"claims": claims}))])
}

/// A world in which another server checks what the first one writes.
pub(crate) async fn checked_desk(writer: &Clerk, verifier: &Clerk) -> Desk {
    let mut desk = desk("openai", writer).await;
    let set = |desk: &Desk, name: &str, value: &str| desk.steward.with(name, value);
    desk.steward = set(&desk, "STEWARD_WIKI_ALLOW_UNVERIFIED", "false");
    desk.steward = set(&desk, "STEWARD_WIKI_VERIFIER", "anthropic");
    desk.steward = set(&desk, "STEWARD_WIKI_VERIFIER_BASE_URL", &verifier.address);
    desk.steward = set(&desk, "STEWARD_WIKI_VERIFIER_MODEL", "checker");
    desk
}

#[tokio::test]
async fn another_model_checks_every_claim_and_the_writer_corrects_what_it_finds() {
    let writer = Clerk::start(|asked| match asked.question.get("findings") {
        None => answer(&[vec![write("summary", "The lease", &quoted("The lease ends in 2029."))]], asked),
        Some(findings) => {
            assert!(findings.to_string().contains("The document says otherwise."), "{findings}");
            // A statement of this run may be corrected, as nobody else has it.
            answer(&[vec![write("summary", "The lease", &quoted("The lease ends in 2027."))]], asked)
        }
    })
    .await;
    let verifier = Clerk::start(|asked| report(asked, "2029")).await;
    let desk = checked_desk(&writer, &verifier).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let done = ingest(&desk).await;
    assert_eq!(done["kind"], "committed", "{done:#}");
    let page = desk.read("summaries/summary-2026-11-20-lease.md");
    assert!(page.contains("The lease ends in 2027.[^c") && !page.contains("2029"), "{page}");
    assert_eq!(verifier.asked().len(), 2, "each claim is checked once in its words");
    assert!(desk.read("_log.md").contains("writer: openai/scripted, verdict: commit, verifier: anthropic/checker"));
    // The verifier sees the words around the quotes, and nothing that the writer said.
    let shown = verifier.asked()[0].question.to_string();
    assert!(shown.contains("Plot 12 lies by the river") && !shown.contains("About it."), "{shown}");
    desk.is_sound().await;
}

#[tokio::test]
async fn what_the_verifier_refuses_three_times_or_does_not_answer_is_not_committed() {
    let writer = Clerk::start(|asked| answer(&good_turns(), asked)).await;
    let strict = Clerk::start(|asked| report(asked, "")).await;
    let desk = checked_desk(&writer, &strict).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let done = ingest(&desk).await;
    let message = done["message"].as_str().unwrap_or_default();
    assert!(done["kind"] == "refused" && message.starts_with("rejected by the verifier"), "{done:#}");
    assert!(!desk.has("entities/plot-12.md"));
    // A person may know better, and says why.
    let run = done["run"].as_str().unwrap();
    let arguments = ["wiki", "runs", "override", run, "--reason", "the | letter says so"];
    let unseen = desk.steward.run(&arguments).await.expect(3);
    assert!(unseen.out.contains("wiki runs override") && !desk.has("entities/plot-12.md"), "{unseen}");
    desk.steward.run(&["wiki", "runs", "approve", run]).await.expect(3);
    desk.steward.run_in_terminal(&[&arguments[..], &["--json"]].concat(), "y\n").await.expect(2);
    desk.steward.run_in_terminal(&["wiki", "runs", "override", run, "--reason", " "], "y\n").await.expect(3);
    assert!(!desk.has("entities/plot-12.md"));
    desk.steward.run_in_terminal(&arguments, "y\n").await.expect(0);
    assert!(desk.has("entities/plot-12.md"));
    let shown = desk.steward.run(&["wiki", "runs", "show", run]).await.expect(0).out;
    assert!(
        shown.contains("committed it in a terminal against the verifier: the") && shown.contains("letter says so"),
        "{shown}"
    );
    assert!(desk.read("_log.md").contains("commit_override"));
    desk.steward.run(&["wiki", "runs", "revert", run]).await.expect(0);
    desk.is_sound().await;
    // One that answers garbage first is asked again; what it does not report does not pass.
    let garbage = Clerk::start(|asked| match asked.number {
        1 => Says::Text("All is well, commit.".to_owned()),
        _ => report(asked, "nothing of this"),
    })
    .await;
    let desk = checked_desk(&writer, &garbage).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let done = ingest(&desk).await;
    assert_eq!((done["kind"].as_str(), garbage.asked().len()), (Some("committed"), 2), "{done:#}");
    desk.is_sound().await;
}

#[tokio::test]
async fn a_person_limits_one_run_and_lets_another_go_unchecked() {
    let writer = Clerk::start(|asked| answer(&good_turns(), asked)).await;
    let strict = Clerk::start(|asked| report(asked, "")).await;
    let desk = checked_desk(&writer, &strict).await;
    let worker = desk.world.worker_with(&desk.steward).await;
    let document = desk.write("2026-11-20-lease.md", LEASE);
    let ingest = async |steward: &Steward, more: &[&str]| {
        steward.run(&[&["wiki", "ingest", "allotment", document.as_str(), "--json"], more].concat()).await
    };
    ingest(&desk.steward, &["--budget", "pages=3"]).await.expect(2);
    let spent = ingest(&desk.steward, &["--budget", "calls=1"]).await.expect(3).json();
    let message = spent[0]["ingested"]["message"].as_str().unwrap();
    assert!(message.starts_with("budget") && writer.asked().len() == 1, "{spent:#}");
    // The limit was reached, and no verifier refused it.
    let run = spent[0]["ingested"]["run"].as_str().unwrap();
    desk.steward.run(&["wiki", "runs", "override", run, "--reason", "mine"]).await.expect(3);
    let refused = ingest(&desk.steward, &["--no-verify"]).await.expect(3).err;
    assert!(refused.contains("STEWARD_WIKI_ALLOW_UNVERIFIED"), "{refused}");
    let open = desk.steward.with("STEWARD_WIKI_ALLOW_UNVERIFIED", "true");
    let held = ingest(&open, &["--no-verify"]).await.expect(3).json();
    let message = held[0]["ingested"]["message"].as_str().unwrap();
    assert!(message.contains("STEWARD_WIKI_ALLOW_UNVERIFIED"), "the process that writes decides: {held:#}");
    worker.stop().await;
    let steward = desk.steward.with("STEWARD_WIKI_ALLOW_UNVERIFIED", "true");
    let _worker = desk.world.worker_with(&steward).await;
    let done = ingest(&steward, &["--no-verify"]).await.expect(0).json();
    assert_eq!((&done[0]["ingested"]["kind"], strict.asked().len()), (&json!("committed"), 0), "{done:#}");
    desk.is_sound().await;
}

#[tokio::test]
async fn a_call_that_can_never_fit_into_the_tokens_of_a_day_ends_the_run() {
    let writer = Clerk::start(|asked| answer(&good_turns(), asked)).await;
    let desk = desk("openai", &writer).await;
    let steward = desk.steward.with("STEWARD_CAPS_WIKI_TOKENS_PER_DAY", "10");
    let _worker = desk.world.worker_with(&steward).await;
    let document = desk.write("2026-11-20-lease.md", LEASE);
    let refused = steward.run(&["wiki", "ingest", "allotment", &document, "--json"]).await.expect(3).json();
    let message = refused[0]["ingested"]["message"].as_str().unwrap();
    assert!(message.contains("raise STEWARD_CAPS_WIKI_TOKENS_PER_DAY"), "{refused:#}");
    let runs = steward.run(&["wiki", "runs", "list", "--json"]).await.expect(0).json();
    assert_eq!((&runs[0]["state"], writer.asked().len()), (&json!("rejected"), 0), "{runs:#}");
    desk.is_sound().await;
}
