use super::*;
use crate::gates::closed::ClosedGates;
use crate::gates::mode::{Ceiling, DecisionPolicy, Mode};
use crate::trust::outcome::ProposalFeedback;

fn case(confidence: f64, lesson: ProposalFeedback) -> TrustCase {
    let at = crate::time::parse("2026-11-01T08:00:00Z").unwrap();
    TrustCase {
        seq: 1,
        at,
        since: at,
        earlier: Vec::new(),
        class: MutationClass::StateChange,
        confidence,
        disposition: Disposition::Shadow,
        closed: ClosedGates::default().with_gate(GateName::Mode),
        ceiling: Ceiling::Act,
        cited: Vec::new(),
        supporters: Vec::new(),
        is_repeated: false,
        feedback: lesson,
    }
}

fn rules(mode: Mode) -> ReplayRules {
    ReplayRules {
        policy: DecisionPolicy { mode, ..DecisionPolicy::default() },
        default_ceiling: Ceiling::Act,
        sources: Default::default(),
    }
}

fn backtest(rules: ReplayRules, against: ReplayRules, cases: &[TrustCase]) -> BacktestReport {
    let mut pass = BacktestPass::new(rules, against, crate::time::parse("2026-11-02T08:00:00Z").unwrap());
    cases.iter().for_each(|case| pass.add_case(case));
    pass.into_report()
}

#[test]
fn two_settings_are_compared_case_by_case() {
    let moved = TrustCase { class: MutationClass::ParentMatter, ..case(0.9, ProposalFeedback::Undone) };
    let weak = TrustCase {
        closed: ClosedGates::default().with_gate(GateName::Discretion),
        ..case(0.99, ProposalFeedback::Undone)
    };
    let cases = [
        case(0.9, ProposalFeedback::Confirmed),
        case(0.7, ProposalFeedback::Confirmed),
        case(0.7, ProposalFeedback::Dismissed),
        case(0.5, ProposalFeedback::Confirmed),
        case(0.9, ProposalFeedback::Open),
        moved,
        weak,
    ];
    let mut careful = rules(Mode::Live);
    careful.policy.parent_matter_ceiling = Ceiling::Confirm;
    let report = backtest(careful, rules(Mode::LiveHighConfidenceOnly), &cases);
    assert_eq!(report.policy.live, CaseTally { agreed: 2, wrong: 1, open: 1, unanswered: 0 });
    assert_eq!(report.policy.pending, CaseTally { agreed: 1, wrong: 2, open: 0, unanswered: 0 });
    assert_eq!((report.policy.coverage.count, report.policy.coverage.of), (4, 7));
    assert_eq!(report.against.live, CaseTally { agreed: 1, wrong: 1, open: 1, unanswered: 0 });
    assert_eq!(report.newly_live.all, CaseTally { agreed: 1, wrong: 1, open: 0, unanswered: 0 });
    let removed = report.no_longer_live.classes;
    assert_eq!(
        removed,
        [ClassTally {
            class: MutationClass::ParentMatter,
            tally: CaseTally { agreed: 0, wrong: 1, open: 0, unanswered: 0 }
        }]
    );
    assert_eq!(report.risk_coverage.decided, 4, "no threshold opens what a ceiling or discretion holds");
}

#[test]
fn under_shadow_nothing_is_live_and_the_curve_still_tells() {
    let cases = [case(0.9, ProposalFeedback::Confirmed), case(0.8, ProposalFeedback::Undone)];
    let report = backtest(rules(Mode::Shadow), rules(Mode::Live), &cases);
    assert_eq!(
        (report.policy.shadow.total_count(), report.policy.live.total_count(), report.against.live.total_count()),
        (2, 0, 2)
    );
    assert_eq!((report.no_longer_live.all.total_count(), report.risk_coverage.decided), (2, 2));
    assert_eq!(report.policy.coverage.share, Some(0.0));
}
