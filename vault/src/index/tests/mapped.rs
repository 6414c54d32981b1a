//! A vault with a mapping: notes anywhere, with any properties.

use super::*;
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::record::mapping::VaultMapping;
use steward_domain::record::schema::{NoteExclusion, NoteSchema};
use steward_domain::steward::tick::TaskSkipReason;

const MATTER: &str = "---\nstatus: active\n---\nThe roof leaks.\n";
const TASK: &str = "---\ntags: [task]\nstatus: todo\nproject: '[[Roof repair]]'\n---\n- call them\n";

fn schema(parent: &str) -> NoteSchema {
    let mapping: VaultMapping = serde_json::from_str(&format!(
        r#"{{"matter": {{"where": {{"folder": "Projects"}},
               "state": {{"property": "status", "open": ["active"], "done": ["done"]}}}},
             "task": {{"where": {{"tag": "task"}}, "parent": {parent},
               "state": {{"property": "status", "open": ["todo", "doing"], "done": ["✅ done"]}},
               "due": {{"property": "due"}}, "recurrence": {{"property": "repeat"}}}}}}"#
    ))
    .unwrap();
    assert_eq!(mapping.find_faults(), []);
    NoteSchema::from_mapping(mapping, |day| Some(day.succ_opt()?.and_hms_opt(0, 0, 0)?.and_utc()))
}

impl Bench {
    async fn mapped(parent: &str) -> Self {
        let bench = Self::new().await;
        let index = bench.index.clone().with_schema(schema(parent), []);
        Self { index, ..bench }
    }

