//! The trust report of a vault with a known past, as text, as JSON and as a page; no server and no worker.

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use steward_domain::action::audit::{
    ActionKind, AuditDraft, AuditRecord, AuditResolution, ChainLink, CitedSignal, WorkflowRef,
};
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::{ActionId, ContentHash, Disposition};
use steward_domain::gates::mode::Mode;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::clerk::{ClerkMark, Judgement};
use steward_tests::run;
use steward_tests::steward::{Said, Steward};
use steward_tests::vault::Vault;

/// What the report of [`Past::of_a_month`] begins with.
const HEADLINE: &str = "After 1 day: let Steward change the state of tasks and matters on its own at high confidence for gmail \
                        (198 of 200 right). Keep confirming everything else.";
const HOSTILE: &str = "<script>alert(1)</script>\"'&`\u{1b}[2J";

/// A vault with a past.
struct Past {
    vault: Vault,
    steward: Steward,
    next: u64,
    prev: ContentHash,
}

impl Past {
    fn new() -> Self {
        let (folder, _) = run::new_folder();
        let vault = Vault::new(folder.join("vault"));
        let mut steward = Steward::new(&folder);
        steward.set("STEWARD_VAULT", vault.path().display());
        Self { vault, steward, next: 1, prev: ContentHash::genesis() }
    }

    fn file(&mut self, draft: AuditDraft) {
        let link = ChainLink { seq: self.next, prev: self.prev.clone() };
        let path = draft.record_path().unwrap();
        let text = AuditRecord::from_draft(draft, Vec::new(), link).render().unwrap();
        self.prev = ContentHash::hash_bytes(text.as_bytes());
        self.vault.write(path.as_str(), text);
        let head = json!({"seq": self.next, "sha256": self.prev.as_str()});
        self.vault.write(".steward/chain.json", head.to_string());
        self.next += 1;
    }

    /// A proposal in shadow mode ten days ago, and a person's reaction.
    fn proposed(&mut self, source: &str, class: MutationClass, (confidence, said): (f64, Option<ActionKind>)) {
        self.proposed_before(10, (source, class), (confidence, said));
    }

    fn proposed_before(
        &mut self,
        days: i64,
        (source, class): (&str, MutationClass),
        (confidence, said): (f64, Option<ActionKind>),
    ) {
        let number = self.next;
        let timestamp = Utc::now() - TimeDelta::days(days) + TimeDelta::minutes(i64::try_from(number).unwrap());
        let reference = RecordPath::parse(&format!("signal/s{number}.md")).unwrap();
        let draft = AuditDraft {
            kind: ActionKind::Action,
            id: ActionId::derive(&["test", &number.to_string()]),
            timestamp,
            target: RecordPath::parse(&format!("task/t{number}.md")).unwrap(),
            target_kind: RecordKind::Task,
            named_after: None,
            class: Some(class),
            decision: Judgement::LikelyDone,
            confidence,
            mode: Mode::Shadow,
            disposition: Disposition::Shadow,
            gates: serde_json::from_value(
                json!([{"gate": "mode", "open": false, "found": "shadow", "needed": "live"}]),
            )
            .unwrap(),
            prior_state: None,
            proposed_state: Some(RecordState::Done),
            proposal: None,
            confirmable: true,
            pending_confirmation: false,
            evidence: vec![CitedSignal {
                reference,
                source: source.into(),
                note: "it is done".into(),
                target_confidence: 0.97,
                effect_confidence: 0.97,
                supports: true,
            }],
            source_contributions: [(source.to_owned(), 0.9)].into(),
            reasoning: String::new(),
            clerk: Some(ClerkMark::default()),
            workflow: WorkflowRef { id: "w".into(), run_id: "r".into() },
            resolution: None,
            trust: None,
            wiki: None,
        };
        if let Some(kind) = said {
            let answers = Some(AuditResolution {
                action_id: draft.id.clone(),
                decided_at: timestamp,
                by: "ann".into(),
                reason: None,
                edited: false,
                batch_id: None,
                done: false,
                reopened: None,
                resolved_by: Default::default(),
            });
            let id = ActionId::derive(&["answer", &number.to_string()]);
            self.file(AuditDraft {
                kind,
                id,
                resolution: answers,
                disposition: Disposition::Recorded,
                ..draft.clone()
            });
        }
        self.file(draft);
    }

