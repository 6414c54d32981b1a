//! The trust report of a vault with a known past, as text, as JSON and as a page; no server and no worker.

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use steward_domain::audit::{ActionKind, Answer, AuditDraft, AuditRecord, Cited, Link, WorkflowRef};
use steward_domain::clerk::{ClerkMark, Judgement};
use steward_domain::mode::Mode;
use steward_domain::mutation::MutationClass;
use steward_domain::path::RecordPath;
use steward_domain::plan::{ActionId, ContentHash, Landing};
use steward_domain::record::State;
use steward_tests::run;
use steward_tests::steward::{Said, Steward};
use steward_tests::vault::Vault;

const HOSTILE: &str = "<script>alert(1)</script>\"'&`\u{1b}[2J";

/// A vault with a past.
struct Past {
    vault: Vault,
    steward: Steward,
    next: u64,
}

impl Past {
    fn new() -> Self {
        let (folder, _) = run::new_folder();
        let vault = Vault::new(folder.join("vault"));
        let mut steward = Steward::new(&folder);
        steward.set("STEWARD_VAULT", vault.path().display());
        Self { vault, steward, next: 1 }
    }

    fn file(&mut self, draft: AuditDraft) {
        let link = Link { seq: self.next, prev: ContentHash::genesis() };
        self.next += 1;
        let path = draft.file().unwrap();
        self.vault.write(path.as_str(), AuditRecord::close(draft, Vec::new(), link).render().unwrap());
    }

    /// A proposal in shadow, and what a human said of it.
    fn proposed(&mut self, source: &str, class: MutationClass, (confidence, said): (f64, Option<ActionKind>)) {
        let number = self.next;
        let timestamp = Utc::now() - TimeDelta::days(20) + TimeDelta::minutes(i64::try_from(number).unwrap());
        let reference = RecordPath::parse(&format!("signal/s{number}.md")).unwrap();
        let draft = AuditDraft {
            kind: ActionKind::Action,
            id: ActionId::derive(&["test", &number.to_string()]),
            timestamp,
            target: RecordPath::parse(&format!("task/t{number}.md")).unwrap(),
            class: Some(class),
            decision: Judgement::LikelyDone,
            confidence,
            mode: Mode::Shadow,
            landing: Landing::Shadow,
            gates: serde_json::from_value(
                json!([{"gate": "mode", "open": false, "found": "shadow", "needed": "live"}]),
            )
            .unwrap(),
            prior_state: None,
            proposed_state: Some(State::Done),
            proposal: None,
            confirmable: true,
            pending_confirmation: false,
            evidence: vec![Cited {
                reference,
                source: source.into(),
                note: "it is done".into(),
                target_confidence: 0.97,
                effect_confidence: 0.97,
                speaks: true,
            }],
            source_contributions: [(source.to_owned(), 0.9)].into(),
            reasoning: String::new(),
            clerk: Some(ClerkMark::default()),
            workflow: WorkflowRef { id: "w".into(), run_id: "r".into() },
            answers: None,
            trust: None,
        };
        if let Some(kind) = said {
            let answers = Some(Answer { of: draft.id.clone(), at: timestamp, by: "ann".into(), reason: None });
            let id = ActionId::derive(&["answer", &number.to_string()]);
            self.file(AuditDraft { kind, id, answers, landing: Landing::Recorded, ..draft.clone() });
        }
        self.file(draft);
    }

    /// 98 of 100 changes of state from gmail were right, 12 others were not often enough, and a stranger has a name.
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
}