    async fn by_property() -> Self {
        let bench = Self::mapped(r#"{"property": "project"}"#).await;
        bench.put("Projects/Roof repair.md", MATTER);
        bench.put("Aufgaben/Müller anrufen.md", TASK);
        bench.put("Daily/2026-11-24.md", "No frontmatter here.\n");
        bench
    }

    async fn kinds(&self) -> Vec<(String, String)> {
        let sql = "SELECT path, kind FROM files WHERE kind IN ('matter', 'task') ORDER BY path";
        sqlx::query_as(sql).fetch_all(&self.index.store.writer).await.unwrap()
    }

    async fn left_out(&self) -> Vec<(String, NoteExclusion)> {
        let notes = self.index.list_excluded_notes("", 100).await.unwrap();
        notes.into_iter().map(|note| (note.path, note.exclusion)).collect()
    }

    async fn counts_as_rebuilt_mapped(&self) {
        let others = "SELECT path, exclusion FROM other_notes ORDER BY path";
        let read = || sqlx::query_as::<_, (String, Option<String>)>(others).fetch_all(&self.index.store.writer);
        let (before, notes) = (self.dump(&self.index).await, read().await.unwrap());
        self.index.rebuild(&self.root, noon("23:00:00")).await.unwrap();
        assert_eq!((self.dump(&self.index).await, read().await.unwrap()), (before, notes));
    }
}

fn pairs(found: &[(&str, &str)]) -> Vec<(String, String)> {
    found.iter().map(|(path, kind)| ((*path).to_owned(), (*kind).to_owned())).collect()
}

const BOTH: [(&str, &str); 2] = [("Aufgaben/Müller anrufen.md", "task"), ("Projects/Roof repair.md", "matter")];

#[tokio::test]
async fn notes_are_found_anywhere_and_a_task_finds_its_matter_by_name() {
    let bench = Bench::by_property().await;
    let first = bench.sync("01:00:00").await;
    assert_eq!((first.read, first.problems.len()), (3, 0));
    assert_eq!(bench.kinds().await, pairs(&BOTH));
    assert_eq!(bench.left_out().await, []);
    let parent: String =
        sqlx::query_scalar("SELECT parent FROM tasks").fetch_one(&bench.index.store.writer).await.unwrap();
    assert_eq!(parent, "Projects/Roof repair.md");
    assert_eq!(bench.sync("02:00:00").await.read, 0, "nothing is read again");
    bench.signal("s", "task/müller Anrufen.md", "");
    bench.sync("03:00:00").await;
    let seen = bench.look("Projects/Roof repair.md", "l", "04:00:00").await;
    let [check] = seen.task_checks.as_slice() else { panic!("{seen:?}") };
    assert_eq!(check.question.subject.task_name, "Müller anrufen");
    assert_eq!(check.state_as_written.as_deref(), Some("open"));
    bench.counts_as_rebuilt_mapped().await;
}

#[tokio::test]
async fn a_note_changes_what_it_is_with_its_content() {
    let bench = Bench::by_property().await;
    bench.sync("01:00:00").await;
    let task = "Aufgaben/Müller anrufen.md";
    bench.put(task, TASK.replace("[task]", "[idea]"));
    bench.hint(&[task], "02:00:00").await;
    assert_eq!(bench.kinds().await, pairs(&BOTH[1..]));
    bench.put(task, TASK.replace("todo", "soon"));
    bench.hint(&[task], "03:00:00").await;
    let unmapped = NoteExclusion::UnmappedState { property: "status".into(), value: "soon".into() };
    assert_eq!(bench.left_out().await, [(task.to_owned(), unmapped)]);
    assert_eq!(bench.index.count_excluded_notes().await.unwrap(), [("unmapped_state".to_owned(), 1)]);
    bench.put(task, TASK);
    bench.hint(&[task], "04:00:00").await;
    assert_eq!(bench.kinds().await, pairs(&BOTH));
    bench.remove(task);
    bench.hint(&[task], "05:00:00").await;
    assert_eq!((bench.kinds().await, bench.left_out().await), (pairs(&BOTH[1..]), Vec::new()));
    bench.counts_as_rebuilt_mapped().await;
}

#[tokio::test]
async fn twins_templates_copies_and_unreadable_notes_are_left_out_and_come_back() {
    let bench = Bench::by_property().await;
    bench.put("Aufgaben/müller ANRUFEN.md", TASK);
    bench.put("Templates/task.md", TASK.replace("todo", "'{{state}}'"));
    bench.put("Aufgaben/a.sync-conflict-20261124-1.md", TASK);
    bench.put("Projects/Broken.md", "---\nstatus: [\n---\n");
    bench.put("Elsewhere/broken.md", "---\nstatus: [\n---\n");
    bench.sync("01:00:00").await;
    let why: Vec<(String, String)> =
        bench.left_out().await.into_iter().map(|(path, why)| (path, why.to_string())).collect();
    let paths: Vec<&str> = why.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "Aufgaben/Müller anrufen.md",
            "Aufgaben/a.sync-conflict-20261124-1.md",
            "Aufgaben/müller ANRUFEN.md",
            "Elsewhere/broken.md",
            "Projects/Broken.md",
            "Templates/task.md",
        ],
        "a tag may stand in any note"
    );
    assert!(why[0].1.contains("müller ANRUFEN") && why[2].1.contains("Müller anrufen"), "{why:?}");
    bench.counts_as_rebuilt_mapped().await;
    bench.remove("Aufgaben/müller ANRUFEN.md");
    bench.hint(&["Aufgaben/müller ANRUFEN.md"], "02:00:00").await;
    bench.sync("03:00:00").await;
    assert_eq!(bench.kinds().await, pairs(&BOTH));
    bench.put("Aufgaben/müller ANRUFEN.md", TASK);
    bench.hint(&["Aufgaben/müller ANRUFEN.md"], "04:00:00").await;
    assert_eq!(bench.kinds().await, pairs(&BOTH[1..]), "a twin that comes by a hint is found too");
}

#[tokio::test]
async fn folders_of_knowledge_hold_no_affairs() {
    let bench = Bench::by_property().await;
    bench.sync("01:00:00").await;
    bench.put("Aufgaben/KNOWLEDGE.md", "Compiled.\n");
    bench.hint(&["Aufgaben/KNOWLEDGE.md"], "02:00:00").await;
    assert_eq!(bench.kinds().await, pairs(&BOTH[1..]));
    bench.put("Aufgaben/deep/b.md", TASK);
    bench.hint(&["Aufgaben/deep/b.md"], "03:00:00").await;
    assert_eq!((bench.kinds().await, bench.left_out().await), (pairs(&BOTH[1..]), Vec::new()));
    bench.counts_as_rebuilt_mapped().await;
    bench.remove("Aufgaben/KNOWLEDGE.md");
    bench.hint(&["Aufgaben/KNOWLEDGE.md"], "04:00:00").await;
    assert_eq!(bench.kinds().await.len(), 3);
}

