//! Hostile text on pages: the big list of naughty strings, and scripts for every place that shows text.
//!
//! The strings are names of matters and tasks, quotes, sources, reasons, the clerk's reasoning and people's names. A
//! page that shows them must run no script, show them unchanged, and keep its width.

use crate::house::House;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use steward_domain::action::audit::{ActionKind, AuditDraft, AuditResolution, CitedSignal, WorkflowRef};
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::gates::mode::Mode;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::clerk::{ClerkMark, Judgement};
use steward_tests::api;
use steward_tests::past::Made;
use steward_tests::vault::{Signal, Vault};
use steward_tests::world::World;
use steward_tests::{browser::Browser, run};

/// The list must be at least this long.
const AT_LEAST: usize = 480;
/// The number of quotes that one record cites, and of records that cover the whole list.
const QUOTES: usize = 25;
const SCRIPTS: [&str; 16] = [
    "<script>window.__ran='a'</script>",
    "</script><script>window.__ran='b'</script>",
    "\"><img src=x onerror=window.__ran='c'>",
    "'><svg onload=window.__ran='d'>",
    "javascript:window.__ran='e'",
    "</title><script>window.__ran='f'</script>",
    "</textarea><img src=/assets/x onerror=\"window.__ran='g'\">",
    "{{ 7*7 }}${7*7}<%= 7*7 %>#{7*7}",
    "--><script>window.__ran='h'</script><!--",
    "\" autofocus onfocus=\"window.__ran='i'",
    "<iframe srcdoc=\"<script>parent.__ran='j'</script>\">",
    "<style>*{display:none}</style><link rel=stylesheet href=//evil.example>",
    "<div hx-get=/ hx-trigger=load hx-on:load=\"window.__ran='k'\">",
    "\u{202e}txt.exe\u{2066}\u{200b}\u{200b}\u{feff}",
    "<base href=//evil.example><meta http-equiv=refresh content=0;url=//evil.example>",
    "&lt;b&gt;&amp;#60;script>",
];

fn strings() -> Vec<String> {
    let file = run::project().join(".tools/blns/resources/blns.json");
    let text = std::fs::read_to_string(&file);
    let text = text.unwrap_or_else(|e| panic!("{}: {e}; run `make tools`", file.display()));
    let mut all: Vec<String> = serde_json::from_str(&text).unwrap();
    assert!(all.len() >= AT_LEAST, "only {} strings; run `make tools` again", all.len());
    all.extend(SCRIPTS.map(str::to_owned));
    all.push("W".repeat(400));
    all.push("ﷺ".repeat(60));
    all
}

/// A matter or task of this name. YAML takes JSON's way of writing a string.
fn named(vault: &Vault, path: &str, name: &str, more: &str) {
    let kind = path.split('/').next().unwrap();
    vault.write(path, format!("---\ntype: {kind}\nname: {}\nstate: open\n{more}---\n{name}\n", Value::from(name)));
}

/// Record number `n`, which cites these strings and was made from them.
fn draft(n: usize, words: &[String], at: DateTime<Utc>) -> AuditDraft {
    let asks = n % 6 == 2;
    let disposition = if asks {
        Disposition::Recorded
    } else {
        [Disposition::Live, Disposition::Pending, Disposition::Shadow][n % 3]
    };
    let word = |at: usize| words[at % words.len()].clone();
    let cited = |(at, word): (usize, &String)| CitedSignal {
        reference: RecordPath::parse(&format!("signal/s{n}-{at}.md")).unwrap(),
        source: word.chars().rev().take(200).collect(),
        note: word.chars().take(50).collect(),
        target_confidence: 0.9,
        effect_confidence: 0.9,
        supports: true,
    };
    let gate = json!([{"gate": "confidence", "open": false, "found": word(1), "needed": word(2)}]);
    AuditDraft {
        kind: ActionKind::Action,
        id: ActionId::derive(&["naughty", &n.to_string()]),
        timestamp: at,
        target: RecordPath::parse(&format!("task/t{n}.md")).unwrap(),
        target_kind: RecordKind::Task,
        named_after: None,
        class: Some(MutationClass::StateChange),
        decision: if asks { Judgement::NeedsInput } else { Judgement::LikelyDone },
        confidence: 0.9,
        mode: Mode::Live,
        disposition,
        gates: serde_json::from_value(gate).unwrap(),
        prior_state: Some(word(3)),
        proposed_state: Some(RecordState::Done),
        proposal: None,
        confirmable: true,
        pending_confirmation: disposition == Disposition::Pending,
        evidence: words.iter().enumerate().map(cited).collect(),
        source_contributions: BTreeMap::from([(word(4), 0.5)]),
        reasoning: words.join(" "),
        clerk: Some(ClerkMark { provider: word(5), model: word(6), ..ClerkMark::default() }),
        workflow: WorkflowRef { id: word(7), run_id: word(8) },
        resolution: None,
        trust: None,
        wiki: None,
    }
}

/// The person who dismisses it has one of these strings as name and reason.
fn dismissed(of: &AuditDraft, words: &[String]) -> AuditDraft {
    let answer = AuditResolution {
        action_id: of.id.clone(),
        decided_at: of.timestamp,
        by: words[0].chars().take(200).collect(),
        reason: Some(words.join(" ").chars().take(2_000).collect()),
        edited: false,
        batch_id: None,
        done: false,
        reopened: None,
        resolved_by: Default::default(),
    };
    AuditDraft {
        kind: ActionKind::Dismissed,
        id: ActionId::derive(&["dismissed", of.id.as_str()]),
        disposition: Disposition::Recorded,
        pending_confirmation: false,
        timestamp: of.timestamp + TimeDelta::seconds(1),
        resolution: Some(answer),
        ..of.clone()
    }
}

