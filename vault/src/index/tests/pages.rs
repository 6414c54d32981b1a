//! Filtered pages lose no row and repeat none.

use super::*;
use chrono::TimeDelta;
use steward_domain::signals::signal::SignalStatus;

/// Two matters and 24 actions with three sources, two classes and four dispositions in turn. Two actions share each
/// moment.
async fn month() -> (Bench, Vec<ActionId>) {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.matter("other");
    bench.task("t", "m", "");
    bench.task("u", "other", "");
    let dispositions = [Disposition::Recorded, Disposition::Shadow, Disposition::Pending, Disposition::Live];
    let ids = (0..24)
        .map(|n: usize| {
            bench.action(&format!("a{n:02}"), |d| {
                d.timestamp = noon("00:00:00") + TimeDelta::hours(n as i64 / 2);
                d.target = path(["task/t.md", "task/u.md", "matter/m.md"][n % 3]);
                d.disposition = dispositions[n % 4];
                d.pending_confirmation = d.disposition == Disposition::Pending;
                d.class = Some([MutationClass::StateChange, MutationClass::Related][n % 2]);
                no_other_is_equal(d, n);
                cite(d, &format!("signal/s{n}.md"));
                d.evidence[0].source = ["bank", "gmail", "chat"][n % 3].into();
                d.source_contributions.insert(d.evidence[0].source.clone(), 0.9);
            })
        })
        .collect();
    bench.sync("20:00:00").await;
    (bench, ids)
}

/// The rows of all pages with this limit.
async fn pages(index: &Index, filter: &ActionFilter, limit: u32) -> Vec<ActionRow> {
    let (mut all, mut before): (Vec<ActionRow>, Option<PageCursor>) = (Vec::new(), None);
    loop {
        let page = index.actions().actions_page(filter, before.as_ref(), limit).await.unwrap();
        assert!(page.rows.len() <= limit as usize && page.more == page.next.is_some());
        all.extend(page.rows);
        let Some(next) = page.next else { return all };
        before = Some(next.to_string().parse().unwrap());
    }
}

#[tokio::test]
async fn pages_of_any_size_hold_what_the_filter_asks_for_newest_first() {
    let (bench, _) = month().await;
    let all = bench.index.actions().list_actions(None, None, 100).await.unwrap();
    let none = ActionFilter::default();
    let of_m = |a: &ActionRow| a.target != path("task/u.md");
    type Holds<'a> = Box<dyn Fn(&ActionRow) -> bool + 'a>;
    let table: Vec<(ActionFilter, Holds<'_>)> = vec![
        (none.clone(), Box::new(|_| true)),
        (ActionFilter { since: Some(noon("03:00:00")), ..none.clone() }, Box::new(|a| a.at >= noon("03:00:00"))),
        (ActionFilter { until: Some(noon("03:00:00")), ..none.clone() }, Box::new(|a| a.at < noon("03:00:00"))),
        (ActionFilter { target: Some(path("task/u.md")), ..none.clone() }, Box::new(|a| a.target == path("task/u.md"))),
        (ActionFilter { matter: Some(path("matter/m.md")), ..none.clone() }, Box::new(of_m)),
        (
            ActionFilter { disposition: Some(Disposition::Live), ..none.clone() },
            Box::new(|a| a.disposition == Disposition::Live),
        ),
        (
            ActionFilter { disposition: Some(Disposition::Shadow), ..none.clone() },
            Box::new(|a| a.disposition == Disposition::Shadow),
        ),
        (
            ActionFilter { class: Some(MutationClass::Related), ..none.clone() },
            Box::new(|a| a.class == Some(MutationClass::Related)),
        ),
        (ActionFilter { source: Some("gmail".into()), ..none.clone() }, Box::new(|a| a.target == path("task/u.md"))),
        (ActionFilter { kinds: vec![ActionKind::Reversed], ..none.clone() }, Box::new(|_| false)),
        (ActionFilter { only: ActionSubset::Waiting(tonight()), ..none.clone() }, Box::new(|a| a.pending)),
        (
            ActionFilter { only: ActionSubset::Undoable, ..none.clone() },
            Box::new(|a| a.disposition == Disposition::Live),
        ),
        (
            ActionFilter {
                matter: Some(path("matter/m.md")),
                source: Some("bank".into()),
                kinds: vec![ActionKind::Action, ActionKind::Reversed],
                only: ActionSubset::Waiting(tonight()),
                since: Some(noon("01:00:00")),
                until: Some(noon("09:00:00")),
                ..none.clone()
            },
            Box::new(|a| {
                let within = a.at >= noon("01:00:00") && a.at < noon("09:00:00");
                a.pending && a.target == path("task/t.md") && within
            }),
        ),
    ];
    for (filter, holds) in table {
        let mut wanted: Vec<ActionRow> = all.iter().filter(|a| holds(a)).cloned().collect();
        wanted.sort_by(|a, b| (b.at, &b.path).cmp(&(a.at, &a.path)));
        for limit in [1, 2, 5, 500] {
            assert_eq!(pages(&bench.index, &filter, limit).await, wanted, "{filter:?} by {limit}");
        }
    }
}

