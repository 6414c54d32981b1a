//! Answers that claim nothing, that are taken back, or that hold for equal proposals, and snoozes.

use super::*;
use crate::index::TrustView;
use chrono::TimeDelta;
use steward_domain::trust::outcome::ProposalFeedback;

/// A proposal about a task, in Watch or pending.
fn propose(bench: &Bench, name: &str, clock: &str, disposition: Disposition) -> ActionId {
    bench.action(name, |d| {
        (d.timestamp, d.disposition) = (noon(clock), disposition);
        d.pending_confirmation = disposition == Disposition::Pending;
        d.class = Some(MutationClass::StateChange);
        cite(d, "signal/s.md");
    })
}

/// A record that follows another one.
fn follow(bench: &Bench, name: &str, clock: &str, kind: ActionKind, action: &ActionId) -> ActionId {
    bench.action(name, |d| {
        answer(d, kind, action);
        (d.timestamp, d.disposition) = (noon(clock), Disposition::Recorded);
    })
}

async fn feedback(bench: &Bench) -> Vec<(bool, ProposalFeedback)> {
    let mut all = Vec::new();
    let trust: TrustView<'_> = bench.index.trust();
    trust.for_each_case(tonight(), |case| all.push((case.is_repeated, case.feedback))).await.unwrap();
    all
}

async fn waiting(bench: &Bench) -> u64 {
    bench.index.actions().count_pending_actions(tonight()).await.unwrap()
}

async fn world() -> Bench {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.put("signal/s.md", signal_text("task/t.md", "2026-11-21T01:00:00Z", ""));
    bench
}

#[tokio::test]
async fn right_and_wrong_count_like_a_confirmation_and_a_dismissal() {
    for (kind, expected) in
        [(ActionKind::Right, ProposalFeedback::Confirmed), (ActionKind::Wrong, ProposalFeedback::Dismissed)]
    {
        let bench = world().await;
        let action = propose(&bench, "a", "02:00:00", Disposition::Shadow);
        let said = follow(&bench, "b", "03:00:00", kind, &action);
        bench.sync("04:00:00").await;
        assert_eq!(feedback(&bench).await, [(false, expected)]);
        let row = bench.index.actions().action_by_id(&action).await.unwrap().unwrap();
        assert_eq!(row.resolution, Some(kind));
        // Taken back, it counts for nothing.
        follow(&bench, "c", "05:00:00", ActionKind::Reopened, &said);
        bench.sync("06:00:00").await;
        assert_eq!(feedback(&bench).await, [(false, ProposalFeedback::Open)]);
        let row = bench.index.actions().action_by_id(&action).await.unwrap().unwrap();
        assert_eq!(row.resolution, None);
        bench.counts_as_rebuilt().await;
    }
}

#[tokio::test]
async fn a_change_that_is_proposed_again_after_right_is_one_case_whatever_follows() {
    for (disposition, then, expected) in [
        (Disposition::Shadow, None, ProposalFeedback::Confirmed),
        (Disposition::Pending, None, ProposalFeedback::Confirmed),
        (Disposition::Pending, Some(ActionKind::Confirmed), ProposalFeedback::Confirmed),
        (Disposition::Pending, Some(ActionKind::Dismissed), ProposalFeedback::Dismissed),
        (Disposition::Live, Some(ActionKind::Reversed), ProposalFeedback::Undone),
    ] {
        let bench = world().await;
        let first = propose(&bench, "a", "02:00:00", Disposition::Shadow);
        follow(&bench, "b", "03:00:00", ActionKind::Right, &first);
        let again = propose(&bench, "c", "04:00:00", disposition);
        if let Some(kind) = then {
            follow(&bench, "d", "05:00:00", kind, &again);
        }
        bench.sync("06:00:00").await;
        assert_eq!(feedback(&bench).await, [(false, expected)], "{disposition:?} {then:?}");
        bench.counts_as_rebuilt().await;
    }
}

#[tokio::test]
async fn right_leaves_a_proposal_open_and_wrong_ends_it() {
    for (kind, claims) in [(ActionKind::Right, false), (ActionKind::Wrong, true)] {
        let bench = world().await;
        let action = propose(&bench, "a", "02:00:00", Disposition::Shadow);
        follow(&bench, "b", "03:00:00", kind, &action);
        bench.sync("04:00:00").await;
        let query = crate::index::RouteFactsQuery {
            signal: &path("signal/s.md"),
            target: &path("task/t.md"),
            source: "bank",
            new_parent: None,
            acts: true,
            default_ceiling: steward_domain::gates::mode::Ceiling::Act,
        };
        let facts = bench.index.signals().read_route_facts(&query).await.unwrap().unwrap();
        assert_eq!(facts.claim.is_some(), claims, "{kind:?}");
    }
}

