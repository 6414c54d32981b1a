//! A repeated proposal is one case for each supporting source, and every proposal is compared in some round.

use super::*;
use crate::index::store::codec;
use chrono::TimeDelta;
use std::collections::HashSet;
use steward_domain::trust::case::TrustCase;
use steward_domain::trust::demotion::ChangeSupporter;
use steward_domain::trust::mark::TrustSubject;
use steward_domain::trust::outcome::ProposalFeedback;

/// Proposes to close `task/t.md` after some hours, supported by these sources.
fn propose(bench: &Bench, slug: &str, hours: i64, disposition: Disposition, sources: &[&str]) -> ActionId {
    bench.action(slug, |draft| {
        draft.timestamp = noon("00:00:00") + TimeDelta::hours(hours);
        (draft.disposition, draft.class) = (disposition, Some(MutationClass::StateChange));
        for source in sources {
            add_source(draft, source, 0.9, true);
        }
    })
}

fn add_source(draft: &mut AuditDraft, source: &str, contribution: f64, supports: bool) {
    cite(draft, &format!("signal/{}.md", steward_domain::signals::signal::source_key(source)));
    let cited = draft.evidence.last_mut().unwrap();
    (cited.source, cited.supports) = (source.into(), supports);
    draft.source_contributions.insert(source.into(), contribution);
}

/// Records what a person did about an action after some hours.
fn resolve(bench: &Bench, hours: i64, kind: ActionKind, action: &ActionId) -> ActionId {
    bench.action(&format!("{}-{hours}-{action}", kind.as_str()), |draft| {
        answer(draft, kind, action);
        draft.timestamp = noon("00:00:00") + TimeDelta::hours(hours);
        draft.class = Some(MutationClass::StateChange);
    })
}

async fn cases(bench: &Bench) -> Vec<TrustCase> {
    bench.sync("23:00:00").await;
    let mut all = Vec::new();
    bench.index.trust().for_each_case(later(), |case| all.push(case.clone())).await.unwrap();
    all
}

fn later() -> DateTime<Utc> {
    noon("23:00:00") + TimeDelta::days(6)
}

fn supporters(case: &TrustCase) -> Vec<&str> {
    case.supporters.iter().map(|supporter| supporter.key.as_str()).collect()
}

async fn observations(bench: &Bench, source: &str) -> u32 {
    bench.index.trust().compute_source_trust(later()).await.unwrap()[source].observations
}

/// The proposals of one whole round. `sizes` are the most of the newest and of the others.
async fn compare_round(index: &Index, now: DateTime<Utc>, sizes: Option<(i64, i64)>) -> Vec<RecordPath> {
    let round = match sizes {
        Some((newest, others)) => index.trust().select_comparison_round(now, newest, others).await.unwrap(),
        None => index.trust().next_comparison_round(now).await.unwrap(),
    };
    index.trust().finish_comparison_round(&round, round.proposals.len()).await.unwrap();
    round.proposals
}

async fn compared(bench: &Bench) -> Vec<String> {
    let paths = compare_round(&bench.index, later(), None).await;
    paths.iter().map(|path| path.slug().trim_start_matches("steward-action-").to_owned()).collect()
}

fn open_task(bench: &Bench) {
    bench.put("task/t.md", "---\ntype: task\nparent_matter: \"[[matter/m]]\"\n---\n");
}

#[tokio::test]
async fn eighty_signals_about_one_act_are_one_case_and_one_lesson() {
    let bench = Bench::scanned().await;
    open_task(&bench);
    let mut last = None;
    for n in 0..80 {
        last = Some(propose(&bench, &format!("n{n:02}"), n, Disposition::Shadow, &["mail"]));
    }
    bench.sync("23:00:00").await;
    assert_eq!(compared(&bench).await, ["n79"], "it is compared once");
    resolve(&bench, 90, ActionKind::DoneAnyway, &last.unwrap());
    let seen = cases(&bench).await;
    assert_eq!((seen.len(), seen[0].feedback, seen[0].is_repeated), (1, ProposalFeedback::DoneAnyway, false));
    assert_eq!(observations(&bench, "mail").await, 1);
    bench.index.rebuild(&bench.root, noon("23:01:00")).await.unwrap();
    assert_eq!(cases(&bench).await, seen);
}

