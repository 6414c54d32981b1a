//! Owed deliveries follow from the records, in any order and however often they are read.

use super::*;
use steward_domain::tracker::{TrackerId, TrackerIssue, TrackerStateGroup};

fn issue(number: u8) -> TrackerIssue {
    let id = |start: &str| TrackerId::parse(&format!("{start}-0000-4000-8000-{number:012}")).unwrap();
    TrackerIssue { project: id("aaaaaaaa"), issue: id("bbbbbbbb") }
}

fn owed(number: u8) -> Option<PlaneAction> {
    Some(PlaneAction::Owed { issue: issue(number), group: TrackerStateGroup::Completed })
}

async fn owing(index: &Index) -> Vec<ActionId> {
    index.actions().list_owed_deliveries().await.unwrap().into_iter().map(|o| o.id).collect()
}

#[tokio::test]
async fn a_change_owes_until_it_is_settled_or_undone_and_an_undo_owes_in_its_turn() {
    let bench = Bench::scanned().await;
    let one = bench.owing_action("one", |_| (), owed(1));
    let two = bench.owing_action("two", |_| (), owed(2));
    bench.owing_action("three", |_| (), Some(PlaneAction::Unusable { reason: "no".into() }));
    bench.action("four", |_| ());
    assert!(bench.sync("10:00:00").await.scan_changes.owing_arrived);
    assert_eq!(owing(&bench.index).await, [one.clone(), two.clone()]);
    assert_eq!(bench.index.actions().list_owed_deliveries().await.unwrap()[0].issue, issue(1).issue.as_str());

    let failed = PlaneAction::Failed { issue: issue(1), reason: "away".into() };
    bench.owing_action("one-failed", |d| answer(d, ActionKind::TrackFailed, &one), Some(failed));
    let report = bench.sync("10:01:00").await;
    assert_eq!((report.scan_changes.owing_arrived, owing(&bench.index).await), (false, vec![one.clone(), two.clone()]));
    let made = PlaneAction::Delivered {
        issue: issue(1),
        comment: issue(1).issue,
        from_state: None,
        to_state: None,
        left: None,
    };
    bench.owing_action("one-tracked", |d| answer(d, ActionKind::Tracked, &one), Some(made));
    bench.sync("10:02:00").await;
    assert_eq!(owing(&bench.index).await, std::slice::from_ref(&two));
    let listed = bench.index.actions().list_actions(None, None, 50).await.unwrap();
    let row = listed.iter().find(|row| row.id == one).unwrap();
    assert_eq!((row.resolution, row.resolves.clone()), (None, None), "no person has resolved it");

    let back = |of: &ActionId, number| Some(PlaneAction::RevertOwed { issue: issue(number), action_id: of.clone() });
    let (undone_one, undone_two) = (ActionId::derive(&["u1"]), ActionId::derive(&["u2"]));
    for (slug, id, of, number) in [("u1", &undone_one, &one, 1), ("u2", &undone_two, &two, 2)] {
        let change = |d: &mut AuditDraft| {
            answer(d, ActionKind::Reversed, of);
            d.id = id.clone();
        };
        bench.owing_action(slug, change, back(of, number));
    }
    bench.sync("10:03:00").await;
    let both: BTreeSet<ActionId> = owing(&bench.index).await.into_iter().collect();
    assert_eq!(both, BTreeSet::from([undone_one, undone_two]), "a delivery that was never sent is no longer owed");
    let before = bench.dump(&bench.index).await;
    bench.index.rebuild(&bench.root, noon("10:04:00")).await.unwrap();
    assert_eq!(bench.dump(&bench.index).await, before);
}