#[tokio::test]
async fn an_answer_holds_for_equal_proposals_before_it_also_after_its_change_was_undone() {
    let bench = world().await;
    let first = propose(&bench, "a", "02:00:00", Disposition::Pending);
    let second = propose(&bench, "b", "03:00:00", Disposition::Pending);
    bench.sync("04:00:00").await;
    assert_eq!(waiting(&bench).await, 1, "two equal proposals are one");
    let confirmed = follow(&bench, "c", "05:00:00", ActionKind::Confirmed, &second);
    bench.sync("06:00:00").await;
    follow(&bench, "d", "07:00:00", ActionKind::Reversed, &confirmed);
    bench.sync("08:00:00").await;
    assert_eq!(waiting(&bench).await, 0);
    let row = bench.index.actions().action_by_id(&first).await.unwrap().unwrap();
    assert!(!row.waits && row.resolution.is_none());
    let found = bench.index.actions().find_answer_to_equal(&row.path).await.unwrap().unwrap();
    assert_eq!(found.as_str(), "event/steward-action-c.md");
    propose(&bench, "e", "09:00:00", Disposition::Pending);
    bench.sync("10:00:00").await;
    assert_eq!(waiting(&bench).await, 1, "it was proposed again since");
    bench.counts_as_rebuilt().await;
}

#[tokio::test]
async fn a_reopened_dismissal_waits_and_a_reopened_question_asks_in_any_order_of_reading() {
    for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
        let bench = world().await;
        let files = || {
            let action = propose(&bench, "a", "02:00:00", Disposition::Pending);
            let dismissed = follow(&bench, "b", "03:00:00", ActionKind::Dismissed, &action);
            follow(&bench, "c", "04:00:00", ActionKind::Reopened, &dismissed);
        };
        files();
        let read: Vec<Vec<u8>> = order
            .iter()
            .map(|name| {
                let path = bench.root.path().join(format!("event/steward-action-{name}.md"));
                let bytes = std::fs::read(&path).unwrap();
                std::fs::remove_file(path).unwrap();
                bytes
            })
            .collect();
        for (name, bytes) in order.iter().zip(read) {
            bench.put(&format!("event/steward-action-{name}.md"), String::from_utf8(bytes).unwrap());
            bench.sync("05:00:00").await;
        }
        assert_eq!(waiting(&bench).await, 1, "{order:?}");
        bench.counts_as_rebuilt().await;
        std::fs::remove_file(bench.root.path().join("event/steward-action-c.md")).unwrap();
        bench.sync("06:00:00").await;
        assert_eq!(waiting(&bench).await, 0, "{order:?}: without the reopening the dismissal holds");
    }
    let bench = world().await;
    let question = bench.action("q", |d| {
        (d.decision, d.disposition) = (Judgement::NeedsInput, Disposition::Recorded);
        (d.proposal, d.proposed_state) = (None, None);
    });
    let asks = async || bench.index.read().list_open_questions(9, tonight()).await.unwrap().len();
    bench.sync("04:00:00").await;
    assert_eq!(asks().await, 1);
    let kept = follow(&bench, "k", "05:00:00", ActionKind::Dismissed, &question);
    bench.sync("06:00:00").await;
    assert_eq!(asks().await, 0);
    follow(&bench, "r", "07:00:00", ActionKind::Reopened, &kept);
    bench.sync("08:00:00").await;
    assert_eq!(asks().await, 1);
    bench.counts_as_rebuilt().await;
}

#[tokio::test]
async fn a_reopening_takes_no_change_back() {
    let bench = world().await;
    let action = propose(&bench, "a", "02:00:00", Disposition::Pending);
    let confirmed = follow(&bench, "b", "03:00:00", ActionKind::Confirmed, &action);
    follow(&bench, "c", "04:00:00", ActionKind::Reopened, &confirmed);
    bench.sync("05:00:00").await;
    assert_eq!(waiting(&bench).await, 0);
}

