use super::*;
use crate::action::plan::Disposition;
use crate::gates::closed::ClosedGates;
use crate::gates::mode::Ceiling;
use crate::trust::case::CaseSupporter;
use crate::trust::outcome::ProposalFeedback;
use crate::trust::tally::MAX_SOURCES;

/// A day after the first case of [`case`].
pub(crate) fn now() -> DateTime<Utc> {
    crate::time::parse("2026-11-02T08:00:00Z").unwrap()
}

pub(crate) fn case(seq: u64, source: &str, lesson: ProposalFeedback) -> TrustCase {
    let at = crate::time::parse("2026-11-01T08:00:00Z").unwrap() + chrono::TimeDelta::hours(seq.try_into().unwrap());
    TrustCase {
        seq,
        at,
        since: at,
        earlier: Vec::new(),
        class: MutationClass::StateChange,
        confidence: 0.9,
        disposition: Disposition::Shadow,
        closed: ClosedGates::default().with_gate(GateName::Mode),
        ceiling: Ceiling::Act,
        cited: Vec::new(),
        supporters: vec![CaseSupporter { key: source.into(), name: source.to_uppercase() }],
        is_repeated: false,
        feedback: lesson,
    }
}

fn build_report(cases: impl IntoIterator<Item = TrustCase>) -> TrustReport {
    let mut pass = TrustReportPass::new(&DecisionPolicy::default(), now());
    cases.into_iter().for_each(|case| pass.add_case(&case));
    pass.into_report(0.05)
}

#[test]
fn cases_are_counted_by_class_source_band_and_day() {
    let mut weak = case(3, "gmail", ProposalFeedback::Dismissed);
    weak.confidence = 0.7;
    let mut moved = case(40, "slack", ProposalFeedback::Open);
    moved.class = MutationClass::ParentMatter;
    moved.supporters.push(CaseSupporter { key: "gmail".into(), name: "Gmail".into() });
    let report = build_report([
        case(1, "gmail", ProposalFeedback::Confirmed),
        case(2, "gmail", ProposalFeedback::DoneAnyway),
        weak,
        moved,
    ]);

    assert_eq!(report.total.tally, CaseTally { agreed: 2, wrong: 1, open: 1, unanswered: 0 });
    let records = report.records.unwrap();
    assert_eq!((records.first_seq, records.last_seq), (1, 40));
    let classes: Vec<_> = report.classes.iter().map(|r| (r.class.unwrap().as_str(), r.tally.total_count())).collect();
    assert_eq!(classes, [("state_change", 3), ("parent_matter", 1)]);
    let sources: Vec<_> = report.sources.iter().map(|r| (r.name.as_deref().unwrap(), r.tally.total_count())).collect();
    assert_eq!(sources, [("Gmail", 4), ("slack".to_uppercase().as_str(), 1)], "a case counts for each of its sources");
    let bands: Vec<_> = report.confidence_bands.iter().map(|r| r.tally.total_count()).collect();
    assert_eq!(bands, [0, 1, 3, 0]);
    let days: Vec<_> = report.days.iter().map(|d| (d.day.to_string(), d.tally.total_count())).collect();
    assert_eq!(days, [("2026-11-01".to_owned(), 3), ("2026-11-03".to_owned(), 1)]);
    assert_eq!(
        report.class_sources[0].summary,
        "state_change from Gmail is not supported: 2 decided cases, at least 73 are needed"
    );
    let high = report.classes[0].modes[0];
    assert_eq!((high.mode, high.coverage.count, high.coverage.of), (Mode::LiveHighConfidenceOnly, 2, 3));
    assert_eq!(report.classes[0].modes[1].acted, CaseTally { agreed: 2, wrong: 1, open: 0, unanswered: 0 });
    assert_eq!((report.reliability.decided, report.reliability.open), (3, 1));
}

#[test]
fn each_gate_says_what_it_held_back_and_what_it_let_through() {
    let behind = |seq, lesson, gates: &[GateName]| {
        let closed = gates.iter().fold(ClosedGates::default(), |closed, gate| closed.with_gate(*gate));
        TrustCase { closed, ..case(seq, "gmail", lesson) }
    };
    use GateName::{Ceiling, Confidence, Discretion, Mode};
    let report = build_report([
        behind(1, ProposalFeedback::Confirmed, &[Mode, Confidence]),
        behind(2, ProposalFeedback::Confirmed, &[Mode, Confidence, Discretion]),
        behind(3, ProposalFeedback::Dismissed, &[Confidence]),
        TrustCase { disposition: Disposition::Live, ..behind(4, ProposalFeedback::Undone, &[]) },
        behind(5, ProposalFeedback::Opposed, &[Mode]),
    ]);
    let of = |gate| report.gates.iter().find(|row| row.gate == gate).copied();
    let confidence = of(Confidence).unwrap();
    assert_eq!(confidence.held, CaseTally { agreed: 2, wrong: 1, open: 0, unanswered: 0 });
    assert_eq!(confidence.held_alone, CaseTally { agreed: 1, wrong: 1, open: 0, unanswered: 0 });
    assert_eq!(of(Mode).unwrap().held_alone, CaseTally { agreed: 0, wrong: 1, open: 0, unanswered: 0 });
    assert_eq!(of(Ceiling), None, "one that was never closed is not reported");
    assert_eq!(
        report.let_through,
        CaseTally { wrong: 1, ..CaseTally::default() },
        "what another gate held was not let through"
    );
}

