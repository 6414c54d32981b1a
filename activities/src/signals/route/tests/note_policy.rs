//! The note policy at the time of a change counts, for stewards and for the router, whatever it was before.

use super::*;

fn note(bench: &VaultFixture, block: &str) {
    bench.put("matter/m.md", &format!("---\ntype: matter\nname: M\nstate: open\nsteward:\n{block}---\n"));
}

/// Quiet hours in UTC that begin and end the given number of hours from now.
fn hours(from: i64, to: i64) -> String {
    let at = |hours| (Utc::now() + TimeDelta::hours(hours)).format("%H:%M").to_string();
    format!("  quiet_hours: \"{}-{}\"\n", at(from), at(to))
}

/// The disposition of a change that was judged before the note had this block, and the closed gates.
async fn landed(block: &str) -> (Disposition, Vec<(GateName, String)>) {
    let bench = VaultFixture::new(Mode::Live).await;
    let seen = bench.see("run/1").await;
    note(&bench, block);
    bench.sync().await;
    assert!(matches!(
        bench.steward().apply_decision(apply_ask(&seen, "run/1")).await.unwrap(),
        ApplyOutput::Filed { .. }
    ));
    let draft = bench.records().remove(0).draft;
    assert_eq!(bench.task().contains("state: done"), draft.disposition == Disposition::Live);
    let closed = draft.gates.into_iter().filter(|gate| !gate.open);
    (draft.disposition, closed.map(|gate| (gate.gate, gate.found)).collect())
}

#[tokio::test]
async fn a_note_that_was_narrowed_since_the_look_holds_at_landing() {
    let policy = |found: &str| vec![(GateName::Policy, found.to_owned())];
    assert_eq!(landed("  daily_budget: 1\n").await, (Disposition::Live, vec![]));
    assert_eq!(landed("  classes: [related]\n").await, (Disposition::Pending, policy("class state_change")));
    assert_eq!(landed("  trusted_sources: [mail]\n").await, (Disposition::Pending, policy("source bank")));
    assert_eq!(
        landed("  ceiling: confirm\n").await,
        (Disposition::Pending, vec![(GateName::Ceiling, "confirm".into())])
    );
    let spent = policy("0 live changes in 24 h under matter/m.md");
    assert_eq!(landed("  daily_budget: 0\n").await, (Disposition::Pending, spent));
    let (disposition, closed) = landed(&hours(-2, 2)).await;
    assert_eq!(
        (disposition, closed[0].0),
        (Disposition::Pending, GateName::Policy),
        "quiet hours that have just begun"
    );
    assert_eq!(landed("  [\n").await.0, Disposition::Pending, "nobody knows what it would say");
}

#[tokio::test]
async fn the_router_is_held_by_the_notes_of_all_matters_concerned() {
    let bench = VaultFixture::of_all_classes(Mode::Live).await;
    bench.put("matter/farm.md", "---\ntype: matter\nname: F\nsteward: {classes: [related]}\n---\n");
    note(&bench, "  fields: [owner, parent_matter, state]\n  daily_budget: 2\n");
    bench.sync().await;
    let report = bench.route().await;
    assert_eq!(
        (report.dispositions.get(&Disposition::Live), report.dispositions.get(&Disposition::Pending)),
        (Some(&2), Some(&2)),
        "{report:?}"
    );
    let held = bench.records().into_iter().map(|r| r.draft).filter(|d| d.disposition == Disposition::Pending);
    let mut held: Vec<_> = held.map(|d| (d.class.unwrap().as_str(), d.confirmable)).collect();
    held.sort_unstable();
    assert_eq!(held, [("parent_matter", false), ("related", false)]);
}

#[tokio::test]
async fn under_a_matter_that_cannot_be_read_the_router_only_asks() {
    let bench = VaultFixture::of_all_classes(Mode::Live).await;
    bench.put("matter/m.md", "---\ntype: matter\nsteward: [\n---\n");
    bench.sync().await;
    let report = bench.route().await;
    assert_eq!(report.dispositions.get(&Disposition::Live), None, "{report:?}");
    assert!(bench.records().iter().all(|r| r.draft.disposition == Disposition::Pending && !r.draft.confirmable));
    assert_eq!(bench.records().len(), 3, "{report:?}");
}

#[tokio::test]
async fn the_router_comes_back_when_it_is_quiet_no_more_and_leaves_the_steward_its_turn() {
    let mut bench = VaultFixture::of_all_classes(Mode::Live).await;
    bench.context.settings.cadence.matter_seconds = 1_800;
    note(&bench, &hours(-2, 2));
    bench.sync().await;
    let report = bench.route().await;
    let skipped = |name: &str| report.skipped.get(name).copied();
    assert_eq!((skipped("quiet_hours"), skipped("with_the_steward"), bench.records().len()), (Some(3), Some(1), 0));
    assert_eq!(bench.standing("signal/context.md"), ("unrouted".into(), None));
    let now = Utc::now();
    let waiting = async |minutes: i64| {
        let at = now + TimeDelta::minutes(minutes);
        bench.context.index.signals().list_signals_to_route(9, at, true).await.unwrap().len()
    };
    assert_eq!((waiting(29).await, waiting(31).await), (0, 3), "half an hour later it looks whether they are shorter");
    assert_eq!((waiting(140).await, waiting(151).await), (3, 4), "the steward has its interval after them");
}

#[tokio::test]
async fn what_is_proposed_for_a_task_whose_matter_is_gone_only_asks() {
    let bench = VaultFixture::of_all_classes(Mode::Live).await;
    let quiet = bench.read("task/quiet.md");
    std::fs::remove_file(bench.dir.path().join("matter/m.md")).unwrap();
    bench.sync().await;
    bench.route().await;
    assert_eq!(bench.read("task/quiet.md"), quiet, "it had the limits of no matter at all");
    let of_tasks: Vec<AuditRecord> =
        bench.records().into_iter().filter(|r| r.draft.target_kind == RecordKind::Task).collect();
    assert_eq!(of_tasks.len(), 3);
    assert!(
        of_tasks.iter().all(|r| r.draft.disposition == Disposition::Pending && !r.draft.confirmable),
        "{of_tasks:?}"
    );
}

#[tokio::test]
async fn a_matter_that_goes_between_decision_and_landing_leaves_its_task_to_a_human() {
    let bench = VaultFixture::new(Mode::Live).await;
    let (ask, before) = (apply_ask(&bench.see("run/1").await, "run/1"), bench.task());
    std::fs::rename(bench.dir.path().join("matter/m.md"), bench.dir.path().join("matter/n.md")).unwrap();
    let applied = bench.steward().apply_decision(ask).await.unwrap();
    assert!(matches!(applied, ApplyOutput::Filed { disposition: Disposition::Pending, .. }), "{applied:?}");
    assert_eq!(bench.task(), before);
    assert!(!bench.records()[0].draft.confirmable);
}