/// Asserts that all text on the pages is one of these strings. Returns the number of records.
fn fill(vault: &Vault, words: &[String]) -> usize {
    for (n, word) in words.iter().enumerate() {
        named(vault, &format!("matter/m{n}.md"), word, "");
        let quote: String = word.chars().take(200).collect();
        let source: String = quote.chars().filter(|c| !c.is_control()).collect();
        let (source, task) = (Value::from(source).to_string(), format!("t{}", n / QUOTES));
        vault.signal(&format!("q{n}"), &Signal { quote: &quote, source: &source, ..Signal::done(&task) });
    }
    let mut made = Made::new(vault);
    let (begin, many) = (Utc::now() - TimeDelta::hours(2), words.chunks(QUOTES).len());
    for (n, some) in words.chunks(QUOTES).enumerate() {
        named(vault, &format!("task/t{n}.md"), &some.join(" "), "parent_matter: \"[[matter/m0]]\"\n");
        let draft = draft(n, some, begin + TimeDelta::minutes(i64::try_from(n).unwrap()));
        made.record(draft.clone());
        if n % 6 == 1 {
            made.record(dismissed(&draft, some));
        }
    }
    many
}

/// The text as a browser shows it: runs of white space become one space, and zero-width characters are ignored.
fn plain(text: &str) -> String {
    let seen: String = text.chars().filter(|c| c.is_alphanumeric() || c.is_ascii_punctuation()).collect();
    seen
}

/// Follows a list to its end and returns the text of all its pages.
async fn read_on(page: &Browser, from: &str) -> String {
    let (mut at, mut all) = (from.to_owned(), String::new());
    loop {
        page.goto(&at).await;
        assert_eq!(page.status().await, 200, "{at}");
        page.is_sound().await;
        all.push_str(page.run("return document.querySelector('main').textContent").await.as_str().unwrap());
        let next = page.run("return document.querySelector('a[rel=next]')?.getAttribute('href') ?? null").await;
        match next.as_str() {
            Some(next) => next.clone_into(&mut at),
            None => return plain(&all),
        }
    }
}

#[tokio::test]
async fn no_words_of_others_run_or_break_a_page() {
    let Some(mut page) = Browser::open("naughty", "").await else { return };
    let (world, words) = (World::new().await, strings());
    let records = fill(&world.vault, &words);
    // Problems of unusable records quote the same strings.
    world.vault.write("task/broken.md", format!("---\ntype: task\nstate: {}\n---\n", Value::from(SCRIPTS[2])));
    world.run(&["index", "rebuild"]).await;
    let mut serve = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0").start(&["serve"]);
    serve.says("Ctrl-C ends it").await;
    let link = api::link(&serve);
    page.moves_to(link.split("/login").next().unwrap());
    page.log_in(&link).await;
    page.looks(390, false).await;

    let shown = read_on(&page, "/matters").await;
    let missing: Vec<&String> = words.iter().filter(|word| !shown.contains(&plain(word))).collect();
    assert_eq!(missing, Vec::<&String>::new(), "not shown as they are");
    page.shot("matters").await;

    let mut shown = String::new();
    for n in 0..records {
        let id = ActionId::derive(&["naughty", &n.to_string()]);
        shown.push_str(&read_on(&page, &format!("/actions/{id}")).await);
    }
    let missing: Vec<&String> = words.iter().filter(|word| !shown.contains(&plain(word))).collect();
    assert_eq!(missing, Vec::<&String>::new(), "not shown as they are");
    page.shot("why").await;

    let id = ActionId::derive(&["naughty", "3"]);
    let more = ["/", "/trust", "/fleet", "/charts", "/records/task/t0.md", "/records/matter/m0.md"].map(str::to_owned);
    for at in more.into_iter().chain([format!("/actions/{id}/undo"), "/search?kind=action".into()]) {
        page.goto(&at).await;
        assert_eq!(page.status().await, 200, "{at}");
        page.is_sound().await;
        page.shot(&format!("page{}", at.replace(['/', '?'], "-"))).await;
    }
    assert!(read_on(&page, "/search?q=script").await.len() > 1_000, "words of others are found");
    page.goto("/").await;
    assert!(page.count("section[aria-labelledby=asks] .card").await > 1);
    // The search shows the query, too.
    let base = page.run("return location.origin").await;
    for word in SCRIPTS.iter().map(|word| (*word).to_owned()).chain(words.iter().step_by(40).cloned()) {
        for fields in [&[("q", word.as_str())][..], &[("source", &word)], &[("disposition", &word), ("since", &word)]] {
            let query = reqwest::Url::parse_with_params(&format!("{}/search", base.as_str().unwrap()), fields).unwrap();
            page.goto(query.as_str()).await;
            page.is_sound().await;
        }
    }
}

#[tokio::test]
async fn a_reason_that_somebody_types_stays_a_reason() {
    let Some(house) = House::lived_in("typed").await else { return };
    let page = &house.browser;
    let reason = SCRIPTS[..9].join(" ");
    page.goto(&format!("/actions/{}/undo", house.action("rent"))).await;
    page.types(".reason input", &reason).await;
    page.press("main button[value=undo]").await;
    page.goto("/").await;
    assert!(plain(&page.text("main").await).contains(&plain(&reason)));
    page.is_sound().await;
    page.goto("/search?q=%3Cscript%3E").await;
    page.is_sound().await;
}