#[test]
fn a_supported_class_from_a_source_is_chosen() {
    let right = (1..=100).map(|n| case(n, "gmail", ProposalFeedback::Confirmed));
    let report = build_report(right.chain((101..=110).map(|n| case(n, "slack", ProposalFeedback::Confirmed))));
    let choice = report.choice.unwrap();
    assert_eq!((choice.mode, choice.sources), (Mode::LiveHighConfidenceOnly, vec!["gmail".to_owned()]));
    assert_eq!(report.sources[0].supported, Some(Mode::Live));
    assert_eq!(report.sources[1].supported, None);
}

#[test]
fn silence_counts_once_the_watch_is_over_and_not_a_moment_before() {
    let old =
        |hours: i64, lesson| TrustCase { since: now() - chrono::TimeDelta::hours(hours), ..case(1, "gmail", lesson) };
    let of = |cases: Vec<TrustCase>| build_report(cases).total.tally;
    let counted = of(vec![
        old(14 * 24, ProposalFeedback::Open),
        old(14 * 24 - 1, ProposalFeedback::Open),
        old(90 * 24, ProposalFeedback::Dismissed),
        old(90 * 24, ProposalFeedback::Survived),
    ]);
    assert_eq!(counted, CaseTally { agreed: 1, wrong: 1, open: 2, unanswered: 1 });
    assert_eq!((counted.precision().of, counted.worst_case_precision().of), (2, 3));
}

#[test]
fn a_source_that_went_bad_lately_is_not_recommended_on_what_it_once_was() {
    let good = (1..=1_459).map(|n| case(n, "gmail", ProposalFeedback::Confirmed));
    let late = (1_460..=1_479).map(|n| {
        let lesson = if n % 5 < 3 { ProposalFeedback::Dismissed } else { ProposalFeedback::Confirmed };
        case(n, "gmail", lesson)
    });
    assert!(build_report(good.clone()).choice.is_some());
    let mut all: Vec<TrustCase> = good.chain(late).collect();
    let report = build_report(all.clone());
    assert!(report.sources[0].tally.precision().low > 0.95, "all of them together still say yes");
    assert_eq!((report.choice.as_ref(), report.sources[0].supported), (None, None));
    assert!(
        report.sources[0].summary.contains("worse lately: 12 of the 20 newest were wrong"),
        "{}",
        report.sources[0].summary
    );
    all.reverse();
    assert_eq!(build_report(all).class_sources, report.class_sources, "in whatever order they come");
}

#[test]
fn made_up_sources_do_not_fill_the_memory_and_no_case_is_lost() {
    let many = (0..5 * MAX_SOURCES as u64).map(|n| case(n, &format!("s{n}"), ProposalFeedback::Open));
    let steady = (0..500).map(|n| case(n, "gmail", ProposalFeedback::Confirmed));
    let report = build_report(steady.chain(many));
    assert_eq!(report.sources.len(), MAX_SOURCES);
    assert_eq!(report.sources[0].source.as_deref(), Some("gmail"));
    let counted: u64 = report.sources.iter().map(|r| r.tally.total_count()).sum();
    assert_eq!(counted + report.other_sources.unwrap().tally.total_count(), 5 * MAX_SOURCES as u64 + 500);
}

#[test]
fn nothing_comes_of_nothing_and_the_names_for_scripts_stay() {
    let empty = build_report([]);
    assert_eq!((empty.records, empty.choice.as_ref(), empty.sources.len()), (None, None, 0));
    let value = serde_json::to_value(build_report([case(1, "gmail", ProposalFeedback::Confirmed)])).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(&value),
        [
            "records",
            "total",
            "classes",
            "sources",
            "other_sources",
            "confidence_bands",
            "class_sources",
            "reliability",
            "gates",
            "let_through",
            "days",
            "bar",
            "choice"
        ]
    );
    let row =
        "class source name actions agreed wrong open unanswered precision worst_case modes supported nearest summary";
    let row: Vec<&str> = row.split(' ').collect();
    assert_eq!(keys(&value["class_sources"][0]), row);
    assert_eq!(keys(&value["classes"][0]["precision"]), ["count", "of", "share", "low", "high"]);
}

#[test]
fn what_others_proposed_again_counts_for_its_own_sources_alone() {
    let first = TrustCase { is_repeated: true, ..case(1, "mail", ProposalFeedback::DoneAnyway) };
    let report = build_report([first, case(2, "slack", ProposalFeedback::DoneAnyway)]);
    assert_eq!((report.total.tally.total_count(), report.classes[0].tally.agreed), (1, 1), "one act is one case");
    assert_eq!(report.confidence_bands.iter().map(|band| band.tally.agreed).sum::<u64>(), 1);
    let sources: Vec<_> = report.sources.iter().map(|row| (row.source.clone().unwrap(), row.tally.agreed)).collect();
    assert_eq!(sources, [("mail".to_owned(), 1), ("slack".to_owned(), 1)]);
}