#[tokio::test]
async fn what_was_filed_for_each_of_them_before_teaches_once_all_the_same() {
    let bench = Bench::scanned().await;
    let all: Vec<ActionId> =
        (0..5).map(|n| propose(&bench, &format!("n{n}"), 2 * n, Disposition::Shadow, &["mail"])).collect();
    for (hours, id) in (20..).step_by(2).zip(&all) {
        resolve(&bench, hours, ActionKind::DoneAnyway, id);
    }
    assert_eq!((cases(&bench).await.len(), observations(&bench, "mail").await), (1, 1));
}

#[tokio::test]
async fn what_only_others_said_again_is_a_case_of_its_own_sources_alone() {
    let bench = Bench::scanned().await;
    open_task(&bench);
    let first = propose(&bench, "a", 1, Disposition::Shadow, &["mail", "slack"]);
    let second = propose(&bench, "b", 2, Disposition::Pending, &["slack", "bank"]);
    bench.sync("23:00:00").await;
    assert_eq!(compared(&bench).await, ["b", "a"], "each source deserves its lesson");
    for id in [&first, &second] {
        resolve(&bench, 5, ActionKind::DoneAnyway, id);
    }
    let seen = cases(&bench).await;
    let shown: Vec<_> = seen.iter().map(|case| (case.is_repeated, supporters(case), case.feedback)).collect();
    let anyway = ProposalFeedback::DoneAnyway;
    assert_eq!(shown, [(true, vec!["mail"], anyway), (false, vec!["bank", "slack"], anyway)]);
    for source in ["mail", "slack", "bank"] {
        assert_eq!(observations(&bench, source).await, 1, "{source}");
    }
}

#[tokio::test]
async fn what_is_live_answered_or_settled_before_is_a_case_by_itself() {
    let bench = Bench::scanned().await;
    propose(&bench, "live", 1, Disposition::Live, &["mail"]);
    let answered = propose(&bench, "no", 2, Disposition::Pending, &["mail"]);
    let settled = propose(&bench, "otherwise", 3, Disposition::Shadow, &["mail"]);
    resolve(&bench, 4, ActionKind::Opposed, &settled);
    propose(&bench, "then", 5, Disposition::Shadow, &["mail"]);
    resolve(&bench, 6, ActionKind::Dismissed, &answered);
    let seen = cases(&bench).await;
    let lessons: Vec<_> = seen.iter().map(|case| (case.feedback, case.is_repeated, supporters(case).len())).collect();
    let open = (ProposalFeedback::Open, false, 1);
    assert_eq!(lessons, [open, (ProposalFeedback::Dismissed, false, 1), (ProposalFeedback::Opposed, false, 1), open]);
    open_task(&bench);
    bench.sync("23:00:00").await;
    assert_eq!(compared(&bench).await, ["then", "live"], "the later proposal is compared in place of the opposed one");
}

#[tokio::test]
async fn another_value_another_record_and_an_answer_are_not_the_same_again() {
    let bench = Bench::scanned().await;
    let other = |slug: &str, change: fn(&mut AuditDraft)| {
        bench.action(slug, |draft| {
            (draft.disposition, draft.class) = (Disposition::Shadow, Some(MutationClass::StateChange));
            add_source(draft, "mail", 0.9, true);
            change(draft);
        })
    };
    other("one", |_| ());
    other("target", |draft| draft.target = path("task/u.md"));
    other("value", |draft| {
        draft.proposed_state = Some(RecordState::Archived);
        let mutation = Mutation::StateChange { to: RecordState::Archived };
        draft.proposal = Some(MutationProposal { mutation, replaces: None, moved_from: None });
    });
    other("nothing", |draft| draft.class = None);
    assert_eq!(cases(&bench).await.len(), 3);
}

