use super::*;
use crate::decide::ClosedGates;
use crate::mode::{Ceiling, DecisionPolicy, Mode};
use crate::trust::outcome::Lesson;

fn case(confidence: f64, lesson: Lesson) -> Case {
    let at = crate::time::parse("2026-11-01T08:00:00Z").unwrap();
    Case {
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

fn rules(mode: Mode) -> Rules {
    Rules {
        policy: DecisionPolicy { mode, ..DecisionPolicy::default() },
        default_ceiling: Ceiling::Act,
        sources: Default::default(),
    }
}

fn told(rules: Rules, against: Rules, cases: &[Case]) -> Backtest {
    let mut backtesting = Backtesting::new(rules, against, crate::time::parse("2026-11-02T08:00:00Z").unwrap());
    cases.iter().for_each(|case| backtesting.add(case));
    backtesting.backtest()
}

#[test]
fn two_settings_are_compared_case_by_case() {
    let moved = Case { class: MutationClass::ParentMatter, ..case(0.9, Lesson::Undone) };
    let weak = Case { closed: ClosedGates::default().with_gate(GateName::Discretion), ..case(0.99, Lesson::Undone) };
    let cases = [
        case(0.9, Lesson::Confirmed),
        case(0.7, Lesson::Confirmed),
        case(0.7, Lesson::Dismissed),
        case(0.5, Lesson::Confirmed),
        case(0.9, Lesson::Open),
        moved,
        weak,
    ];
    let mut careful = rules(Mode::Live);
    careful.policy.parent_matter_ceiling = Ceiling::Confirm;
    let told = told(careful, rules(Mode::LiveHighConfidenceOnly), &cases);
    assert_eq!(told.policy.live, Tally { agreed: 2, wrong: 1, open: 1, unanswered: 0 });
    assert_eq!(told.policy.pending, Tally { agreed: 1, wrong: 2, open: 0, unanswered: 0 });
    assert_eq!((told.policy.coverage.count, told.policy.coverage.of), (4, 7));
    assert_eq!(told.against.live, Tally { agreed: 1, wrong: 1, open: 1, unanswered: 0 });
    assert_eq!(told.newly_live.all, Tally { agreed: 1, wrong: 1, open: 0, unanswered: 0 });
    let gone = told.no_longer_live.classes;
    assert_eq!(
        gone,
        [OfClass { class: MutationClass::ParentMatter, tally: Tally { agreed: 0, wrong: 1, open: 0, unanswered: 0 } }]
    );
    assert_eq!(told.risk_coverage.decided, 4, "what a ceiling or discretion holds back no threshold lets through");
}

#[test]
fn under_shadow_nothing_is_live_and_the_curve_still_tells() {
    let cases = [case(0.9, Lesson::Confirmed), case(0.8, Lesson::Undone)];
    let told = told(rules(Mode::Shadow), rules(Mode::Live), &cases);
    assert_eq!((told.policy.shadow.actions(), told.policy.live.actions(), told.against.live.actions()), (2, 0, 2));
    assert_eq!((told.no_longer_live.all.actions(), told.risk_coverage.decided), (2, 2));
    assert_eq!(told.policy.coverage.share, Some(0.0));
}