    /// 98 of 100 state changes from gmail were right, another source has only 12 cases, and an unknown source has a
    /// name.
    fn of_a_month() -> Self {
        let mut past = Self::new();
        let (yes, no) = (Some(ActionKind::DoneAnyway), Some(ActionKind::Opposed));
        for n in 0..200 {
            past.proposed("gmail", MutationClass::StateChange, (0.95, if n < 2 { no } else { yes }));
        }
        for _ in 0..12 {
            past.proposed("gmail", MutationClass::Related, (0.9, yes));
        }
        past.proposed(HOSTILE, MutationClass::ContextEdit, (0.4, None));
        past
    }

    async fn run(&self, arguments: &[&str]) -> Said {
        self.steward.run(arguments).await
    }
}

#[tokio::test]
async fn a_person_reads_what_is_supported_what_is_not_and_what_to_set() {
    let past = Past::of_a_month();
    let files = past.vault.files();
    let said = past.run(&["trust", "report"]).await.expect(0);
    for part in [
        "213 changes were proposed",
        "live is supported for state_change from gmail: 198 of 200 agreed, precision 99.0 % [96.4, 99.7]",
        "related from gmail is not supported: 12 decided cases, at least 73 are needed",
        "STEWARD_LIVE_MODE=live_high_confidence_only",
        "STEWARD_DEFAULT_CEILING=confirm",
        "STEWARD_RELATED_CEILING=confirm",
        "instinct/gmail.md",
        "expected calibration error 0.0",
        "open cases (1) are in neither",
    ] {
        assert!(said.out.contains(part), "`{part}` is missing: {said}");
    }
    assert!(!said.out.contains('\u{1b}'), "{said}");
    let longest = said.out.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest <= 100, "{longest} columns: {said}");
    assert_eq!(past.vault.files(), files, "it changes nothing");
    let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.starts_with(HEADLINE), "{said}");
    assert!(flat.contains("; 61 more right cases in a row are missing for live_high_confidence_only"), "{said}");
}

#[tokio::test]
async fn a_script_reads_the_same_under_names_that_stay() {
    let past = Past::of_a_month();
    let told = past.run(&["trust", "report", "--json"]).await.expect(0).json();
    assert_eq!(told["headline"], HEADLINE);
    assert_eq!(told["total"]["actions"], json!(213));
    assert_eq!(told["records"]["last_seq"], json!(425));
    let gmail = &told["class_sources"][0];
    assert_eq!((&gmail["class"], &gmail["source"]), (&json!("state_change"), &json!("gmail")));
    assert_eq!((&gmail["agreed"], &gmail["wrong"], &gmail["open"]), (&json!(198), &json!(2), &json!(0)));
    assert_eq!(gmail["supported"], json!("live"));
    assert_eq!(gmail["nearest"], json!({"readiness": "ready", "mode": "live", "missing_cases": 0}));
    assert_eq!(told["class_sources"][1]["nearest"]["missing_cases"], json!(61), "12 of 73");
    let low = gmail["precision"]["low"].as_f64().unwrap();
    assert!((low - 0.9643).abs() < 5e-4, "{low}");
    assert_eq!(told["choice"]["classes"], json!(["state_change"]));
    assert_eq!(told["settings"]["variables"][0]["name"], json!("STEWARD_LIVE_MODE"));
    assert_eq!(told["settings"]["instincts"], json!(["instinct/gmail.md"]));
    assert_eq!(told["lowered"], json!([]));
    let mode = told["gates"].as_array().unwrap().iter().find(|gate| gate["gate"] == "mode").unwrap();
    assert_eq!(mode["held_alone"]["agreed"], json!(210));
    assert_eq!(told["let_through"]["actions"], json!(0), "all of it was shadow");
    assert_eq!(told["chain"], json!({"records": 425, "faults": [], "head_unknown": false}));
    assert!(
        told["choice"]["why"].as_str().unwrap().starts_with("live would rest on the same 200 decided cases"),
        "{told}"
    );
}