#[tokio::test]
async fn what_is_filed_meanwhile_neither_repeats_nor_hides_a_row() {
    let (bench, _) = month().await;
    let first = bench.index.actions().actions_page(&ActionFilter::default(), None, 5).await.unwrap();
    bench.action("late", |d| d.timestamp = noon("19:00:00"));
    bench.sync("20:01:00").await;
    let second = bench.index.actions().actions_page(&ActionFilter::default(), first.next.as_ref(), 500).await.unwrap();
    let paths: BTreeSet<_> = first.rows.iter().chain(&second.rows).map(|a| a.path.clone()).collect();
    assert_eq!((paths.len(), first.rows.len() + second.rows.len()), (24, 24));
}

#[tokio::test]
async fn an_answer_is_found_from_its_action_and_what_was_answered_waits_no_longer() {
    let (bench, ids) = month().await;
    let undone = bench.action("undone", |d| {
        answer(d, ActionKind::Reversed, &ids[3]);
        d.timestamp = noon("13:00:00");
    });
    bench.action("dismissed", |d| {
        answer(d, ActionKind::Dismissed, &ids[2]);
        (d.timestamp, d.disposition) = (noon("14:00:00"), Disposition::Recorded);
    });
    bench.sync("20:01:00").await;
    let index = &bench.index;
    let answers = index.actions().list_resolutions(&ids[3]).await.unwrap();
    assert_eq!(answers.iter().map(|a| &a.id).collect::<Vec<_>>(), [&undone]);
    let row = index.actions().action_by_id(&ids[3]).await.unwrap().unwrap();
    assert_eq!((row.resolution, row.resolved_by.as_ref()), (Some(ActionKind::Reversed), Some(&undone)));
    assert_eq!(index.actions().action_by_path(&row.path).await.unwrap(), Some(row));
    assert_eq!(index.actions().action_by_id(&ActionId::derive(&["nobody"])).await.unwrap(), None);
    let waiting = index.actions().pending_actions_page(None, 500, tonight()).await.unwrap();
    assert!(!waiting.rows.is_empty() && waiting.rows.iter().all(|row| row.pending && row.resolution.is_none()));
    assert_eq!((waiting.rows.len(), index.actions().count_pending_actions(tonight()).await.unwrap()), (5, 5));
    let undoable = ActionFilter { only: ActionSubset::Undoable, ..ActionFilter::default() };
    let undoable = pages(index, &undoable, 500).await;
    assert!(undoable.len() == 5 && undoable.iter().all(|a| a.id != ids[3] && a.id != undone), "{undoable:?}");
}