#[tokio::test]
async fn a_task_belongs_to_the_matter_of_its_folder_whatever_comes_above_it() {
    let bench = Bench::mapped(r#"{"folder": true}"#).await;
    bench.put("Projects/Roof/Roof.md", MATTER);
    bench.put("Work/Roof/deep/call.md", TASK);
    bench.sync("01:00:00").await;
    let parent = async || {
        let sql = "SELECT parent, parent_fault FROM tasks";
        sqlx::query_as::<_, (String, Option<String>)>(sql).fetch_one(&bench.index.store.writer).await.unwrap()
    };
    let (none, fault) = parent().await;
    assert_eq!(none, "Work/Roof/deep/call.md", "no folder above it has a note, and a task is no matter");
    assert!(fault.unwrap().ends_with("no note is called `Work/Roof/deep`"));
    bench.put("Work/Roof/Roof.md", "x");
    bench.hint(&["Work/Roof/Roof.md"], "02:00:00").await;
    assert_eq!(parent().await.0, "Work/Roof/Roof.md");
    bench.put("Work/Roof.md", "x");
    bench.hint(&["Work/Roof.md"], "03:00:00").await;
    let (none, fault) = parent().await;
    assert!(none.ends_with("call.md") && fault.unwrap().contains("several notes"), "inside and beside");
    bench.counts_as_rebuilt_mapped().await;
}

#[tokio::test]
async fn another_mapping_reads_every_note_again() {
    let bench = Bench::by_property().await;
    bench.sync("01:00:00").await;
    let folders = Index::open(&bench.dir.path().join("state")).await.unwrap();
    bench.matter("farm");
    folders.sync_all(&bench.root, noon("02:00:00")).await.unwrap();
    assert_eq!(bench.kinds().await, pairs(&[("matter/farm.md", "matter")]));
    let others: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM other_notes").fetch_one(&folders.store.writer).await.unwrap();
    assert_eq!(others, 0);
    let index = Index::open(&bench.dir.path().join("state")).await.unwrap();
    let index = index.with_schema(schema(r#"{"property": "project"}"#), []);
    index.sync_all(&bench.root, noon("03:00:00")).await.unwrap();
    assert_eq!(bench.kinds().await, pairs(&BOTH), "matter/ is a folder like any other");
}

#[tokio::test]
async fn a_recurring_task_and_one_with_an_unknown_second_matter_are_asked_about() {
    let bench = Bench::by_property().await;
    let task = "Aufgaben/Müller anrufen.md";
    let ceiling = async || {
        let signals = bench.index.signals();
        signals.lowest_configured_ceiling(&path(task), None, &[], Ceiling::Act).await.unwrap()
    };
    let unknown_matter = TASK.replace("'[[Roof repair]]'", "['[[Roof repair]]', X]");
    for text in [TASK.replace("status", "repeat: weekly\nstatus"), unknown_matter] {
        bench.put(task, text);
        bench.sync("01:00:00").await;
        assert_eq!(ceiling().await, Ceiling::Ask);
    }
    bench.put(task, TASK);
    bench.sync("02:00:00").await;
    assert_eq!(ceiling().await, Ceiling::Act);
}

#[tokio::test]
async fn the_policies_of_all_matters_of_a_task_hold() {
    let bench = Bench::by_property().await;
    let task = path("Aufgaben/Müller anrufen.md");
    bench.put(task.as_str(), TASK.replace("'[[Roof repair]]'", "['[[Roof repair]]', '[[Attic]]', '[[Money]]']"));
    let matter = |more: &str| format!("---\nstatus: active\n{more}---\n");
    let attic = matter("steward:\n  ceiling: confirm\n  daily_budget: 2\n");
    bench.put("Projects/Attic.md", &attic);
    bench.put("Projects/Money.md", matter(""));
    bench.signal("s", "task/Müller anrufen.md", "");
    bench.sync("01:00:00").await;
    let state = async |id: &str, clock: &str| {
        let policy = DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() };
        let query = ObservationQuery { policy, ..ask("Projects/Roof repair.md", id, clock) };
        let seen = bench.index.cursors().observe_due_tasks(&query).await.unwrap();
        let set = bench.index.signals().lowest_configured_ceiling(&task, None, &[], Ceiling::Act).await.unwrap();
        (seen, set)
    };
    let (seen, set) = state("a", "02:00:00").await;
    assert_eq!(seen.task_checks.len(), 1, "{seen:?}");
    let check = &seen.task_checks[0];
    assert_eq!((check.matter_ceiling, check.further_policies.len(), set), (Ceiling::Confirm, 1, Ceiling::Confirm));
    assert_eq!(check.further_policies[0].daily_budget, Some(2));
    let policies = bench.index.gates().list_matter_policies(&task, None).await.unwrap();
    assert_eq!(policies.iter().map(|(matter, _)| matter.as_str()).collect::<Vec<_>>(), ["Projects/Attic.md"]);
    bench.action("x", |draft| draft.target = task.clone());
    bench.sync("02:30:00").await;
    let spent = bench.index.gates().count_changes_under(&path("Projects/Attic.md"), None, noon("03:00:00")).await;
    assert_eq!(spent.unwrap(), 1, "a change of the task counts for each of its matters");

    // One that is renamed is another name, and one that is gone has a policy that nobody knows.
    fs::rename(bench.full("Projects/Attic.md"), bench.full("Projects/Loft.md")).unwrap();
    bench.sync("03:00:00").await;
    assert_eq!(
        bench.index.signals().lowest_configured_ceiling(&task, None, &[], Ceiling::Act).await.unwrap(),
        Ceiling::Ask
    );
    let policies = bench.index.gates().list_matter_policies(&task, None).await.unwrap();
    assert!(policies.iter().any(|(_, policy)| *policy == MatterPolicy::ask_only()), "{policies:?}");
    let problems = bench.index.read().list_problems().await.unwrap();
    assert!(problems.iter().any(|p| p.path == task.as_str() && p.message.contains("`Attic`")), "{problems:?}");
    bench.put("Projects/Attic.md", attic.replace("ceiling: confirm", "quiet_hours: 00:00-23:59"));
    bench.sync("04:00:00").await;
    let (seen, set) = state("b", "12:00:00").await;
    assert_eq!(set, Ceiling::Act);
    assert_eq!(seen.skipped.get(&TaskSkipReason::QuietHours), Some(&1), "{seen:?}");
    bench.counts_as_rebuilt_mapped().await;
}

#[tokio::test]
async fn a_link_that_fits_two_notes_names_none_of_them_and_is_asked_about() {
    let bench = Bench::by_property().await;
    bench.put("matter/Roof repair.md", MATTER);
    bench.sync("01:00:00").await;
    let task = path("Aufgaben/Müller anrufen.md");
    let ceiling = bench.index.signals().lowest_configured_ceiling(&task, None, &[], Ceiling::Act).await.unwrap();
    assert_eq!(ceiling, Ceiling::Ask);
    let problems = bench.index.read().list_problems().await.unwrap();
    assert!(problems.iter().any(|p| p.path == task.as_str() && p.message.contains("several notes")), "{problems:?}");
    assert!(bench.look("matter/Roof repair.md", "l", "02:00:00").await.task_checks.is_empty());
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_keeps_its_notes_and_holds_up_no_other() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::by_property().await;
    bench.sync("01:00:00").await;
    let locked = bench.full("Aufgaben");
    fs::rename(&locked, bench.full("away")).unwrap();
    fs::write(&locked, "a file in its place").unwrap();
    bench.put("Neu/b.md", TASK);
    bench.sync("02:00:00").await;
    assert!(bench.kinds().await.contains(&("Neu/b.md".into(), "task".into())));
    fs::remove_file(&locked).unwrap();
    fs::rename(bench.full("away"), &locked).unwrap();
    bench.sync("03:00:00").await;
    assert_eq!(bench.kinds().await.len(), 3);
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser may read everything.
    if fs::read_dir(&locked).is_err() {
        let report = bench.sync("04:00:00").await;
        assert!(!report.complete && report.problems.iter().any(|p| p.path == "Aufgaben/"), "{report:?}");
        assert_eq!(bench.kinds().await.len(), 3, "nothing is forgotten");
    }
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
}
