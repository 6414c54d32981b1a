//! Charts agree with the audit records and with the trust report.

use super::*;
use chrono::{NaiveDate, TimeDelta};
use steward_domain::trust::report::TrustReportPass;

fn propose(bench: &Bench, slug: &str, day: i64, confidence: f64, disposition: Disposition) -> ActionId {
    bench.action(slug, |d| {
        (d.timestamp, d.confidence, d.disposition) = (noon("09:00:00") + TimeDelta::days(day), confidence, disposition);
        d.target = path(&format!("task/{slug}.md"));
        d.class = Some(MutationClass::StateChange);
    })
}

fn resolve(bench: &Bench, slug: &str, day: i64, kind: ActionKind, action: &ActionId) {
    bench.action(slug, |d| {
        answer(d, kind, action);
        d.timestamp = noon("10:00:00") + TimeDelta::days(day);
    });
}

async fn three_days() -> Bench {
    let bench = Bench::scanned().await;
    let a = propose(&bench, "a", 0, 0.95, Disposition::Live);
    propose(&bench, "b", 0, 0.95, Disposition::Live);
    let c = propose(&bench, "c", 1, 0.72, Disposition::Pending);
    propose(&bench, "d", 1, 1.0, Disposition::Shadow);
    let e = propose(&bench, "e", 2, 0.31, Disposition::Pending);
    resolve(&bench, "undone-a", 1, ActionKind::Reversed, &a);
    resolve(&bench, "confirmed-c", 2, ActionKind::Confirmed, &c);
    resolve(&bench, "dismissed-e", 2, ActionKind::Dismissed, &e);
    bench.sync("23:00:00").await;
    bench
}

#[tokio::test]
async fn each_day_counts_its_landings_and_answers() {
    let bench = three_days().await;
    let list_days = async |since| {
        let days = bench.index.actions().actions_per_day(since).await.unwrap();
        days.into_iter().map(|d| (d.day.to_string(), d.what, d.count)).collect::<Vec<_>>()
    };
    let wanted = [
        ("2026-11-21", "live", 2),
        ("2026-11-22", "pending", 1),
        ("2026-11-22", "reversed", 1),
        ("2026-11-22", "shadow", 1),
        ("2026-11-23", "confirmed", 1),
        ("2026-11-23", "dismissed", 1),
        ("2026-11-23", "pending", 1),
    ]
    .map(|(day, what, count)| (day.to_owned(), what, count));
    assert_eq!(list_days(noon("00:00:00")).await, wanted);
    assert_eq!(list_days(noon("09:30:00") + TimeDelta::days(1)).await[0], ("2026-11-22".into(), "reversed", 1));
    assert_eq!(NaiveDate::default(), "1970-01-01".parse().unwrap(), "days are counted from there");
}

#[tokio::test]
async fn confidence_is_held_against_what_became_of_it_as_in_the_report() {
    let bench = three_days().await;
    let now = noon("12:00:00") + TimeDelta::days(7);
    let bins = bench.index.actions().confidence_vs_outcome(noon("00:00:00"), now).await.unwrap();
    let counts: Vec<_> = bins.iter().map(|b| (b.right, b.wrong, b.open)).collect();
    assert_eq!(counts[9], (1, 1, 1), "survived, undone, and not known yet");
    assert_eq!((counts[7], counts[3]), ((1, 0, 0), (0, 1, 0)));
    assert_eq!(counts.iter().map(|(r, w, o)| r + w + o).sum::<u64>(), 5);
    assert_eq!((bins[7].from, bins[7].to), (0.7, 0.8));
    let mut report = TrustReportPass::new(&DecisionPolicy::default(), now);
    bench.index.trust().for_each_case(now, |case| report.add_case(case)).await.unwrap();
    let report = report.into_report(0.05);
    for (bin, theirs) in bins.iter().zip(&report.reliability.bins) {
        assert_eq!((bin.right, bin.right + bin.wrong), (theirs.right.count, theirs.right.of));
    }
    let later = bench.index.actions().confidence_vs_outcome(noon("00:00:00") + TimeDelta::days(2), now).await.unwrap();
    assert_eq!(later.iter().map(|b| b.right + b.wrong + b.open).sum::<u64>(), 1);
}
