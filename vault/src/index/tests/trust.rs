//! Trust follows from the records, in whatever order and however often they are read.

use super::*;
use chrono::TimeDelta;
use steward_domain::trust::confidence::Standing;

/// A decision in that hour of the day to which these sources contributed.
fn judged(bench: &Bench, slug: &str, (hour, landing): (u32, Landing), sources: &[(&str, f64)]) -> ActionId {
    bench.action(slug, |draft| {
        draft.timestamp = noon(&format!("{hour:02}:00:00"));
        draft.landing = landing;
        draft.class = Some(MutationClass::StateChange);
        draft.source_contributions = sources.iter().map(|(name, part)| ((*name).to_owned(), *part)).collect();
    })
}

fn answered(bench: &Bench, slug: &str, kind: ActionKind, of: &ActionId) -> ActionId {
    bench.action(slug, |draft| {
        answer(draft, kind, of);
        draft.timestamp = noon("12:00:00");
        draft.class = Some(MutationClass::StateChange);
        draft.source_contributions =
            BTreeMap::from([("mail:Ann@b.example".to_owned(), 0.9), ("aside".to_owned(), 0.0)]);
    })
}

#[tokio::test]
async fn confidence_moves_with_judgements_and_undos_and_is_the_same_after_a_rebuild() {
    let bench = Bench::scanned().await;
    let one = judged(&bench, "one", (1, Landing::Live), &[("mail:ann@b.example", 1.0), ("aside", 0.0)]);
    judged(&bench, "two", (2, Landing::Shadow), &[("mail:Ann@b.example", 0.5)]);
    answered(&bench, "undo", ActionKind::Reversed, &one);
    bench.sync("13:00:00").await;
    let trust = bench.index.trust(noon("13:00:00")).await.unwrap();
    let key = steward_domain::signal::source_key("mail:ann@b.example");
    let ann = &trust[&key];
    assert!((ann.confidence.value - (0.9 * 0.55 + 0.1 * 0.5 - 0.1)).abs() < 1e-9, "{ann:?}");
    assert_eq!((ann.confidence.judged, ann.confidence.undone, ann.name.as_str()), (2, 1, "mail:Ann@b.example"));
    let aside = &trust["aside"];
    assert!(
        (aside.confidence.value - 0.45).abs() < 1e-9 && aside.confidence.undone == 0,
        "it contributed nothing: {aside:?}"
    );

    bench.index.rebuild(&bench.root, noon("13:01:00")).await.unwrap();
    assert_eq!(bench.index.trust(noon("13:00:00")).await.unwrap(), trust);
    let again = Index::open(&bench.dir.path().join("anew")).await.unwrap();
    again.sync_all(&bench.root, noon("14:00:00")).await.unwrap();
    assert_eq!(again.trust(noon("13:00:00")).await.unwrap(), trust, "the records alone say so");
}

#[tokio::test]
async fn a_source_that_never_gives_anything_is_pruned_and_that_has_its_cause() {
    let bench = Bench::scanned().await;
    for n in 0..3 {
        judged(&bench, &format!("d{n}"), (n + 1, Landing::Recorded), &[("noise", 0.0), ("bank", 0.8)]);
    }
    bench.sync("13:00:00").await;
    let trust = bench.index.trust(noon("13:00:00")).await.unwrap();
    let moves: Vec<_> = trust["noise"].moves.iter().map(|m| (m.to, m.cause.as_str(), m.at)).collect();
    assert_eq!(moves, [(Standing::Pruned, ActionId::derive(&["d2"]).as_str(), noon("03:00:00"))]);
    assert_eq!(trust["bank"].confidence.standing, Standing::Live);
}

#[tokio::test]
async fn only_lessons_that_agree_are_observations() {
    let bench = Bench::scanned().await;
    let ann = [("mail:ann@b.example", 0.9)];
    let key = steward_domain::signal::source_key("mail:ann@b.example");
    judged(&bench, "left", (1, Landing::Live), &ann);
    let waits = judged(&bench, "waits", (2, Landing::Pending), &ann);
    let undone = judged(&bench, "undone", (3, Landing::Live), &ann);
    judged(&bench, "shadow", (4, Landing::Shadow), &ann);
    bench.sync("13:00:00").await;
    let seen = async |now| bench.index.trust(now).await.unwrap()[&key].observations;
    let week = noon("13:00:00") + TimeDelta::days(7);
    assert_eq!(seen(noon("13:00:00")).await, 0, "nothing is known yet");
    assert_eq!(seen(week).await, 2, "two were left alone for a week");
    answered(&bench, "no", ActionKind::Reversed, &undone);
    let confirmed = answered(&bench, "yes", ActionKind::Confirmed, &waits);
    bench.sync("14:00:00").await;
    assert_eq!((seen(noon("14:00:00")).await, seen(week).await), (1, 2), "one confirmed, one left alone, one undone");
    answered(&bench, "no-after-all", ActionKind::Reversed, &confirmed);
    bench.sync("15:00:00").await;
    assert_eq!(seen(week).await, 1);
}
