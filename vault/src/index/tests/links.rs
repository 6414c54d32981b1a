//! The matter of a task, found by its link, whatever notes come and go.

use super::*;

impl Bench {
    async fn parent(&self, task: &str) -> String {
        let sql = "SELECT parent FROM tasks WHERE path = ?1";
        sqlx::query_scalar(sql).bind(task).fetch_one(&self.index.store.writer).await.unwrap()
    }

    pub(super) async fn counts_as_rebuilt(&self) {
        let before = self.dump(&self.index).await;
        self.index.rebuild(&self.root, noon("23:00:00")).await.unwrap();
        assert_eq!(self.dump(&self.index).await, before);
    }
}

#[tokio::test]
async fn a_link_finds_its_matter_in_another_case_and_normal_form() {
    let bench = Bench::scanned().await;
    bench.matter("Wedding of Ann and Ben");
    bench.matter("Cafe\u{301}");
    bench.task("Überweisung", "wedding of ann AND ben", "");
    bench.task("📌 Plan", "CAF\u{c9}", "");
    bench.sync("01:00:00").await;
    assert_eq!(bench.parent("task/Überweisung.md").await, "matter/Wedding of Ann and Ben.md");
    assert_eq!(bench.parent("task/📌 Plan.md").await, "matter/Cafe\u{301}.md");
    assert!(bench.index.read().list_problems().await.unwrap().is_empty());
    bench.signal("s", "task/ÜBERWEISUNG.md", "");
    bench.sync("02:00:00").await;
    let seen = bench.look("matter/Wedding of Ann and Ben.md", "l", "03:00:00").await;
    assert_eq!(seen.task_checks.len(), 1);
    bench.counts_as_rebuilt().await;
}

#[tokio::test]
async fn a_matter_that_comes_later_or_under_another_name_is_found() {
    let bench = Bench::scanned().await;
    bench.task("t", "farm", "");
    bench.sync("01:00:00").await;
    assert!(bench.problem_of("task/t.md").await.contains("matter/farm.md does not exist"));
    bench.matter("Farm");
    bench.sync("02:00:00").await;
    assert_eq!(bench.parent("task/t.md").await, "matter/Farm.md");
    bench.remove("matter/Farm.md");
    bench.matter("FARM");
    bench.hint(&["matter/Farm.md", "matter/FARM.md"], "03:00:00").await;
    assert_eq!(bench.parent("task/t.md").await, "matter/FARM.md");
    bench.remove("matter/FARM.md");
    bench.sync("04:00:00").await;
    assert_eq!(bench.parent("task/t.md").await, "matter/farm.md");
    bench.counts_as_rebuilt().await;
}

#[tokio::test]
async fn a_link_that_fits_two_matters_names_both_and_has_no_steward() {
    let bench = Bench::scanned().await;
    bench.matter("Farm");
    bench.matter("FARM");
    bench.task("t", "farm", "");
    bench.task("u", "FARM", "");
    bench.sync("01:00:00").await;
    let problem = bench.problem_of("task/t.md").await;
    assert_eq!(problem, "`matter/farm` names several notes: matter/FARM.md, matter/Farm.md");
    assert_eq!(bench.parent("task/u.md").await, "matter/FARM.md", "the name that is spelled counts");
    bench.signal("s", "task/t.md", "");
    bench.sync("02:00:00").await;
    for matter in ["matter/Farm.md", "matter/FARM.md"] {
        assert!(bench.look(matter, matter, "03:00:00").await.task_checks.is_empty());
    }
    bench.remove("matter/FARM.md");
    bench.sync("04:00:00").await;
    assert_eq!(bench.parent("task/t.md").await, "matter/Farm.md");
    assert!(bench.index.read().list_problems().await.unwrap().is_empty());
    bench.counts_as_rebuilt().await;
}

#[tokio::test]
async fn what_another_process_scanned_meanwhile_is_found_by_the_next_scan() {
    let bench = Bench::scanned().await;
    bench.task("t", "Farm", "");
    bench.sync("01:00:00").await;
    // Another process reads the new matter, and this one still has the old names.
    let other = Index::open(&bench.dir.path().join("state")).await.unwrap();
    bench.matter("farm");
    other.sync_all(&bench.root, noon("02:00:00")).await.unwrap();
    sqlx::query("UPDATE tasks SET parent = 'matter/Farm.md'").execute(&bench.index.store.writer).await.unwrap();
    bench.sync("03:00:00").await;
    assert_eq!(bench.parent("task/t.md").await, "matter/farm.md");
}

#[tokio::test]
async fn a_relative_link_is_followed_from_its_task() {
    let bench = Bench::scanned().await;
    bench.matter("Roof");
    bench.put("task/t.md", "---\ntype: task\nparent_matter: \"[[../matter/roof]]\"\n---\n");
    bench.put("task/out.md", "---\ntype: task\nparent_matter: \"[[../../matter/roof]]\"\n---\n");
    bench.sync("01:00:00").await;
    assert_eq!(bench.parent("task/t.md").await, "matter/Roof.md");
    assert!(bench.problem_of("task/out.md").await.contains("cannot be used"), "it leaves the vault");
}

#[tokio::test]
async fn a_failed_write_forgets_the_names_so_that_they_are_read_again() {
    let bench = Bench::scanned().await;
    bench.matter("farm");
    bench.sync("01:00:00").await;
    bench.index.notes.clear();
    bench.task("t", "FARM", "");
    bench.hint(&["task/t.md"], "02:00:00").await;
    assert_eq!(bench.parent("task/t.md").await, "matter/farm.md");
}
