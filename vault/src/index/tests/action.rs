use super::*;

async fn three_actions() -> (Bench, Vec<ActionId>) {
    let bench = Bench::scanned().await;
    let ids = vec![
        bench.action("one", |d| d.timestamp = noon("07:00:00")),
        bench.action("two", |d| {
            (d.timestamp, d.target) = (noon("08:00:00"), path("task/u.md"));
            (d.disposition, d.pending_confirmation) = (Disposition::Pending, true);
        }),
        bench.action("three", |d| {
            (d.timestamp, d.disposition, d.pending_confirmation) = (noon("09:00:00"), Disposition::Pending, true);
        }),
    ];
    bench.sync("10:00:00").await;
    (bench, ids)
}

#[tokio::test]
async fn an_action_is_found_by_the_beginning_of_its_id() {
    let (bench, ids) = three_actions().await;
    for (id, slug) in ids.iter().zip(["one", "two", "three"]) {
        let file = path(&format!("event/steward-action-{slug}.md"));
        for text in [id.as_str().to_owned(), id.as_str()[..6].to_ascii_uppercase(), format!(" {} ", &id.as_str()[..4])]
        {
            assert_eq!(
                bench.index.actions().find_action(&text).await.unwrap(),
                ActionLookup::One(file.clone()),
                "{text}"
            );
        }
    }
    assert_eq!(bench.index.actions().find_action("ffff0000ffff0000").await.unwrap(), ActionLookup::None);
    for bad in ["", "abc", "0123456789abcdef0", "%%%%", "zzzz"] {
        let message = bench.index.actions().find_action(bad).await.unwrap_err().to_string();
        assert!(message.contains("steward audit list"), "{message}");
    }
}

#[tokio::test]
async fn a_beginning_that_two_ids_share_names_both() {
    let (bench, _) = three_actions().await;
    for (slug, id) in [("four", "abcd000000000001"), ("five", "abcd000000000002")] {
        bench.action(slug, |d| d.id = serde_json::from_value(id.into()).unwrap());
    }
    bench.sync("10:01:00").await;
    match bench.index.actions().find_action("abcd").await.unwrap() {
        ActionLookup::Many(paths) => assert_eq!(paths.len(), 2),
        other => panic!("{other:?}"),
    }
    assert!(matches!(bench.index.actions().find_action("abcd000000000002").await.unwrap(), ActionLookup::One(_)));
}

#[tokio::test]
async fn a_record_that_was_copied_is_still_the_one_action_of_its_id() {
    let (bench, ids) = three_actions().await;
    let original = bench.root.path().join("event/steward-action-one.md");
    std::fs::copy(&original, original.with_file_name("a-copy.md")).unwrap();
    std::fs::copy(&original, original.with_file_name("steward-action-z-copy.md")).unwrap();
    bench.sync("10:01:00").await;
    let found = bench.index.actions().action_by_id(&ids[0]).await.unwrap().unwrap().path;
    for text in [ids[0].as_str(), &ids[0].as_str()[..6]] {
        assert_eq!(bench.index.actions().find_action(text).await.unwrap(), ActionLookup::One(found.clone()), "{text}");
    }
}

#[tokio::test]
async fn actions_are_listed_newest_first() {
    let (bench, ids) = three_actions().await;
    let list = async |since, target: Option<&str>, limit| {
        let target = target.map(path);
        let rows = bench.index.actions().list_actions(since, target.as_ref(), limit).await.unwrap();
        rows.into_iter().map(|r| r.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, None, 10).await, [ids[2].clone(), ids[1].clone(), ids[0].clone()]);
    assert_eq!(list(None, None, 1).await, [ids[2].clone()]);
    assert_eq!(list(Some(noon("08:00:00")), None, 10).await.len(), 2);
    assert_eq!(list(None, Some("task/u.md"), 10).await, [ids[1].clone()]);
    let row = &bench.index.actions().list_actions(None, None, 1).await.unwrap()[0];
    assert_eq!((row.at, row.target.as_str(), row.disposition), (noon("09:00:00"), "task/t.md", Disposition::Pending));
    assert_eq!(
        (row.proposed_state, row.decision, row.mode),
        (Some(RecordState::Done), Judgement::LikelyDone, Mode::Live)
    );
    assert_eq!(bench.index.actions().find_action_target(&row.path).await.unwrap(), Some(path("task/t.md")));
    assert_eq!(bench.index.actions().find_action_target(&path("event/steward-action-none.md")).await.unwrap(), None);
}

#[tokio::test]
async fn an_answered_action_waits_no_longer() {
    let (bench, ids) = three_actions().await;
    assert_eq!(bench.index.actions().pending_actions_page(None, 9, tonight()).await.unwrap().rows.len(), 2);
    bench.action("dismissed-three", |d| {
        answer(d, ActionKind::Dismissed, &ids[2]);
        (d.timestamp, d.disposition) = (noon("10:00:00"), Disposition::Recorded);
    });
    bench.sync("10:01:00").await;
    let pending = bench.index.actions().pending_actions_page(None, 9, tonight()).await.unwrap().rows;
    assert_eq!(pending.iter().map(|a| &a.id).collect::<Vec<_>>(), [&ids[1]]);
    let rows = bench.index.actions().list_actions(None, None, 10).await.unwrap();
    assert_eq!(rows[0].resolves.as_ref(), Some(&ids[2]));
    assert_eq!((rows[1].resolution, rows[2].resolution), (Some(ActionKind::Dismissed), None));
    let counts = bench.index.read().count_records(tonight()).await.unwrap();
    assert_eq!((counts.actions, counts.pending), (4, 1));
}

#[tokio::test]
async fn the_vault_is_counted() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.put("matter/old.md", "---\ntype: matter\nstate: archived\n---\n");
    bench.task("t", "m", "");
    bench.task("d", "m", "state: done\n");
    bench.task("lost", "nowhere", "");
    for (slug, target) in [("a", "task/t.md"), ("b", "task/t.md"), ("c", "task/d.md")] {
        bench.signal(slug, target, "");
    }
    bench.action("claims", |d| cite(d, "signal/b.md"));
    bench.sync("10:00:00").await;
    let counts = bench.index.read().count_records(tonight()).await.unwrap();
    assert_eq!(counts.matters, StateCounts { open: 1, done: 0, archived: 1 });
    assert_eq!(counts.tasks, StateCounts { open: 2, done: 1, archived: 0 });
    assert_eq!((counts.signals, counts.fresh_signals, counts.problems), (3, 1, 1));
    assert_eq!(counts.last_sync_at, Some(noon("10:00:00")));
}