#[tokio::test]
async fn the_page_stands_by_itself_and_a_hostile_name_stays_text() {
    let past = Past::of_a_month();
    let page = past.vault.path().parent().unwrap().join("report.html");
    let file = page.to_str().unwrap();
    let said = past.run(&["--json", "trust", "report", "--html", file]).await.expect(0).json();
    assert_eq!(said["page"], Value::from(file));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<title>Steward: trust report of 20"), "{html}");
    assert!(html.contains("&#60;script&#62;alert(1)&#60;/script&#62;&#34;&#39;&#38;` [2J"), "{html}");
    let (head, advice) = html.split_once("What the cases support").unwrap();
    assert!(head.contains(&format!("<p class=\"headline\"><bdi>{HEADLINE}</bdi></p>")), "{html}");
    let (open, folded) = advice.split_once("What to set").unwrap().0.split_once("<details>").unwrap();
    assert!(
        open.contains("state_change from gmail</bdi></strong>: 198 of 200 right, with <code>live</code>"),
        "{open}"
    );
    assert!(folded.contains("related from gmail</bdi></strong>: 12 of 12 right; 61 more right cases"), "{folded}");
    assert!(!html.contains("<th scope=\"col\"></th>"), "a table has an empty heading: {html}");
    let scrolls = html.matches("<div class=\"wide\"").count() + html.matches("<pre").count();
    assert_eq!(html.matches("tabindex=\"0\" role=\"region\" aria-label=\"").count(), scrolls, "{html}");
    let lower = html.to_ascii_lowercase();
    for forbidden in ["<script", "http://", "https://", "src=", "href=", "@import", "url(", "onload", "\u{1b}"] {
        assert!(!lower.contains(forbidden), "`{forbidden}` is in the page: {html}");
    }
    assert!(lower.contains("prefers-color-scheme:dark") && lower.contains("<caption>"), "{html}");
    let pictures = lower.matches("<svg ").count();
    assert_eq!((pictures > 4, lower.matches("role=\"img\"").count()), (true, pictures));
    assert_eq!(lower.matches("<svg ").count(), lower.matches("</svg>").count());
    for part in [
        "213 changes proposed from",
        "live is supported for state_change from gmail: 198 of 200 agreed",
        "STEWARD_LIVE_MODE=live_high_confidence_only   # now shadow\n",
        "ceiling: act   # in instinct/gmail.md",
        "90 to 100 %: 99.1 % of 212 right",
        "Expected calibration error 0.0",
        "Precision of state_change. 99.0 %, from 96.4 to 99.7",
        "210 agreed, 2 wrong, 1 open",
        "<th scope=\"row\">mode</th><td>213</td>",
        "every gate was open",
        "How to read it",
    ] {
        assert!(html.contains(part), "`{part}` is missing: {html}");
    }
    past.run(&["trust", "report", "--html", "/nowhere/at/all.html"]).await.expect(1);
}

