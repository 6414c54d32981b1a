use super::*;
use crate::commands::trust::write_headline;
use chrono::{DateTime, TimeDelta, Utc};
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::Disposition;
use steward_domain::gates::closed::ClosedGates;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::time;
use steward_domain::trust::case::{CaseSupporter, TrustCase};
use steward_domain::trust::mark::TrustSubject;
use steward_domain::trust::outcome::ProposalFeedback;
use steward_domain::trust::report::TrustReportPass;
use steward_vault::action::chain::ChainVerification;

fn now() -> DateTime<Utc> {
    time::parse("2026-11-25T08:00:00Z").unwrap()
}

/// Right proposals of a source, one an hour.
fn cases(source: &str, count: u64) -> impl Iterator<Item = TrustCase> {
    let begin = now() - TimeDelta::days(30);
    (0..count).map(move |seq| TrustCase {
        seq,
        at: begin + TimeDelta::hours(seq.try_into().unwrap()),
        since: begin,
        earlier: Vec::new(),
        class: MutationClass::StateChange,
        confidence: 0.9,
        disposition: Disposition::Shadow,
        closed: ClosedGates::default(),
        ceiling: Ceiling::Act,
        cited: Vec::new(),
        supporters: vec![CaseSupporter { key: source.into(), name: source.into() }],
        is_repeated: false,
        feedback: ProposalFeedback::Confirmed,
    })
}

fn document(cases: impl IntoIterator<Item = TrustCase>, lowered: Vec<TrustReportDemotion>) -> TrustReportDocument {
    let mut pass = TrustReportPass::new(&DecisionPolicy::default(), now());
    cases.into_iter().for_each(|case| pass.add_case(&case));
    let (report, chain) = (pass.into_report(0.05), ChainVerification::default());
    let headline = write_headline(&report, &chain, &lowered);
    TrustReportDocument { told_at: now(), headline, chain, report, settings: None, lowered }
}

/// The page from its title to the settings, without markup that says nothing.
fn head(document: &TrustReportDocument) -> String {
    let page = render_page(document).unwrap();
    let (_, body) = page.split_once("<main>").unwrap();
    let head = body.split("<h2>What to set</h2>").next().unwrap();
    head.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_begins_with_what_to_do_and_the_advice_in_groups() {
    let all = cases("vendor-x", 428).chain(cases("slack", 60)).chain(cases("<b>ann</b>", 2));
    let expected = r#"<h1>How often the steward is right</h1>
<p class="headline"><bdi>After 18 days: let Steward change the state of tasks and matters on its own at high confidence for vendor-x (428 of 428 right). Keep confirming everything else.</bdi></p>
<p class="soft">As of 2026-11-25T08:00:00Z: 490 changes proposed from 2026-10-26T08:00:00Z to 2026-11-13T03:00:00Z, records 0 to 427.</p>
<p>Decided: 490, of which 490 agreed and 0 were wrong; precision <strong>100.0 % [99.2, 100.0]</strong>. Open: 0.</p>
<h2>What the cases support</h2>
<h3>Ready (1)</h3>
<ul><li><strong><bdi>state_change from vendor-x</bdi></strong>: 428 of 428 right, with <code>live</code> <span class="soft">(<bdi>live is supported for state_change from vendor-x: 428 of 428 agreed, precision 100.0 % [99.1, 100.0]</bdi>)</span></li>
</ul>
<h3>Nearly (1)</h3>
<ul><li><strong><bdi>state_change from slack</bdi></strong>: 60 of 60 right; 13 more right cases in a row are missing for live_high_confidence_only <span class="soft">(<bdi>60 decided cases, at least 73 are needed</bdi>)</span></li>
</ul>
<details><summary>Too early (1)</summary>
<ul><li><strong><bdi>state_change from &#60;b&#62;ann&#60;/b&#62;</bdi></strong>: 2 of 2 right; 71 more right cases in a row are missing for live_high_confidence_only <span class="soft">(<bdi>2 decided cases, at least 73 are needed</bdi>)</span></li>
</ul>
</details>"#;
    assert_eq!(head(&document(all, Vec::new())), expected);
}

#[test]
fn a_page_without_cases_says_that_nothing_may_change() {
    let head = head(&document([], Vec::new()));
    assert!(
        head.contains("<bdi>Let Steward change nothing on its own: no change has been proposed yet.</bdi>"),
        "{head}"
    );
    assert!(!head.contains("Ready"), "{head}");
}

#[test]
fn a_demotion_of_what_is_ready_is_said_at_once_with_the_command_that_ends_it() {
    let demotion = |subject: TrustSubject| TrustReportDemotion {
        command: format!("steward trust raise {subject}"),
        subject,
        name: None,
        mode: Mode::Shadow,
        since: now(),
        action: None,
        record: None,
    };
    let held = " A demotion holds that back: `steward trust raise vendor-x` ends it.";
    for (subject, is_held) in [("vendor-x", true), ("slack", false)] {
        let demotion = demotion(TrustSubject::Source(subject.to_owned()));
        let document = document(cases("vendor-x", 100), vec![demotion]);
        assert_eq!(document.headline.ends_with(held), is_held, "{}", document.headline);
    }
}