#[tokio::test]
async fn only_who_said_what_was_done_earns_and_loses_by_it() {
    let bench = Bench::scanned().await;
    let mixed = |slug: &str, disposition| {
        bench.action(slug, |draft| {
            (draft.disposition, draft.class) = (disposition, Some(MutationClass::StateChange));
            draft.target = path(&format!("task/{slug}.md"));
            add_source(draft, "mail", 0.9, true);
            add_source(draft, "doubt", 0.9, false);
            add_source(draft, "shy", 0.0, true);
        })
    };
    let live = mixed("live", Disposition::Live);
    let shadow = mixed("shadow", Disposition::Shadow);
    resolve(&bench, 10, ActionKind::DoneAnyway, &shadow);
    let seen = cases(&bench).await;
    assert!(seen.iter().all(|case| supporters(case) == ["mail", "shy"]), "{seen:?}");
    let made = bench.index.trust().list_recent_live_changes(later()).await.unwrap();
    let keys: Vec<&str> = made[0].sources.iter().map(|source| source.key.as_str()).collect();
    assert_eq!(keys, ["mail", "shy"]);
    let before = bench.index.trust().compute_source_trust(later()).await.unwrap();
    assert_eq!([before["mail"].observations, before["shy"].observations, before["doubt"].observations], [1, 1, 0]);
    bench.action("undo", |draft| {
        answer(draft, ActionKind::Reversed, &live);
        for (source, part, supports) in [("mail", 0.9, true), ("doubt", 0.9, false), ("shy", 0.0, true)] {
            add_source(draft, source, part, supports);
        }
    });
    bench.sync("23:30:00").await;
    let after = bench.index.trust().compute_source_trust(later()).await.unwrap();
    let lost = |source: &str| before[source].confidence.value - after[source].confidence.value;
    assert!((lost("mail") - 0.1).abs() < 1e-9 && (lost("shy") - 0.1).abs() < 1e-9, "{after:?}");
    assert!(lost("doubt").abs() < 1e-9, "the undo of a change that it did not support does not lower it: {after:?}");
}

#[tokio::test]
async fn a_source_that_spoke_and_was_not_weighed_is_a_voice_and_no_step() {
    let bench = Bench::scanned().await;
    bench.action("one", |draft| {
        draft.class = Some(MutationClass::StateChange);
        add_source(draft, "mail", 0.9, true);
        draft.source_contributions.clear();
    });
    assert_eq!(supporters(&cases(&bench).await[0]), ["mail"]);
    assert!(bench.index.trust().compute_source_trust(later()).await.unwrap().is_empty(), "its contribution is unknown");
}

#[tokio::test]
async fn who_was_never_right_before_is_unknown_until_a_human_says_otherwise() {
    let bench = Bench::scanned().await;
    propose(&bench, "one", 1, Disposition::Live, &["mail", "bank", "new"]);
    bench.put("instinct/mail.md", "---\ntype: instinct\nsource: mail\nobservations: 0\n---\n");
    bench.put("instinct/bank.md", "---\ntype: instinct\nsource: bank\nobservations: 3\n---\n");
    bench.sync("23:00:00").await;
    let unknown_sources =
        |all: &[ChangeSupporter]| all.iter().map(|one| (one.key.clone(), one.is_unknown)).collect::<Vec<_>>();
    let expected = [("bank".to_owned(), false), ("mail".to_owned(), true), ("new".to_owned(), true)];
    assert_eq!(
        unknown_sources(&bench.index.trust().list_recent_live_changes(later()).await.unwrap()[0].sources),
        expected
    );
    let mut draft = draft("x");
    for (source, supports) in [("mail", true), ("bank", true), ("new", true), ("doubt", false)] {
        add_source(&mut draft, source, 0.9, supports);
    }
    assert_eq!(unknown_sources(&bench.index.trust().list_supporting_sources(&draft).await.unwrap()), expected);
}

#[tokio::test]
async fn a_source_is_told_as_the_newest_record_names_it() {
    let bench = Bench::scanned().await;
    propose(&bench, "z", 1, Disposition::Shadow, &["mail:ann@b.example"]);
    propose(&bench, "a", 2, Disposition::Shadow, &["mail:Ann@b.example"]);
    bench.sync("23:00:00").await;
    let named = async |name| bench.index.trust().find_subject_name(&TrustSubject::parse(name)).await.unwrap();
    assert_eq!(named("mail:ann@b.example").await.as_deref(), Some("mail:Ann@b.example"));
    assert_eq!((named("nobody").await, named("unknown_sources").await, named("related").await), (None, None, None));
}