#[tokio::test]
async fn a_snooze_hides_until_its_end_or_the_next_signal() {
    let bench = world().await;
    let target = path("task/t.md");
    propose(&bench, "a", "02:00:00", Disposition::Pending);
    bench.sync("03:00:00").await;
    let shown = async |clock: &str| bench.index.actions().count_pending_actions(noon(clock)).await.unwrap();
    bench.index.cursors().snooze_note(&target, noon("09:00:00"), noon("04:00:00")).await.unwrap();
    assert_eq!((shown("05:00:00").await, shown("09:00:00").await), (0, 1));
    let snoozed = ActionFilter { only: ActionSubset::Snoozed(noon("05:00:00")), ..ActionFilter::default() };
    assert_eq!(bench.index.actions().actions_page(&snoozed, None, 9).await.unwrap().rows.len(), 1);
    assert_eq!(bench.index.cursors().list_snoozes(noon("05:00:00")).await.unwrap().len(), 1);
    bench.put("signal/later.md", signal_text("task/t.md", "2026-11-21T01:00:00Z", ""));
    bench.sync("06:00:00").await;
    assert_eq!(shown("06:30:00").await, 1, "a signal came, whatever its date");
    bench.index.cursors().snooze_note(&target, noon("09:00:00"), noon("07:00:00")).await.unwrap();
    assert_eq!(shown("08:00:00").await, 0);
    bench.index.cursors().end_snooze(&target).await.unwrap();
    assert_eq!(shown("08:00:00").await, 1);
}

#[tokio::test]
async fn a_proposal_that_nobody_answered_for_14_days_is_in_its_own_list() {
    let bench = world().await;
    propose(&bench, "a", "02:00:00", Disposition::Pending);
    bench.sync("03:00:00").await;
    let later = noon("02:00:00") + TimeDelta::days(14);
    let expired = async |now| {
        let filter = ActionFilter { only: ActionSubset::Expired(now), ..ActionFilter::default() };
        bench.index.actions().actions_page(&filter, None, 9).await.unwrap().rows.len()
    };
    let before = later - TimeDelta::seconds(1);
    assert_eq!((bench.index.actions().count_pending_actions(before).await.unwrap(), expired(before).await), (1, 0));
    assert_eq!((bench.index.actions().count_pending_actions(later).await.unwrap(), expired(later).await), (0, 1));
}

#[tokio::test]
async fn the_newest_signals_of_each_record_come_with_those_that_are_cited() {
    let bench = world().await;
    bench.task("u", "m", "");
    for hour in 2..9 {
        let name = format!("signal/n{hour}.md");
        bench.put(&name, signal_text("task/t.md", &format!("2026-11-21T0{hour}:00:00Z"), ""));
    }
    bench.put("signal/u.md", signal_text("task/u.md", "2026-11-21T01:00:00Z", ""));
    bench.sync("10:00:00").await;
    let records = [path("task/t.md"), path("task/u.md"), path("task/t.md")];
    let found = bench.index.read().list_newest_signals(&records, &["signal/s.md"], 2).await.unwrap();
    let names = |record: &str| found[&path(record)].iter().map(|s| s.path.slug().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        (names("task/t.md"), names("task/u.md")),
        (vec!["n8".into(), "n7".into(), "s".into()], vec!["u".into()])
    );
}

#[tokio::test]
async fn whatever_the_order_of_reading_equal_proposals_wait_as_after_a_rebuild() {
    for gone in [false, true] {
        let bench = world().await;
        propose(&bench, "a", "02:00:00", Disposition::Pending);
        bench.sync("02:30:00").await;
        let later = propose(&bench, "c", "03:00:00", Disposition::Pending);
        let path_of_later = bench.root.path().join("event/steward-action-c.md");
        let bytes = std::fs::read(&path_of_later).unwrap();
        std::fs::remove_file(&path_of_later).unwrap();
        follow(&bench, "d", "04:00:00", ActionKind::Dismissed, &later);
        bench.sync("05:00:00").await;
        bench.put("event/steward-action-c.md", String::from_utf8(bytes).unwrap());
        bench.sync("06:00:00").await;
        assert_eq!(waiting(&bench).await, 0, "the answer holds for both");
        if gone {
            std::fs::remove_file(&path_of_later).unwrap();
            bench.sync("07:00:00").await;
            assert_eq!(waiting(&bench).await, 1);
        }
        bench.counts_as_rebuilt().await;
    }
}