#[tokio::test]
async fn whoever_follows_the_chain_gets_each_record_once_in_its_order() {
    let (bench, _) = month().await;
    let (mut seq, mut all) = (0, Vec::new());
    loop {
        let filed = bench.index.actions().list_actions_since(seq, 7).await.unwrap();
        assert!(filed.rows.iter().all(|a| a.seq > seq));
        (seq, all) = (filed.seq, [all, filed.rows].concat());
        if !filed.more {
            break;
        }
    }
    assert_eq!(all.len(), 24);
    assert!(all.is_sorted_by_key(|a| a.seq) && all.last().unwrap().seq == seq);
    let none = bench.index.actions().list_actions_since(seq, 7).await.unwrap();
    assert_eq!((none.seq, none.rows.len(), none.more), (seq, 0, false));
}

#[tokio::test]
async fn actions_of_one_source_and_class_are_counted_together() {
    let (bench, ids) = month().await;
    let clusters_of_at_least = async |min| {
        let clusters = bench.index.actions().list_pending_clusters(min, tonight()).await.unwrap();
        clusters.into_iter().map(|c| (c.source, c.class.unwrap(), c.count, c.ids)).collect::<Vec<_>>()
    };
    let of = |numbers: [usize; 2]| numbers.map(|n| ids[n].clone()).to_vec();
    let wanted = [
        ("bank".to_owned(), MutationClass::StateChange, 2, of([18, 6])),
        ("chat".to_owned(), MutationClass::StateChange, 2, of([14, 2])),
        ("gmail".to_owned(), MutationClass::StateChange, 2, of([22, 10])),
    ];
    assert_eq!(clusters_of_at_least(2).await, wanted);
    assert_eq!(clusters_of_at_least(3).await, []);
    bench.action("more", |d| {
        cite(d, "signal/x.md");
        cite(d, "signal/y.md");
        (d.evidence[0].source, d.evidence[1].source) = ("bank".into(), "chat".into());
        d.source_contributions.extend([("bank".into(), 0.4), ("chat".into(), 0.8)]);
        (d.disposition, d.pending_confirmation) = (Disposition::Pending, true);
        (d.class, d.timestamp) = (Some(MutationClass::StateChange), noon("15:00:00"));
    });
    bench.sync("20:01:00").await;
    let chat = &clusters_of_at_least(2).await[0];
    assert_eq!(
        (chat.0.as_str(), chat.2, &chat.3[0]),
        ("chat", 3, &ActionId::derive(&["more"])),
        "of the weightier one"
    );
    let live = bench.index.actions().list_undoable_clusters(noon("00:00:00"), 2).await.unwrap();
    assert_eq!(live.iter().map(|c| c.count).collect::<Vec<_>>(), [2, 2, 2]);
    assert_eq!((live[0].newest_at, live[0].oldest_at), (noon("07:00:00"), noon("01:00:00")));
    let late = bench.index.actions().list_undoable_clusters(noon("07:00:00"), 1).await.unwrap();
    assert_eq!(late.iter().map(|c| c.count).sum::<u64>(), 3);
}