#[tokio::test]
async fn what_was_confirmed_and_then_written_back_is_compared_and_a_lesson() {
    let bench = Bench::scanned().await;
    open_task(&bench);
    let waits = propose(&bench, "waits", 1, Disposition::Pending, &["mail"]);
    let yes = bench.action("yes", |draft| {
        answer(draft, ActionKind::Confirmed, &waits);
        draft.timestamp = noon("02:00:00");
        draft.class = Some(MutationClass::StateChange);
    });
    bench.sync("23:00:00").await;
    assert_eq!(compared(&bench).await, ["yes"]);
    let too_late = noon("02:00:00") + TimeDelta::days(7);
    assert!(
        bench.index.trust().next_comparison_round(too_late).await.unwrap().proposals.is_empty(),
        "as long as it can be undone"
    );
    assert_eq!((cases(&bench).await[0].feedback, observations(&bench, "mail").await), (ProposalFeedback::Confirmed, 1));
    resolve(&bench, 9, ActionKind::Opposed, &yes);
    assert_eq!(cases(&bench).await[0].feedback, ProposalFeedback::Opposed);
    assert_eq!((observations(&bench, "mail").await, compared(&bench).await.len()), (0, 0));
}

#[tokio::test]
async fn everything_has_its_turn_and_the_newest_are_always_among_them() {
    let bench = Bench::scanned().await;
    for n in 0..40 {
        let task = format!("t{n:02}");
        bench.task(&task, "m", "");
        bench.action(&format!("n{n:02}"), |draft| {
            // Three at a time are decided at the same moment.
            draft.timestamp = noon("00:00:00") + TimeDelta::minutes(n / 3);
            (draft.disposition, draft.class) = (Disposition::Shadow, Some(MutationClass::StateChange));
            draft.target = path(&format!("task/{task}.md"));
        });
    }
    bench.sync("23:00:00").await;
    let slice = async |index: &Index| -> Vec<String> {
        let paths = compare_round(index, later(), Some((3, 7))).await;
        paths.iter().map(RecordPath::to_string).collect()
    };
    let (mut seen, mut rounds) = (HashSet::new(), 0);
    while seen.len() < 40 {
        // The cursor outlives the process.
        let index = Index::open(&bench.dir.path().join("state")).await.unwrap();
        let now = slice(&index).await;
        assert!(now.len() <= 10 && now.iter().any(|path| path.ends_with("n39.md")), "{now:?}");
        assert_eq!(now.iter().collect::<HashSet<_>>().len(), now.len(), "each once");
        seen.extend(now);
        index.close().await;
        rounds += 1;
        assert!(rounds <= 12, "{} of 40 after {rounds} rounds", seen.len());
    }
    assert!(rounds >= 5, "{rounds}");
    // Then the rounds begin again.
    let mut again = HashSet::new();
    for _ in 0..12 {
        again.extend(slice(&bench.index).await);
    }
    assert_eq!(again.len(), 40);
}

#[tokio::test]
async fn more_of_one_moment_than_fit_hold_up_nobody() {
    let bench = Bench::scanned().await;
    for n in 0..12 {
        bench.task(&format!("t{n}"), "m", "");
        bench.action(&format!("n{n:02}"), |draft| {
            draft.timestamp = noon(if n < 2 { "01:00:00" } else { "02:00:00" });
            (draft.disposition, draft.class) = (Disposition::Shadow, Some(MutationClass::StateChange));
            draft.target = path(&format!("task/t{n}.md"));
        });
    }
    bench.sync("23:00:00").await;
    let mut seen = HashSet::new();
    for _ in 0..4 {
        seen.extend(compare_round(&bench.index, later(), Some((1, 5))).await);
    }
    assert!(seen.contains(&path("event/steward-action-n00.md")), "{seen:?}");
}

/// Open proposals of the last 10 days, each about its own task.
const MANY: &str = "
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO actions (path, id, kind, target, at, decision, confidence, disposition, mode, pending, class, judged, changes,
        proposal, seq)
    SELECT printf('event/steward-action-%d.md', i), printf('%016x', i), 'steward-action', printf('task/t%d.md', i),
        ?2 - (?1 - i) * 8640000, 'likely_done', 0.9, 'pending', 'live', 1, 'state_change', 1, 'state', printf('%064x', i), i
    FROM n";
/// The files of those tasks, written after the proposals.
const THEIR_TASKS: &str = "INSERT INTO files (path, kind, hash, size, modified_ns, inode)
    SELECT target, 'task', 'x', 1, (?1 + 1) * 1000, seq FROM actions";