#[tokio::test]
async fn a_vault_without_a_past_says_so() {
    let past = Past::new();
    let said = past.run(&["trust", "report"]).await.expect(0);
    assert!(said.out.contains("no change has been proposed yet"), "{said}");
    let told = past.run(&["trust", "report", "--json"]).await.expect(0).json();
    assert_eq!((&told["records"], &told["choice"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn other_settings_are_replayed_and_compared() {
    let past = Past::of_a_month();
    let told =
        past.run(&["--json", "backtest", "--mode", "live", "--ceiling", "related=confirm"]).await.expect(3).json();
    let live = &told["policy"]["live"];
    assert_eq!((&live["agreed"], &live["wrong"], &live["open"]), (&json!(198), &json!(2), &json!(0)));
    assert_eq!(told["policy"]["rules"]["mode"], json!("live"));
    assert_eq!(told["policy"]["pending"]["actions"], json!(13), "12 behind the ceiling, one below the threshold");
    assert_eq!(told["against"]["shadow"]["actions"], json!(213), "the present settings");
    assert_eq!(told["newly_live"]["all"]["actions"], json!(200));
    assert_eq!(told["risk_coverage"]["decided"], json!(200));
    let refused = told["lacking"][0].as_str().unwrap();
    assert!(refused.starts_with("unnamed sources may act") && told["toml"].is_null(), "{told}");

    let folder = past.vault.path().parent().unwrap().to_owned();
    std::fs::write(folder.join("careful.toml"), "live_mode = \"live\"\nconfidence_threshold = 0.99\n").unwrap();
    let careful = folder.join("careful.toml");
    let file = careful.to_str().unwrap();
    let said = past.run(&["trust", "backtest", "--mode", "live", "--against", file]).await.expect(3);
    for part in [
        "Refused: there is nothing to paste, because",
        "live 212, pending 1, shadow 0",
        "live 0, pending 213, shadow 0",
        "212 in all: 210 agreed, 2 wrong",
        "area under",
    ] {
        assert!(said.out.contains(part), "`{part}` is missing: {said}");
    }
    assert!(said.out.lines().all(|line| line.chars().count() <= 100), "{said}");
    for wrong in [["--mode", "full"], ["--ceiling", "moon=act"], ["--confidence", "7"], ["--policy", "nowhere.toml"]] {
        past.run(&[&["backtest"][..], &wrong].concat()).await.expect(1);
    }
}

#[tokio::test]
async fn what_nobody_answered_in_its_14_days_is_told_and_stands_against_it() {
    let mut past = Past::new();
    let (gmail, yes) = (("gmail", MutationClass::StateChange), Some(ActionKind::DoneAnyway));
    for _ in 0..80 {
        past.proposed_before(20, gmail, (0.95, yes));
    }
    let fresh = ["live is supported for state_change from gmail: 80 of 80 agreed", "; 60 open"];
    let old =
        ["80 of 80 agreed, but 60 proposed more than 14 days ago got no answer", "nothing yet", "60 of them without"];
    for (days, parts) in [(10, &fresh[..]), (20, &old[..])] {
        for _ in 0..60 {
            past.proposed_before(days, gmail, (0.95, None));
        }
        let said = past.run(&["trust", "report"]).await.expect(0);
        let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in parts {
            assert!(flat.contains(part), "`{part}` is missing: {said}");
        }
    }
}

/// A folder for `steward.toml` beside the vault, which becomes the current one.
fn beside(past: &mut Past, toml: &str) -> std::path::PathBuf {
    let folder = past.vault.path().parent().unwrap().join("set");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("steward.toml"), toml).unwrap();
    past.steward = past.steward.clone().inside(&folder);
    folder.join("steward.toml")
}

#[tokio::test]
async fn what_is_recommended_is_replayed_printed_and_holds_once_it_is_pasted_and_its_ceilings_are_set() {
    let mut past = Past::of_a_month();
    let mine = "# mine\nscan_seconds = 5\n";
    let file = beside(&mut past, mine);
    past.steward = past.steward.with("STEWARD_LIVE_MODE", "shadow").with("STEWARD_CONFIDENCE_THRESHOLD", "0.7");
    let ask = ["backtest", "--recommended"];
    let told = past.run(&[&["--json"], &ask[..]].concat()).await.expect(0).json();
    let live = &told["policy"]["live"];
    assert_eq!((&live["agreed"], &live["wrong"], &live["open"]), (&json!(198), &json!(2), &json!(0)));
    assert_eq!(told["policy"]["rules"]["sources"], json!({"gmail": "act"}));
    assert_eq!(told["lacking"], json!([]));
    let toml = told["toml"].as_str().unwrap();
    for part in [
        ", records 2 to 425\n",
        "\nlive_mode = \"live_high_confidence_only\"\n",
        "\ndefault_ceiling = \"confirm\"\n",
        "\nstate_change_ceiling = \"act\"\n",
    ] {
        assert!(toml.contains(part), "`{part}` is missing: {toml}");
    }
    assert!(!toml.contains("threshold"), "nothing of the environment: {toml}");
    assert_eq!(told["overruled"][0]["name"], json!("STEWARD_LIVE_MODE"));

    let files = past.vault.files();
    let said = past.run(&ask).await.expect(0);
    for part in [
        "ceiling: act",
        "instinct/gmail.md",
        "live_mode = \"live_high_confidence_only\"\n",
        "STEWARD_LIVE_MODE is set to `shadow`, not `live_high_confidence_only`",
    ] {
        assert!(said.out.contains(part), "`{part}` is missing: {said}");
    }
    assert!(said.out.lines().all(|line| line.chars().count() <= 100), "{said}");
    assert_eq!(past.vault.files(), files, "the ceiling of a source is a human's to set");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), mine, "nothing is written");

    std::fs::write(&file, format!("{mine}{toml}")).unwrap();
    past.steward = past.steward.without("STEWARD_LIVE_MODE").without("STEWARD_CONFIDENCE_THRESHOLD");
    past.vault.write("instinct/gmail.md", "---\ntype: instinct\nsource: gmail\nceiling: act\n---\n");
    let told = past.run(&["--json", "backtest"]).await.expect(0).json();
    assert_eq!(told["policy"]["rules"]["mode"], json!("live_high_confidence_only"));
    assert_eq!(told["policy"]["live"]["actions"], json!(200), "what was recommended is what holds now");
    past.steward = past.steward.inside(past.vault.path());
    let refused = past.run(&ask).await.expect(3);
    assert!(refused.out.contains("lies in the vault") && !refused.out.contains("To paste"), "{refused}");
}

#[tokio::test]
async fn bolder_settings_without_reason_are_refused_and_more_careful_ones_printed() {
    let mut empty = Past::new();
    beside(&mut empty, "live_mode = \"live_high_confidence_only\"\n");
    let said = empty.run(&["backtest", "--mode", "live"]).await.expect(3);
    assert!(said.out.contains("0 decided cases, at least 73 are needed"), "{said}");
    assert!(said.out.contains("Refused") && !said.out.contains("live_mode = \"live\""), "{said}");
    empty.run(&["backtest", "--recommended"]).await.expect(3);
    let said = empty.run(&["backtest", "--mode", "shadow"]).await.expect(0);
    assert!(said.out.contains("To paste") && said.out.contains("live_mode = \"shadow\""), "{said}");

    let mut past = Past::of_a_month();
    beside(&mut past, "");
    // Settings of the environment are not compared: they may be gone when the file applies.
    past.steward = past.steward.with("STEWARD_LIVE_MODE", "live");
    let ask = ["--json", "backtest", "--mode", "live"];
    let told = past.run(&ask).await.expect(3).json();
    let lacking: Vec<&str> = told["lacking"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let none = |class: &str| format!("{class}: 0 decided cases, at least 73 are needed");
    assert!(lacking[0].starts_with("unnamed sources may act"), "{lacking:?}");
    assert_eq!(lacking[1..3], [none("context_edit"), none("parent_matter")], "what never had a case is opened, too");
    assert_eq!(lacking[3..], ["related: 12 decided cases, at least 73 are needed"]);
    assert_eq!(told["toml"], Value::Null);
    past.vault.write("instinct/gmail.md", "---\ntype: instinct\nsource: gmail\nceiling: act\n---\n");
    let held = ["default", "context_edit", "parent_matter", "related"].map(|what| format!("--ceiling={what}=confirm"));
    let held: Vec<&str> = held.iter().map(String::as_str).collect();
    let told = past.run(&[&ask[..], &held].concat()).await.expect(0).json();
    let toml = told["toml"].as_str().unwrap();
    assert!(toml.contains("live_mode = \"live\"\n") && toml.contains("related_ceiling = \"confirm\"\n"), "{toml}");
    assert!(!toml.contains("threshold"), "only what was asked for: {toml}");

    let said = past.run(&["backtest", "--high-confidence", "0.5"]).await.expect(1);
    assert!(said.err.contains("below confidence_threshold"), "{said}");
    let said = past.run(&["backtest", "--ceiling", "source:gmial=act"]).await.expect(1);
    assert!(said.err.contains("no proposal cites a source `gmial`"), "{said}");
}

#[tokio::test]
async fn a_broken_chain_is_told_on_top_and_nothing_bolder_is_printed() {
    let mut past = Past::of_a_month();
    beside(&mut past, "live_mode = \"live\"\nrelated_ceiling = \"confirm\"\n");
    let record = past.vault.records()[3].draft.record_path().unwrap();
    let text = String::from_utf8(past.vault.read(record.as_str())).unwrap();
    past.vault.write(record.as_str(), text.replacen("signal/s", "signal/x", 1));

    let said = past.run(&["trust", "report"]).await.expect(4);
    assert!(said.out.starts_with("Warning: the chain of audit records is broken: "), "{said}");
    assert!(said.out.contains("Change no settings now") && !said.out.contains("let Steward"), "{said}");
    let told = past.run(&["trust", "report", "--json"]).await.expect(4).json();
    assert_eq!(told["chain"]["faults"].as_array().unwrap().len(), 1, "{told}");
    let page = past.vault.path().parent().unwrap().join("report.html");
    past.run(&["trust", "report", "--html", page.to_str().unwrap()]).await.expect(4);
    assert!(std::fs::read_to_string(&page).unwrap().contains("role=\"alert\">Warning: the chain of audit records"));

    let bolder = past.run(&["--json", "backtest", "--confidence", "0.5"]).await.expect(3).json();
    assert!(bolder["lacking"][0].as_str().unwrap().starts_with("the chain of audit records is broken"), "{bolder}");
    assert_eq!(bolder["toml"], Value::Null);
    let said = past.run(&["backtest", "--mode", "shadow"]).await.expect(4);
    assert!(said.out.starts_with("Warning: the chain") && said.out.contains("live_mode = \"shadow\""), "{said}");
}
