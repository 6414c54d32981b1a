//! What still asks something of a human, and what ends that.

use super::*;

fn asks(slug: &str, clock: &'static str) -> impl FnOnce(&mut AuditDraft) {
    let target = path(&format!("task/{slug}.md"));
    move |draft| {
        (draft.decision, draft.landing, draft.proposed_state) = (Judgement::NeedsInput, Landing::Recorded, None);
        (draft.target, draft.timestamp) = (target, noon(clock));
    }
}

async fn asking(bench: &Bench, clock: &str) -> Vec<String> {
    bench.sync(clock).await;
    let rows = bench.index.asking(noon("08:00:00"), 100).await.unwrap();
    rows.iter().map(|row| row.target.slug().to_owned()).collect()
}

#[tokio::test]
async fn what_asks_is_told_until_it_is_answered_decided_anew_or_closed() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    for task in ["old", "kept", "again", "answered", "closed"] {
        bench.task(task, "m", "");
    }
    bench.action("old", asks("old", "07:59:59"));
    bench.action("kept", asks("kept", "09:01:00"));
    bench.action("again-1", asks("again", "09:02:00"));
    let asked = bench.action("answered", asks("answered", "09:03:00"));
    bench.action("closed", asks("closed", "09:04:00"));
    bench.action("calm", |draft| {
        (draft.decision, draft.landing, draft.target) =
            (Judgement::StillActive, Landing::Recorded, path("task/kept.md"));
        draft.timestamp = noon("09:00:30");
    });
    bench.action("of-a-matter", |draft| {
        asks("x", "09:05:00")(draft);
        draft.target = path("matter/m.md");
    });
    assert_eq!(asking(&bench, "10:00:00").await, ["m", "closed", "answered", "again", "kept"], "newest first");
    assert_eq!(bench.index.asking(noon("08:00:00"), 2).await.unwrap().len(), 2);

    bench.put("event/steward-action-dismissed-x.md", {
        let mut said = draft("said");
        answer(&mut said, ActionKind::Dismissed, &asked);
        let link = Link { seq: 90, prev: ContentHash::genesis() };
        AuditRecord::close(said, Vec::new(), link).render().unwrap()
    });
    bench.task("closed", "m", "state: done\n");
    bench.action("again-2", |draft| {
        (draft.decision, draft.landing, draft.target) =
            (Judgement::LikelyDone, Landing::Pending, path("task/again.md"));
        draft.timestamp = noon("09:30:00");
    });
    assert_eq!(asking(&bench, "11:00:00").await, ["m", "kept"]);
    bench.action("noted", |draft| {
        (draft.decision, draft.landing, draft.target) = (Judgement::StillActive, Landing::Live, path("task/kept.md"));
        (draft.class, draft.timestamp) = (Some(MutationClass::ContextEdit), noon("09:35:00"));
    });
    assert_eq!(asking(&bench, "11:30:00").await, ["m", "kept"], "a note beside it answers nothing");
    bench.action("kept-2", asks("kept", "09:40:00"));
    assert_eq!(asking(&bench, "12:00:00").await, ["kept", "m"], "asked twice is one question, the newer");
}
