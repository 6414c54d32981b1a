//! What the fixed rules answer to the cases of the program: the floor below which no clerk is worth a call.

use super::{answer_by_rules, find_lack_of_room};
use steward_domain::steward::eval::cases::read_shipped_cases;
use steward_domain::steward::eval::report::{EvalReport, KindFigures};
use steward_domain::steward::guard::WindowFill;
use steward_domain::trust::report::advice::EvidenceBar;
use steward_workflows::ClerkEvalStep;

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

#[test]
fn a_case_and_its_second_try_leave_half_of_each_window_to_the_stewards() {
    let step = |used: u32, cap: u32, used_of_day: u32| {
        let fill = |used, cap| WindowFill { used, cap, next_free: None };
        find_lack_of_room([&fill(used, cap), &fill(0, 100), &fill(used_of_day, 100)])
    };
    assert_eq!(step(0, 4, 0), None);
    assert_eq!(step(1, 4, 0), Some(ClerkEvalStep::Wait { seconds: 5 }));
    assert_eq!((step(28, 60, 0), step(29, 60, 0)), (None, Some(ClerkEvalStep::Wait { seconds: 5 })));
    assert_eq!(step(29, 60, 49), Some(ClerkEvalStep::Wait { seconds: 600 }), "the longest wait counts");
    assert!(matches!(step(0, 3, 0), Some(ClerkEvalStep::Ended { .. })), "it would wait for ever");
}