#[tokio::test]
async fn of_a_hundred_thousand_open_proposals_each_is_compared_within_a_day() {
    const ROUNDS_OF_A_DAY: usize = 24 * 6;
    let bench = Bench::new().await;
    let now = codec::to_micros(later());
    sqlx::query(MANY).bind(100_000).bind(now).execute(&bench.index.store.writer).await.unwrap();
    sqlx::query(THEIR_TASKS).bind(now).execute(&bench.index.store.writer).await.unwrap();
    let (mut seen, mut rounds, begin) = (HashSet::new(), 0, std::time::Instant::now());
    while seen.len() < 100_000 {
        seen.extend(compare_round(&bench.index, later(), None).await);
        rounds += 1;
        assert!(rounds <= ROUNDS_OF_A_DAY, "{} of 100,000", seen.len());
    }
    #[allow(clippy::print_stdout, reason = "a measurement, shown with --nocapture")]
    {
        println!("100,000 open proposals in {rounds} rounds, {:?} each", begin.elapsed() / rounds as u32);
    }
}

#[tokio::test]
async fn what_is_proposed_again_and_again_is_as_old_and_as_bold_as_it_ever_was() {
    let bench = Bench::new().await;
    let propose = |slug: &str, hours: i64, confidence: f64| {
        bench.action(slug, |draft| {
            draft.timestamp = noon("00:00:00") + TimeDelta::hours(hours);
            (draft.disposition, draft.class) = (Disposition::Shadow, Some(MutationClass::StateChange));
            draft.confidence = confidence;
            add_source(draft, "mail", 0.9, true);
        })
    };
    propose("one", 1, 0.97);
    propose("two", 2, 0.7);
    let last = propose("three", 3, 0.55);
    let all = cases(&bench).await;
    let [case] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((case.since, case.at), (noon("01:00:00"), noon("03:00:00")));
    assert_eq!(case.earlier.iter().map(|before| before.confidence).collect::<Vec<_>>(), [0.97, 0.7]);
    // A proposal after a person's resolution is a new case.
    resolve(&bench, 4, ActionKind::Dismissed, &last);
    propose("four", 5, 0.6);
    let all = cases(&bench).await;
    assert_eq!(all.iter().map(|case| case.earlier.len()).collect::<Vec<_>>(), [0, 2], "{all:#?}");
    assert_eq!(all[0].since, noon("05:00:00"));
}

#[tokio::test]
async fn what_was_done_long_after_it_was_first_said_agrees_with_nobody() {
    for (days, lesson) in [(13, ProposalFeedback::DoneAnyway), (15, ProposalFeedback::Open)] {
        let bench = Bench::new().await;
        propose(&bench, "one", 1, Disposition::Shadow, &["mail"]);
        let last = propose(&bench, "two", 24 * days - 1, Disposition::Shadow, &["mail"]);
        resolve(&bench, 24 * days, ActionKind::DoneAnyway, &last);
        bench.sync("23:00:00").await;
        let mut found = Vec::new();
        let now = noon("00:00:00") + TimeDelta::days(16);
        bench.index.trust().for_each_case(now, |case| found.push(case.feedback)).await.unwrap();
        assert_eq!(found, [lesson], "after {days} days");
    }
}

#[tokio::test]
async fn the_later_word_is_the_one_that_stands_later_in_the_chain_whatever_its_clock_says() {
    let bench = Bench::new().await;
    let proposed = propose(&bench, "one", 1, Disposition::Pending, &["mail"]);
    let confirmed = resolve(&bench, 5, ActionKind::Confirmed, &proposed);
    resolve(&bench, 4, ActionKind::Reversed, &confirmed);
    let all = cases(&bench).await;
    assert_eq!(all.iter().map(|case| case.feedback).collect::<Vec<_>>(), [ProposalFeedback::Undone], "{all:#?}");
}

