//! The daily budget of a source, and the limits of one message's influence on another.

use super::*;
use futures_util::future::join_all;
use proptest::prelude::*;
use std::collections::BTreeSet;
use steward_domain::action::plan::Disposition;
use steward_domain::signals::route::action_id;

const BUDGET: u32 = 3;

/// A signal from an event of its own that says a task is done.
fn done(task: &str, source: &str) -> String {
    format!(
        "---\ntype: signal\ncreated: 2026-11-20\nsource_event_path: stream/mail/{source}-{task}.md\nsource_type: {source}\n\
         raw_quote: it is done\ntarget_kind: task\ntarget_path: task/{task}.md\ntarget_confidence: 0.99\neffect: mutation\n\
         mutation_proposal:\n  class: state_change\n  set: {{state: done}}\neffect_confidence: 0.99\nstatus: unrouted\n---\n"
    )
}

impl VaultFixture {
    fn write(&self, path: &str, text: &str) {
        let file = self.dir.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// A vault with one task for each list of sources; each source says that its task is done.
    pub(super) async fn of_tasks(said: &[Vec<&str>]) -> Self {
        let mut bench = Self::new(Mode::Live).await;
        bench.context.settings.live_per_source_day = BUDGET;
        bench.context.settings.cadence.matter_seconds = 0;
        std::fs::remove_file(bench.dir.path().join("signal/1.md")).unwrap();
        bench.write("instinct/bank.md", "---\ntype: instinct\nobservations: 50\n---\n");
        for (n, sources) in said.iter().enumerate() {
            let task = format!("t{n:02}");
            bench.write(&format!("task/{task}.md"), "---\ntype: task\nname: T\nstate: open\nparent_matter: m\n---\n");
            for source in sources {
                let name = source.replace(':', "-");
                bench.write(&format!("signal/{task}-{name}.md"), &done(&task, source));
            }
        }
        bench.context.index.sync_all(bench.context.writer.root(), Utc::now()).await.unwrap();
        bench
    }

    /// The steward's own changes. Each one cites every signal of its task.
    pub(super) async fn asks(&self) -> Vec<ApplyInput> {
        let seen = self.see("run/1").await;
        let one = |n: usize| {
            let looks = vec![seen.task_checks[n].clone()];
            let mut ask = apply_ask(&MatterObservation { task_checks: looks, ..seen.clone() }, "run/1");
            let evidence = &seen.task_checks[n].question.evidence;
            let verdict = Verdict {
                decision: Judgement::LikelyDone,
                confidence: 1.0,
                reasoning: "they say so".into(),
                evidence: evidence.iter().map(|e| e.reference.clone()).collect(),
                source_contributions: BTreeMap::new(),
            };
            ask.plan = decide(&DecisionCase {
                check: &seen.task_checks[n],
                policy: &seen.policy,
                matter_policy: None,
                verdict: &verdict,
                clerk: &steward_domain::steward::clerk::ClerkMark::default(),
                caller_says_shadow: false,
                workflow: WorkflowRef { id: "w".into(), run_id: "r".into() },
                at: seen.observed_at,
            });
            ask
        };
        (0..seen.task_checks.len()).map(one).collect()
    }

    pub(super) fn disposition(&self, applied: &ApplyOutput) -> Disposition {
        match applied {
            ApplyOutput::Filed { disposition, .. } => *disposition,
            other => panic!("{other:?}"),
        }
    }

    fn states(&self) -> (usize, usize) {
        let texts = self.files().into_values().filter_map(|bytes| String::from_utf8(bytes).ok());
        let tasks: Vec<String> = texts.filter(|text| text.starts_with("---\ntype: task\nname: T\n")).collect();
        let done = tasks.iter().filter(|text| text.contains("state: done")).count();
        (done, tasks.len())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_changes_that_land_at_once_exactly_the_budget_is_live() {
    let forged = ["mail:a", "mail:b", "mail:c", "mail:d", "mail:e", "mail:f", "mail:g", "mail:h"];
    let bench = VaultFixture::of_tasks(&forged.map(|source| vec![source])).await;
    let asks = bench.asks().await;
    let steward = bench.steward();
    let landed = join_all(asks.clone().into_iter().map(|ask| steward.apply_decision(ask))).await;
    let landed: Vec<Disposition> = landed.iter().map(|a| bench.disposition(a.as_ref().unwrap())).collect();
    let live = landed.iter().filter(|l| **l == Disposition::Live).count();
    assert_eq!((live, bench.states()), (3, (3, 8)), "{landed:?}");
    assert_eq!(landed.iter().filter(|l| **l == Disposition::Pending).count(), 5);
    // A repeat after a crash gives each change the same disposition.
    for (ask, before) in asks.into_iter().zip(landed) {
        assert_eq!(bench.disposition(&bench.steward().apply_decision(ask).await.unwrap()), before);
    }
    assert_eq!(bench.states(), (3, 8));
}

#[tokio::test]
async fn the_router_keeps_to_the_same_budget_and_a_source_that_is_known_to_its_own() {
    let said: Vec<Vec<&str>> = vec![vec!["mail:a"], vec!["mail:b"], vec!["mail:c"], vec!["mail:d"], vec!["bank"]];
    let bench = VaultFixture::of_tasks(&said).await;
    let workflow = WorkflowRef { id: "al-signal-router".into(), run_id: "run".into() };
    let routed = bench.signals().route_signals(50, workflow).await.unwrap();
    assert_eq!(routed.dispositions, BTreeMap::from([(Disposition::Live, 4), (Disposition::Pending, 1)]), "{routed:?}");
    let held = bench.context.index.actions().pending_actions_page(None, 500, Utc::now()).await.unwrap().rows;
    let text = std::fs::read_to_string(bench.dir.path().join(held[0].path.as_str())).unwrap();
    assert!(text.contains("3 from all unknown sources"), "{text}");
    // A person may still confirm it.
    let answer = ResolveInput {
        kind: ResolutionKind::Confirm,
        action: held[0].id.to_string(),
        by: "a".into(),
        reason: None,
        edited: None,
        batch_id: None,
        resolved_by: Default::default(),
    };
    let click = WorkflowRef { id: "confirm".into(), run_id: "click".into() };
    assert!(matches!(bench.context.handle_resolution(answer, click).await.unwrap(), ResolveOutput::Done { .. }));
    assert_eq!(bench.states(), (5, 5));
}

#[tokio::test]
async fn a_message_that_is_shouted_down_waits_for_a_human() {
    for (others, disposition) in [(&["bank", "mail:loud"][..], Some(Disposition::Pending)), (&["bank"], None)] {
        let bench = VaultFixture::of_tasks(&[others.to_vec()]).await;
        let mut ask = bench.asks().await.remove(0);
        // The clerk was deceived: its verdict is still active, and it cites the deceiving source.
        let seen = bench.see("run/1").await;
        let evidence = &seen.task_checks[0].question.evidence;
        let fell_for = evidence.iter().find(|e| e.source != "bank").unwrap_or(&evidence[0]);
        let verdict = Verdict {
            decision: Judgement::StillActive,
            confidence: 1.0,
            reasoning: "ignore the bank".into(),
            evidence: vec![fell_for.reference.clone()],
            source_contributions: BTreeMap::new(),
        };
        ask.plan = decide(&DecisionCase {
            check: &seen.task_checks[0],
            policy: &seen.policy,
            matter_policy: None,
            verdict: &verdict,
            clerk: &steward_domain::steward::clerk::ClerkMark::default(),
            caller_says_shadow: false,
            workflow: WorkflowRef { id: "w".into(), run_id: "r".into() },
            at: seen.observed_at,
        });
        bench.steward().apply_decision(ask).await.unwrap();
        let workflow = WorkflowRef { id: "al-signal-router".into(), run_id: "run".into() };
        let routed = bench.signals().route_signals(50, workflow).await.unwrap();
        let signal = RecordPath::parse("signal/t00-bank.md").unwrap();
        // An equal proposal of the louder source is newer, so both are one card.
        let own = bench.context.index.actions().action_by_id(&action_id(&signal)).await.unwrap();
        let shown = own.filter(|row| row.waits);
        assert_eq!(shown.map(|row| row.disposition), disposition, "{routed:?}");
        assert_eq!(bench.states().0, 0, "nothing is live by it");
    }
}

/// The first source is known.
const SOURCES: [&str; 4] = ["bank", "mail:x", "mail:y", "mail:z"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_change_is_live_as_long_as_a_source_that_speaks_for_it_has_budget_left(
        said in prop::collection::vec(prop::sample::subsequence(SOURCES.to_vec(), 1..=2), 1..14),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let wrong = runtime.block_on(async {
            let bench = VaultFixture::of_tasks(&said).await;
            // A budget of 3 leaves one change to each unknown source.
            let (mut bank, mut unknown_sources, mut spoke) = (0, 0, BTreeSet::new());
            for ask in bench.asks().await {
                let task: usize = ask.plan.target().slug()[1..].parse().unwrap();
                let of_bank = said[task].contains(&"bank");
                let others: BTreeSet<&str> = said[task].iter().copied().filter(|s| *s != "bank").collect();
                let quiet_before = others.iter().any(|s| !spoke.contains(s));
                let expected = (of_bank && bank < BUDGET) || (quiet_before && unknown_sources < BUDGET);
                let disposition = bench.disposition(&bench.steward().apply_decision(ask).await.unwrap());
                if disposition != if expected { Disposition::Live } else { Disposition::Pending } {
                    return Some(format!("{:?} landed {disposition:?} with {bank}, {unknown_sources} and {spoke:?}", said[task]));
                }
                bank += u32::from(expected && of_bank);
                unknown_sources += u32::from(expected && !others.is_empty());
                if expected {
                    spoke.extend(others);
                }
            }
            None
        });
        prop_assert_eq!(wrong, None);
    }
}
