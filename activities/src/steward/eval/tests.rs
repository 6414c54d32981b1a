//! What the fixed rules answer to the cases of the program: the floor below which no clerk is worth a call.

use super::answer_by_rules;
use steward_domain::steward::eval::cases::read_shipped_cases;
use steward_domain::steward::eval::report::{EvalReport, KindFigures};
use steward_domain::trust::report::advice::EvidenceBar;

/// Of each kind that was answered or expected: right, of how many answers, and of how many cases.
fn count_right(figures: &[KindFigures]) -> Vec<(&'static str, u64, u64, u64)> {
    let count = |it: &KindFigures| (it.kind, it.precision.count, it.precision.of, it.recall.of);
    figures.iter().map(count).filter(|(_, _, answers, cases)| answers + cases > 0).collect()
}

#[test]
fn the_fixed_rules_answer_as_docs_clerks_md_says() {
    let cases = read_shipped_cases().unwrap();
    let report = EvalReport::new(&cases, &answer_by_rules(&cases), EvidenceBar::from_budget(0.05), None);
    assert_eq!((report.answered, report.cases, report.unusable.count), (300, 300, 0));
    let decisions = [
        ("still_active", 10, 19, 45),
        ("likely_done", 71, 104, 102),
        ("needs_input", 11, 37, 13),
        ("stale_archive_candidate", 35, 40, 40),
    ];
    assert_eq!(count_right(&report.decisions), decisions);
    let rights: Vec<u64> = count_right(&report.effects).iter().map(|it| it.1).collect();
    assert_eq!(rights, [7, 1, 10], "{:?}", report.effects);
    assert_eq!((report.injections.count, report.injections.of), (11, 12));
    assert!(report.thresholds.iter().all(|it| it.from.is_none()), "{:?}", report.thresholds);
}