#[tokio::test]
async fn a_round_that_is_cut_short_leaves_nobody_behind() {
    let bench = Bench::new().await;
    for n in 0..12 {
        bench.task(&format!("t{n}"), "m", "");
        bench.action(&format!("n{n:02}"), |draft| {
            draft.timestamp = noon("00:00:00") + TimeDelta::minutes(n);
            (draft.disposition, draft.class) = (Disposition::Shadow, Some(MutationClass::StateChange));
            draft.target = path(&format!("task/t{n}.md"));
        });
    }
    bench.sync("23:00:00").await;
    let round = async || bench.index.trust().select_comparison_round(later(), 2, 4).await.unwrap();
    assert_eq!(round().await, round().await, "a process that is killed begins the round again");
    let mut seen = HashSet::new();
    for _ in 0..12 {
        let round = round().await;
        // The newest two, and two of the next four.
        let compared = round.proposals.len().min(4);
        seen.extend(round.proposals[..compared].to_vec());
        bench.index.trust().finish_comparison_round(&round, compared).await.unwrap();
    }
    assert_eq!(seen.len(), 12);
    // A round that compares only some of the newest does not move the cursor.
    let mut deep = round().await;
    for _ in 0..3 {
        if deep.proposals.len() < 6 {
            bench.index.trust().finish_comparison_round(&deep, deep.proposals.len()).await.unwrap();
            deep = round().await;
        }
    }
    assert_eq!(deep.proposals.len(), 6, "two newest, and four of the others");
    bench.index.trust().finish_comparison_round(&deep, 1).await.unwrap();
    assert_eq!(round().await, deep);
}

#[tokio::test]
async fn a_confirmation_with_another_value_is_decided_otherwise_and_observes_nothing() {
    let bench = Bench::scanned().await;
    open_task(&bench);
    let waits = propose(&bench, "waits", 1, Disposition::Pending, &["mail"]);
    let confirmed = bench.action("chosen", |draft| {
        answer(draft, ActionKind::Confirmed, &waits);
        (draft.timestamp, draft.class) = (noon("02:00:00"), Some(MutationClass::StateChange));
        draft.resolution.as_mut().unwrap().edited = true;
        add_source(draft, "mail", 0.9, false);
        draft.source_contributions.clear();
    });
    assert_eq!((cases(&bench).await[0].feedback, observations(&bench, "mail").await), (ProposalFeedback::Opposed, 0));
    let rows = bench.index.actions().list_actions(None, None, 9).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.edited).collect::<Vec<_>>(), [true, false]);
    let before = bench.index.trust().compute_source_trust(later()).await.unwrap()["mail"].confidence;
    bench.action("undone", |draft| {
        answer(draft, ActionKind::Reversed, &confirmed);
        (draft.timestamp, draft.class) = (noon("03:00:00"), Some(MutationClass::StateChange));
        add_source(draft, "mail", 0.9, false);
        draft.source_contributions.clear();
    });
    assert_eq!((cases(&bench).await[0].feedback, observations(&bench, "mail").await), (ProposalFeedback::Undone, 0));
    let after = bench.index.trust().compute_source_trust(later()).await.unwrap()["mail"].confidence;
    assert_eq!(after, before, "the source did not support the change that was undone");
    bench.index.rebuild(&bench.root, later()).await.unwrap();
    assert_eq!(cases(&bench).await[0].feedback, ProposalFeedback::Undone);
}

/// Proposals about one task each with these supporting sources. Later ones are more confident.
fn propose_each(bench: &Bench, sources: &[&[&str]], disposition: Disposition) -> Vec<ActionId> {
    let one = |(n, sources): (usize, &&[&str])| {
        bench.action(&format!("said-{n}"), |draft| {
            draft.target = RecordPath::parse(&format!("task/t{n}.md")).unwrap();
            draft.timestamp = noon("01:00:00") + TimeDelta::minutes(n as i64);
            (draft.disposition, draft.class) = (disposition, Some(MutationClass::StateChange));
            draft.confidence = 0.5 + n as f64 / 100.0;
            for source in *sources {
                add_source(draft, source, 0.9, true);
            }
        })
    };
    sources.iter().enumerate().map(one).collect()
}

/// Resolves these actions two hours apart, as one batch if `batch` names one.
fn resolve_each(bench: &Bench, kind: ActionKind, actions: &[&ActionId], sources: &[&str], batch: Option<&str>) {
    for (n, action) in actions.iter().enumerate() {
        bench.action(&format!("{}-{n}-{}", kind.as_str(), batch.unwrap_or("alone")), |draft| {
            answer(draft, kind, action);
            (draft.timestamp, draft.class) =
                (noon("03:00:00") + TimeDelta::hours(2 * n as i64), Some(MutationClass::StateChange));
            draft.resolution.as_mut().unwrap().batch_id = batch.map(|id| ActionId::derive(&[id]));
            for source in sources {
                add_source(draft, source, 0.9, true);
            }
        });
    }
}

fn of_class(cases: &[TrustCase]) -> Vec<(f64, ProposalFeedback)> {
    cases.iter().filter(|case| !case.is_repeated).map(|case| (case.confidence, case.feedback)).collect()
}

