//! Policies in the tables: which records they apply to, quiet hours, and the changes of a day.

use super::*;
use steward_domain::action::audit::MutationProposal;
use steward_domain::action::mutation::Mutation;
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::steward::tick::TaskSkipReason;

fn matter(bench: &Bench, slug: &str, more: &str) {
    bench.put(&format!("matter/{slug}.md"), format!("---\ntype: matter\nname: M\nstate: open\n{more}---\n"));
}

/// A matter with a policy and a task with a signal, scanned at 01:00.
async fn noted(more: &str) -> Bench {
    let bench = Bench::scanned().await;
    matter(&bench, "m", more);
    bench.task("t", "m", "");
    bench.signal("s", "task/t.md", "");
    bench.sync("01:00:00").await;
    bench
}

async fn look(bench: &Bench, mode: Mode, look_id: &str, clock: &str) -> MatterObservation {
    let policy = DecisionPolicy { mode, ..DecisionPolicy::default() };
    bench
        .index
        .cursors()
        .observe_due_tasks(&ObservationQuery { policy, ..ask("matter/m.md", look_id, clock) })
        .await
        .unwrap()
}

async fn notes(bench: &Bench, target: &str, new_parent: Option<&str>) -> Vec<(String, MatterPolicy)> {
    let new_parent = new_parent.map(path);
    let found = bench.index.gates().list_matter_policies(&path(target), new_parent.as_ref()).await.unwrap();
    found.into_iter().map(|(matter, policy)| (matter.slug().to_owned(), policy)).collect()
}

