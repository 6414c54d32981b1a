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
        landing: Disposition::Shadow,
        closed: ClosedGates::default().with_gate(GateName::Mode),
        ceiling: Ceiling::Act,
        cited: Vec::new(),
        voices: Vec::new(),
        again: false,
        lesson,
    }
}

fn rules(mode: Mode) -> ReplayRules {
    ReplayRules {
        policy: DecisionPolicy { mode, ..DecisionPolicy::default() },
        default_ceiling: Ceiling::Act,
        sources: Default::default(),
    }
}

fn told(rules: ReplayRules, against: ReplayRules, cases: &[TrustCase]) -> BacktestReport {
    let mut backtesting = BacktestPass::new(rules, against, crate::time::parse("2026-11-02T08:00:00Z").unwrap());
    cases.iter().for_each(|case| backtesting.add_case(case));
    backtesting.into_report()
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
    let told = told(careful, rules(Mode::LiveHighConfidenceOnly), &cases);
    assert_eq!(told.policy.live, CaseTally { agreed: 2, wrong: 1, open: 1, unanswered: 0 });
    assert_eq!(told.policy.pending, CaseTally { agreed: 1, wrong: 2, open: 0, unanswered: 0 });
    assert_eq!((told.policy.coverage.count, told.policy.coverage.of), (4, 7));
    assert_eq!(told.against.live, CaseTally { agreed: 1, wrong: 1, open: 1, unanswered: 0 });
    assert_eq!(told.newly_live.all, CaseTally { agreed: 1, wrong: 1, open: 0, unanswered: 0 });
    let gone = told.no_longer_live.classes;
    assert_eq!(
        gone,
        [ClassTally {
            class: MutationClass::ParentMatter,
            tally: CaseTally { agreed: 0, wrong: 1, open: 0, unanswered: 0 }
        }]
    );
    assert_eq!(told.risk_coverage.decided, 4, "what a ceiling or discretion holds back no threshold lets through");
}

#[test]
fn under_shadow_nothing_is_live_and_the_curve_still_tells() {
    let cases = [case(0.9, ProposalFeedback::Confirmed), case(0.8, ProposalFeedback::Undone)];
    let told = told(rules(Mode::Shadow), rules(Mode::Live), &cases);
    assert_eq!(
        (told.policy.shadow.total_count(), told.policy.live.total_count(), told.against.live.total_count()),
        (2, 0, 2)
    );
    assert_eq!((told.no_longer_live.all.total_count(), told.risk_coverage.decided), (2, 2));
    assert_eq!(told.policy.coverage.share, Some(0.0));
}