#[tokio::test]
async fn a_script_reads_the_same_under_names_that_stay() {
    let past = Past::of_a_month();
    let told = past.run(&["trust", "report", "--json"]).await.expect(0).json();
    assert_eq!(told["total"]["actions"], json!(213));
    assert_eq!(told["records"]["last_seq"], json!(425));
    let gmail = &told["class_sources"][0];
    assert_eq!((&gmail["class"], &gmail["source"]), (&json!("state_change"), &json!("gmail")));
    assert_eq!((&gmail["agreed"], &gmail["wrong"], &gmail["open"]), (&json!(198), &json!(2), &json!(0)));
    assert_eq!(gmail["supported"], json!("live"));
    let low = gmail["precision"]["low"].as_f64().unwrap();
    assert!((low - 0.9643).abs() < 5e-4, "{low}");
    assert_eq!(told["choice"]["classes"], json!(["state_change"]));
    assert_eq!(told["settings"]["variables"][0]["name"], json!("STEWARD_LIVE_MODE"));
    assert_eq!(told["settings"]["instincts"], json!(["instinct/gmail.md"]));
    assert_eq!(told["lowered"], json!([]));
    let mode = told["gates"].as_array().unwrap().iter().find(|gate| gate["gate"] == "mode").unwrap();
    assert_eq!(mode["held_alone"]["agreed"], json!(210));
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
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;&#96;"), "{html}");
    let lower = html.to_ascii_lowercase();
    for forbidden in ["<script", "http://", "https://", "src=", "href=", "@import", "url(", "onload", "\u{1b}"] {
        assert!(!lower.contains(forbidden), "`{forbidden}` is in the page: {html}");
    }
    assert!(lower.contains("prefers-color-scheme:dark") && lower.contains("<caption>"), "{html}");
    let pictures = lower.matches("<svg ").count();
    assert_eq!((pictures > 4, lower.matches("role=\"img\"").count()), (true, pictures));
    assert_eq!(lower.matches("<svg ").count(), lower.matches("</svg>").count());
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
        past.run(&["--json", "backtest", "--mode", "live", "--ceiling", "related=confirm"]).await.expect(0).json();
    let live = &told["policy"]["live"];
    assert_eq!((&live["agreed"], &live["wrong"], &live["open"]), (&json!(198), &json!(2), &json!(0)));
    assert_eq!(told["policy"]["rules"]["mode"], json!("live"));
    assert_eq!(told["policy"]["pending"]["actions"], json!(13), "12 behind the ceiling, one below the threshold");
    assert_eq!(told["against"]["shadow"]["actions"], json!(213), "the present settings");
    assert_eq!(told["newly_live"]["all"]["actions"], json!(200));
    assert_eq!(told["risk_coverage"]["decided"], json!(200));
    assert_eq!(told["written"], Value::Null);

    let folder = past.vault.path().parent().unwrap().to_owned();
    std::fs::write(folder.join("careful.toml"), "live_mode = \"live\"\nconfidence_threshold = 0.99\n").unwrap();
    let careful = folder.join("careful.toml");
    let file = careful.to_str().unwrap();
    let said = past.run(&["trust", "backtest", "--mode", "live", "--against", file]).await.expect(0);
    for part in [
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
async fn chosen_settings_are_written_with_what_they_rest_on_and_the_environment_still_wins() {
    let mut past = Past::of_a_month();
    let folder = past.vault.path().parent().unwrap().join("set");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("steward.toml"), "# mine\nscan_seconds = 5\n").unwrap();
    past.steward = past.steward.inside(&folder).with("STEWARD_LIVE_MODE", "shadow");
    let ask = ["backtest", "--mode", "live_high_confidence_only", "--ceiling", "default=confirm", "--write"];
    let said = past.run(&ask).await.expect(0);
    assert!(said.out.contains("STEWARD_LIVE_MODE is set to `shadow` in the environment"), "{said}");
    let text = std::fs::read_to_string(folder.join("steward.toml")).unwrap();
    for part in [
        "# mine\nscan_seconds = 5\n",
        "# backtest: records 2 to 425 of the chain",
        "# backtest: would have made 0 of 213 proposals live",
        "live_mode = \"live_high_confidence_only\"\n",
        "default_ceiling = \"confirm\"\n",
        "high_confidence_threshold = 0.85\n",
    ] {
        assert!(text.contains(part), "`{part}` is missing: {text}");
    }
    assert_eq!(past.run(&["--json", "status"]).await.expect(0).json()["policy"]["mode"], json!("shadow"));
    past.steward = past.steward.without("STEWARD_LIVE_MODE");
    assert_eq!(
        past.run(&["--json", "status"]).await.expect(0).json()["policy"]["mode"],
        json!("live_high_confidence_only")
    );
    past.steward = past.steward.inside(past.vault.path());
    let refused = past.run(&ask).await.expect(1);
    assert!(refused.err.contains("lies in the vault"), "{refused}");
    assert!(!past.vault.path().join("steward.toml").exists());
}