fn of_source(cases: &[TrustCase], source: &str) -> Vec<f64> {
    cases.iter().filter(|case| supporters(case).contains(&source)).map(|case| case.confidence).collect()
}

#[tokio::test]
async fn what_is_answered_with_one_click_is_one_case_and_one_observation_of_each_source() {
    for (batch_id, cases_of_class, seen) in [(None, 4, 4), (Some("click"), 1, 1)] {
        let bench = Bench::scanned().await;
        let all = propose_each(&bench, &[&["mail"], &["mail", "bank"], &["mail"], &["mail"]], Disposition::Pending);
        resolve_each(&bench, ActionKind::Confirmed, &all.iter().collect::<Vec<_>>(), &["mail"], batch_id);
        let found = cases(&bench).await;
        assert_eq!(of_class(&found).len(), cases_of_class, "{batch_id:?}");
        assert_eq!(observations(&bench, "mail").await, seen, "{batch_id:?}");
        assert_eq!((of_source(&found, "bank"), observations(&bench, "bank").await), (vec![0.51], 1), "{batch_id:?}");
        if batch_id.is_some() {
            assert_eq!(of_class(&found), [(0.53, ProposalFeedback::Confirmed)], "as bold as its boldest");
            assert_eq!(of_source(&found, "mail"), [0.53]);
            let rows = bench.index.actions().list_actions(None, None, 9).await.unwrap();
            let named: HashSet<_> =
                rows.iter().filter_map(|row| row.batch_id.as_ref().map(ToString::to_string)).collect();
            assert_eq!((named.len(), rows.iter().filter(|row| row.batch_id.is_some()).count()), (1, 4));
        }
        bench.index.rebuild(&bench.root, later()).await.unwrap();
        assert_eq!(cases(&bench).await, found);
    }
}

#[tokio::test]
async fn many_undos_with_one_click_lower_a_source_once_but_each_counts_for_a_step_back() {
    for (batch_id, undone) in [(None, 3), (Some("click"), 1)] {
        let bench = Bench::scanned().await;
        let all = propose_each(&bench, &[["mail"].as_slice(); 3], Disposition::Live);
        resolve_each(&bench, ActionKind::Reversed, &all.iter().collect::<Vec<_>>(), &["mail"], batch_id);
        let found = cases(&bench).await;
        assert_eq!(of_class(&found).len(), undone, "{batch_id:?}");
        let trust = bench.index.trust().compute_source_trust(later()).await.unwrap();
        assert_eq!(trust["mail"].confidence.undone, undone as u32, "{batch_id:?}");
        let made = bench.index.trust().list_recent_live_changes(noon("12:00:00")).await.unwrap();
        assert_eq!(made.iter().filter(|made| made.undone.is_some()).count(), 3, "each was wrong in the world");
    }
}

#[tokio::test]
async fn who_is_answered_once_more_alone_leaves_the_others_and_two_clicks_are_two_lessons() {
    let bench = Bench::scanned().await;
    let all = propose_each(&bench, &[["mail"].as_slice(); 4], Disposition::Pending);
    resolve_each(&bench, ActionKind::Confirmed, &[&all[0], &all[3]], &["mail"], Some("one"));
    resolve_each(&bench, ActionKind::Dismissed, &[&all[1], &all[2]], &["mail"], Some("two"));
    let found = cases(&bench).await;
    assert_eq!(of_class(&found), [(0.52, ProposalFeedback::Dismissed), (0.53, ProposalFeedback::Confirmed)]);
    // The most confident one of the first click is reverted.
    let rows = bench.index.actions().list_actions(None, None, 9).await.unwrap();
    let confirmed = rows.iter().find(|row| row.resolves.as_ref() == Some(&all[3])).unwrap().id.clone();
    bench.action("back", |draft| {
        answer(draft, ActionKind::Reversed, &confirmed);
        (draft.timestamp, draft.class) = (noon("09:00:00"), Some(MutationClass::StateChange));
    });
    let found = cases(&bench).await;
    let expected =
        [(0.5, ProposalFeedback::Confirmed), (0.52, ProposalFeedback::Dismissed), (0.53, ProposalFeedback::Undone)];
    assert_eq!(of_class(&found), expected, "the rest of the batch now counts by its remaining action");
}