#[tokio::test]
async fn a_note_travels_with_what_was_seen_and_its_ceiling_is_the_lower_one() {
    let bench = noted("steward_ceiling: confirm\nsteward:\n  ceiling: ask\n  daily_budget: 3\n").await;
    let seen = look(&bench, Mode::Live, "l1", "02:00:00").await;
    let note = MatterPolicy { ceiling: Some(Ceiling::Ask), daily_budget: Some(3), ..MatterPolicy::default() };
    assert_eq!((seen.matter_policy.as_ref(), seen.task_checks[0].matter_ceiling), (Some(&note), Ceiling::Ask));
    assert_eq!((seen.problems.len(), notes(&bench, "task/t.md", None).await), (0, vec![("m".into(), note)]));
    let again: MatterObservation = serde_json::from_str(&serde_json::to_string(&seen).unwrap()).unwrap();
    assert_eq!(again, seen);
    matter(&bench, "m", "steward_ceiling: confirm\nsteward:\n  ceiling: act\n");
    bench.sync("02:01:00").await;
    let ceiling =
        bench.index.signals().lowest_configured_ceiling(&path("task/t.md"), None, &[], Ceiling::Act).await.unwrap();
    assert_eq!(ceiling, Ceiling::Confirm, "a block raises nothing");
    matter(&bench, "m", "");
    bench.sync("02:02:00").await;
    assert!(notes(&bench, "task/t.md", None).await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_understood_is_a_problem_with_its_line_and_the_task_is_looked_at_all_the_same() {
    let bench = noted("steward:\n  celing: ask\n  daily_budget: x\n").await;
    let seen = look(&bench, Mode::Live, "l1", "02:00:00").await;
    assert_eq!((seen.task_checks.len(), seen.task_checks[0].matter_ceiling), (1, Ceiling::Ask));
    assert!(seen.problems[0].starts_with("matter/m.md: line 6: `steward.celing` is unknown"), "{:?}", seen.problems);
    assert!(seen.problems[1].starts_with("matter/m.md: line 7: `steward.daily_budget` is `x`"), "{:?}", seen.problems);
    let problems = bench.index.read().list_problems().await.unwrap();
    assert_eq!(problems.len(), 2);
    assert!(problems[0].path == "matter/m.md" && problems[0].message.starts_with("line 6: "), "{problems:?}");
    assert_eq!(bench.index.gates().list_matters_with_policy().await.unwrap(), [path("matter/m.md")]);
}

#[tokio::test]
async fn a_matter_that_cannot_be_read_allows_the_strictest() {
    let bench = noted("steward:\n  ceiling: confirm\n").await;
    bench.put("matter/m.md", "---\ntype: matter\nsteward: [\n---\n");
    bench.sync("02:00:00").await;
    assert_eq!(notes(&bench, "task/t.md", None).await, [("m".into(), MatterPolicy::ask_only())]);
    assert_eq!(bench.index.gates().list_matters_with_policy().await.unwrap(), [path("matter/m.md")]);
}

#[tokio::test]
async fn quiet_hours_leave_due_what_needs_a_clerk_and_the_matter_awake() {
    for hours in ["22:00-07:00", "07:00-16:00 Asia/Tokyo"] {
        let bench = noted(&format!("steward:\n  quiet_hours: \"{hours}\"\n")).await;
        let quiet = look(&bench, Mode::Live, "l1", "02:00:00").await;
        assert_eq!((quiet.task_checks.len(), quiet.signals, quiet.streak), (0, 1, 0), "{hours}");
        assert_eq!(quiet.skipped, BTreeMap::from([(TaskSkipReason::QuietHours, 1)]));
        assert_eq!(look(&bench, Mode::Live, "l2", "06:59:59").await.task_checks.len(), 0);
        assert_eq!(look(&bench, Mode::Live, "l3", "07:00:00").await.task_checks.len(), 1, "it was due all the time");
    }
    let said = noted("steward:\n  quiet_hours: \"22:00-07:00\"\n").await;
    assert_eq!(
        look(&said, Mode::Shadow, "l1", "02:00:00").await.task_checks.len(),
        1,
        "a change in shadow disturbs nobody"
    );
}

#[tokio::test]
async fn a_days_changes_are_those_of_the_matter_of_its_tasks_and_of_what_was_moved_away() {
    let bench = noted("steward:\n  daily_budget: 3\n").await;
    matter(&bench, "other", "");
    bench.task("moved", "other", "");
    bench.task("foreign", "other", "");
    let spent =
        async || bench.index.gates().count_changes_under(&path("matter/m.md"), None, noon("12:00:00")).await.unwrap();
    let live = |slug: &str, target: &str, at: &str| {
        bench.action(slug, |draft| {
            (draft.disposition, draft.target, draft.timestamp) = (Disposition::Live, path(target), super::at(at));
            draft.class = Some(MutationClass::StateChange);
        })
    };
    let first = live("a", "task/t.md", "2026-11-21T10:00:00Z");
    live("b", "matter/m.md", "2026-11-20T12:00:01Z");
    live("old", "task/t.md", "2026-11-20T12:00:00Z");
    live("foreign", "task/foreign.md", "2026-11-21T10:00:00Z");
    bench.action("c", |draft| {
        (draft.disposition, draft.target, draft.timestamp) =
            (Disposition::Live, path("task/moved.md"), noon("11:00:00"));
        draft.class = Some(MutationClass::ParentMatter);
        let mutation = Mutation::ParentMatter { to: path("matter/other.md") };
        draft.proposal =
            Some(MutationProposal { mutation, replaces: Some("[[M]]".into()), moved_from: Some(path("matter/m.md")) });
    });
    bench.action("pending", |draft| {
        (draft.disposition, draft.target, draft.timestamp) =
            (Disposition::Pending, path("task/t.md"), noon("10:00:00"));
    });
    bench.action("by-hand", |draft| {
        (draft.disposition, draft.kind, draft.timestamp) = (Disposition::Live, ActionKind::Confirmed, noon("10:00:00"));
        draft.target = path("task/t.md");
        draft.resolution = Some(AuditResolution {
            action_id: first.clone(),
            decided_at: noon("09:00:00"),
            by: "ann".into(),
            reason: None,
            edited: false,
            batch_id: None,
            done: false,
            reopened: None,
            resolved_by: Default::default(),
        });
    });
    bench.sync("12:00:00").await;
    assert_eq!(spent().await, 3);
    let but =
        bench.index.gates().count_changes_under(&path("matter/m.md"), Some(&first), noon("12:00:00")).await.unwrap();
    assert_eq!(but, 2, "the change that lands is not counted against itself");
    bench.index.rebuild(&bench.root, noon("12:00:01")).await.unwrap();
    assert_eq!(spent().await, 3);
}

#[tokio::test]
async fn a_task_that_moves_meets_the_notes_of_both_matters() {
    let bench = noted("steward:\n  daily_budget: 3\n").await;
    matter(&bench, "other", "steward:\n  classes: [related]\n");
    bench.sync("02:00:00").await;
    let names = notes(&bench, "task/t.md", Some("matter/other.md")).await.into_iter().map(|(name, _)| name);
    assert_eq!(names.collect::<Vec<_>>(), ["m", "other"]);
    let (signal, target, to) = (path("signal/s.md"), path("task/t.md"), path("matter/other.md"));
    let asked = RouteFactsQuery {
        signal: &signal,
        source: "gmail",
        target: &target,
        new_parent: Some(&to),
        acts: true,
        default_ceiling: Ceiling::Act,
    };
    let facts = bench.index.signals().read_route_facts(&asked).await.unwrap().unwrap();
    assert_eq!(facts.policies.len(), 2);
    assert_eq!(notes(&bench, "matter/m.md", None).await.len(), 1);
}

#[tokio::test]
async fn a_task_whose_matter_is_missing_or_unreadable_is_under_a_note_that_says_ask() {
    type Spoil = fn(&Bench);
    let renamed: Spoil = |bench| {
        bench.remove("matter/m.md");
        matter(bench, "n", "");
    };
    let spoils: [Spoil; 3] = [
        |bench| bench.remove("matter/m.md"),
        renamed,
        |bench| bench.put("matter/m.md", "---\ntype: matter\nstate: [\n---\n"),
    ];
    for spoil in spoils {
        let bench = noted("").await;
        let (signal, target) = (path("signal/s.md"), path("task/t.md"));
        let asked = RouteFactsQuery {
            signal: &signal,
            source: "mail",
            target: &target,
            new_parent: None,
            acts: true,
            default_ceiling: Ceiling::Act,
        };
        let ceilings = async || {
            let facts = bench.index.signals().read_route_facts(&asked).await.unwrap().unwrap();
            (
                facts.ceiling,
                bench.index.signals().lowest_configured_ceiling(&target, None, &[], Ceiling::Act).await.unwrap(),
            )
        };
        assert_eq!((ceilings().await, notes(&bench, "task/t.md", None).await), ((Ceiling::Act, Ceiling::Act), vec![]));
        spoil(&bench);
        let stale = bench.index.gates().list_stale_matters(&bench.root, &target, None).await.unwrap();
        assert_eq!(stale, [path("matter/m.md")], "the tables do not know it yet");
        bench.sync("02:00:00").await;
        assert_eq!(ceilings().await, (Ceiling::Ask, Ceiling::Ask));
        assert_eq!(notes(&bench, "task/t.md", None).await, [("m".to_owned(), MatterPolicy::ask_only())]);
        assert!(bench.index.gates().list_matters_with_policy().await.unwrap().contains(&path("matter/m.md")));
        assert!(bench.index.gates().list_stale_matters(&bench.root, &target, None).await.unwrap().is_empty());
        matter(&bench, "m", "");
        bench.sync("02:01:00").await;
        assert_eq!((ceilings().await, notes(&bench, "task/t.md", None).await), ((Ceiling::Act, Ceiling::Act), vec![]));
    }
}

#[tokio::test]
async fn a_task_that_the_tables_do_not_know_is_under_a_note_that_says_ask() {
    let bench = noted("").await;
    assert_eq!(notes(&bench, "task/new.md", None).await[0].1, MatterPolicy::ask_only());
    let ceiling =
        bench.index.signals().lowest_configured_ceiling(&path("task/new.md"), None, &[], Ceiling::Act).await.unwrap();
    assert_eq!(ceiling, Ceiling::Ask);
}