#[tokio::test]
async fn of_equal_proposals_made_in_watch_one_is_answered() {
    let bench = world().await;
    let first = propose(&bench, "a", "02:00:00", Disposition::Shadow);
    let second = propose(&bench, "b", "03:00:00", Disposition::Shadow);
    let outcome = async |id: &ActionId| {
        let row = bench.index.actions().action_by_id(id).await.unwrap().unwrap();
        bench.index.actions().find_outcome_of_equal(&row.path).await.unwrap().map(|path| path.slug().to_owned())
    };
    bench.sync("04:00:00").await;
    assert_eq!((outcome(&first).await, outcome(&second).await), (None, None));
    follow(&bench, "w", "05:00:00", ActionKind::Wrong, &second);
    bench.sync("06:00:00").await;
    assert_eq!(outcome(&first).await.as_deref(), Some("steward-action-w"));
    let third = propose(&bench, "c", "07:00:00", Disposition::Shadow);
    bench.sync("08:00:00").await;
    assert_eq!(outcome(&third).await, None, "it was proposed after that answer");
    propose(&bench, "l", "09:00:00", Disposition::Live);
    bench.sync("10:00:00").await;
    assert_eq!(outcome(&third).await.as_deref(), Some("steward-action-l"), "the change itself is an outcome");
}

#[tokio::test]
async fn an_older_equal_proposal_is_as_unclear_as_the_newer_one() {
    let bench = world().await;
    let first = propose(&bench, "a", "02:00:00", Disposition::Pending);
    propose(&bench, "b", "03:00:00", Disposition::Pending);
    let text = signal_text("task/t.md", "2026-11-21T04:00:00Z", "effect: action\n");
    let text = text.replace("mutation_proposal:\n  class: state_change\n  set:\n    state: done\n", "");
    bench.put("signal/bounced.md", text);
    bench.sync("05:00:00").await;
    let row = bench.index.actions().action_by_id(&first).await.unwrap().unwrap();
    assert!(row.is_repeated);
    let effect: String = sqlx::query_scalar("SELECT effect FROM signals WHERE path = 'signal/bounced.md'")
        .fetch_one(&bench.index.store.reader)
        .await
        .unwrap();
    assert_eq!(effect, "action");
    assert!(bench.index.actions().is_unclear(&row.path).await.unwrap());
}

#[tokio::test]
async fn a_change_by_hand_after_a_live_change_is_found_although_the_proposal_was_called_right() {
    let bench = world().await;
    let first = propose(&bench, "a", "02:00:00", Disposition::Shadow);
    follow(&bench, "b", "03:00:00", ActionKind::Right, &first);
    propose(&bench, "c", "04:00:00", Disposition::Live);
    bench.sync("05:00:00").await;
    // Somebody writes the note later.
    bench.task("t", "m", "owner: ann\n");
    bench.sync("06:00:00").await;
    let sql = "SELECT COUNT(*) FROM (".to_owned() + crate::index::trust::demotions::TO_COMPARE + ")";
    let day = crate::index::store::codec::to_micros;
    let found: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .bind(day(noon("00:00:00")))
        .bind(day(tonight()))
        .bind(day(noon("00:00:00")))
        .bind(9)
        .fetch_one(&bench.index.store.reader)
        .await
        .unwrap();
    assert_eq!(found, 1, "the live change, and not the proposal");
}

#[tokio::test]
async fn a_forged_reopening_leads_nowhere() {
    let bench = world().await;
    let write = |draft: &AuditDraft| {
        let link = ChainLink { seq: 1, prev: ContentHash::genesis() };
        let record = AuditRecord::from_draft(draft.clone(), Vec::new(), link);
        bench.put(draft.record_path().unwrap().as_str(), record.render().unwrap());
    };
    let action = draft("a");
    write(&action);
    let answer = |kind, of: &AuditDraft, clock: &str| {
        let mut answer = of.derive_follow_up(kind, "ann", None, action.workflow.clone(), noon(clock));
        answer.timestamp = noon(clock);
        answer
    };
    let dismissed = answer(ActionKind::Dismissed, &action, "10:00:00");
    write(&dismissed);
    let standing = || crate::action::answers::read_standing(&bench.root, &action).unwrap();
    assert!(standing().answer.is_some());
    // Back to the action itself: its first answer would be found again, and again.
    let mut forged = answer(ActionKind::Reopened, &dismissed, "11:00:00");
    forged.timestamp = action.timestamp;
    write(&forged);
    assert!(standing().answer.is_some() && standing().reopened.is_none());
    write(&answer(ActionKind::Reopened, &dismissed, "11:00:00"));
    assert!(standing().answer.is_none() && standing().reopened.is_some());
}