#[tokio::test]
async fn a_timeline_holds_signals_and_actions_of_a_matter_and_its_tasks_alone() {
    let (bench, _) = month().await;
    for (slug, target, created) in [
        ("one", "task/t.md", "2026-11-21T05:30:00Z"),
        ("two", "matter/m.md", "2026-11-21"),
        ("three", "matter/m.md", "2026-11-21"),
        ("else", "task/u.md", "2026-11-21T05:30:00Z"),
    ] {
        bench.put(&format!("signal/{slug}.md"), signal_text(target, created, ""));
    }
    bench.sync("20:01:00").await;
    let all = bench.index.read().timeline_page(&path("matter/m.md"), None, 500).await.unwrap();
    assert!(!all.more && all.next.is_none());
    let places: Vec<PageCursor> = all.rows.iter().map(TimelineRow::page_cursor).collect();
    assert!(places.is_sorted_by(|a, b| (a.at, &a.path) > (b.at, &b.path)), "{places:?}");
    let count = all.rows.iter().filter(|row| matches!(row, TimelineRow::Signal(_))).count();
    assert_eq!((count, all.rows.len()), (3, 3 + 16));
    for limit in [1, 2, 3, 10, 19] {
        let (mut rows, mut before) = (Vec::new(), None);
        loop {
            let page = bench.index.read().timeline_page(&path("matter/m.md"), before.as_ref(), limit).await.unwrap();
            assert!(page.rows.len() <= limit as usize);
            rows.extend(page.rows);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(rows, all.rows, "by {limit}");
    }
}

#[tokio::test]
async fn signals_are_chosen_by_standing_target_and_source() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    for n in 0..9 {
        let status = ["unrouted", "applied", "skipped"][n % 3];
        let target = ["task/t.md", "matter/m.md", "task/x.md"][n / 3];
        let created = format!("2026-11-{:02}", 10 + n / 2);
        bench.put(&format!("signal/s{n}.md"), signal_text(target, &created, &format!("status: {status}\n")));
    }
    bench.sync("01:00:00").await;
    let none = SignalFilter::default();
    let m = Some(path("matter/m.md"));
    let table: [(SignalFilter, Vec<usize>); 6] = [
        (none.clone(), (0..9).rev().collect()),
        (SignalFilter { status: Some(SignalStatus::Applied), ..none.clone() }, vec![7, 4, 1]),
        (SignalFilter { target: m.clone(), ..none.clone() }, vec![5, 4, 3]),
        (SignalFilter { matter: m.clone(), ..none.clone() }, vec![5, 4, 3, 2, 1, 0]),
        (
            SignalFilter {
                matter: m,
                status: Some(SignalStatus::Skipped),
                source: Some("gmail".into()),
                ..none.clone()
            },
            vec![5, 2],
        ),
        (SignalFilter { source: Some("nobody".into()), ..none }, vec![]),
    ];
    for (filter, wanted) in table {
        let wanted: Vec<String> = wanted.into_iter().map(|n| format!("s{n}")).collect();
        for limit in [1, 2, 500] {
            let (mut slugs, mut before) = (Vec::new(), None);
            loop {
                let page = bench.index.read().signals_page(&filter, before.as_ref(), limit).await.unwrap();
                slugs.extend(page.rows.iter().map(|row| row.signal.path.slug().to_owned()));
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
            assert_eq!(slugs, wanted, "{filter:?} by {limit}");
        }
    }
}

#[tokio::test]
async fn matters_are_listed_with_what_they_hold_also_those_that_cannot_be_read() {
    let (bench, _) = month().await;
    bench.task("closed", "m", "state: done\n");
    bench.put("matter/broken.md", "---\nbroken: [\n---\n");
    bench.put("matter/odd name .md", "---\ntype: matter\n---\n");
    bench.put("matter/past.md", "---\ntype: matter\nname: Long past\nstate: archived\n---\n");
    bench.sync("20:01:00").await;
    bench.look("matter/m.md", "l", "20:02:00").await;
    let index = &bench.index;
    let all = index.read().matters_page(&MatterFilter::default(), None, 500, tonight()).await.unwrap().rows;
    assert_eq!(all.iter().map(|m| m.path.slug()).collect::<Vec<_>>(), ["broken", "m", "other", "past"]);
    assert!(all[0].state.is_none() && all[0].problem.as_ref().unwrap().contains("failed to read"));
    let m = &all[1];
    assert_eq!((m.open_tasks, m.pending, m.streak, m.last_tick_at), (1, 4, 1, Some(noon("20:02:00"))));
    assert_eq!((all[2].pending, all[2].last_tick_at), (2, None));
    let (mut slugs, mut after) = (Vec::new(), None);
    loop {
        let page = index.read().matters_page(&MatterFilter::default(), after.as_deref(), 1, tonight()).await.unwrap();
        slugs.extend(page.rows.iter().map(|m| m.path.slug().to_owned()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(slugs, ["broken", "m", "other", "past"]);
    let by = async |text: Option<&str>, state| {
        let filter = MatterFilter { text: text.map(str::to_owned), state };
        let rows = index.read().matters_page(&filter, None, 9, tonight()).await.unwrap().rows;
        rows.into_iter().map(|m| m.path.slug().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(by(None, Some(RecordState::Archived)).await, ["past"]);
    assert_eq!(by(Some("the oth"), None).await, ["other"]);
    assert_eq!(by(Some("\" long"), Some(RecordState::Archived)).await, ["past"]);
    assert_eq!(by(Some("long"), Some(RecordState::Open)).await, [""; 0]);
    assert_eq!(by(Some(" "), Some(RecordState::Open)).await, ["m", "other"], "no word asks for nothing");
}

#[tokio::test]
async fn names_are_told_of_what_is_there() {
    let (bench, _) = month().await;
    let names = bench
        .index
        .read()
        .list_record_labels(&[path("task/t.md"), path("matter/m.md"), path("task/gone.md")])
        .await
        .unwrap();
    assert_eq!(names.len(), 2);
    assert_eq!(
        (names[&path("task/t.md")].name.as_str(), &names[&path("task/t.md")].matter),
        ("Do it", &Some(path("matter/m.md")))
    );
    assert_eq!((names[&path("matter/m.md")].name.as_str(), &names[&path("matter/m.md")].matter), ("The m", &None));
}

#[test]
fn a_place_in_a_list_is_read_back_and_nothing_else_is() {
    let place = PageCursor { at: noon("09:00:00"), path: path("event/steward-action-a.md") };
    assert_eq!(place.to_string().parse(), Ok(place.clone()));
    let json = serde_json::to_string(&place).unwrap();
    assert_eq!(serde_json::from_str::<PageCursor>(&json).unwrap(), place);
    for text in ["", ":", "1:", "1:../x.md", "x:task/t.md", "9223372036854775807:task/t.md", "1;task/t.md"] {
        assert_eq!(text.parse::<PageCursor>(), Err(PageCursorError), "{text}");
    }
}

#[tokio::test]
async fn tasks_come_page_by_page_chosen_and_alone() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.matter("other");
    for n in 0..5 {
        bench.task(&format!("t{n}"), ["m", "other"][n % 2], "");
    }
    bench.put("task/t5.md", "---\ntype: task\nname: T\nstate: done\nparent_matter: '[[matter/m]]'\n---\n");
    bench.sync("01:00:00").await;
    let paged = async |filter: &TaskFilter| {
        let (mut all, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
        loop {
            let page = bench.index.read().tasks_page(filter, after.as_deref(), 2).await.unwrap();
            assert!(page.rows.len() <= 2 && page.more == page.next.is_some());
            all.extend(page.rows.iter().map(|row| row.path.slug().to_owned()));
            let Some(next) = page.next else { return all };
            after = Some(next);
        }
    };
    let none = TaskFilter::default();
    assert_eq!(paged(&none).await, ["t0", "t1", "t2", "t3", "t4", "t5"]);
    assert_eq!(paged(&TaskFilter { state: Some(RecordState::Done), ..none.clone() }).await, ["t5"]);
    assert_eq!(paged(&TaskFilter { matter: Some(path("matter/other.md")), ..none.clone() }).await, ["t1", "t3"]);
    assert_eq!(paged(&TaskFilter { matter: Some(path("matter/none.md")), ..none }).await, [""; 0]);
    let one = bench.index.read().find_task(&path("task/t5.md")).await.unwrap().unwrap();
    assert_eq!((one.matter, one.state), (path("matter/m.md"), RecordState::Done));
    assert_eq!(bench.index.read().find_task(&path("task/none.md")).await.unwrap(), None);
}
