//! Runs of a wiki that are taken back: to the byte, below later runs, and beside what people wrote.

use crate::desk::{Desk, names, noon, settle};
use crate::wiki_desk::{Contents, WIKI, plan, read_wiki, run};
use chrono::TimeDelta;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::rollback::EditedPages;
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::template::render_wiki;
use steward_vault::action::writer::VaultWriter;
use steward_vault::wiki::create::create_wiki;
use steward_vault::wiki::revert::{RevertError, RevertRequest, RevertedRun};

fn page(slug: &str, body: &str) -> String {
    format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {slug}\nsources: [lease]\nconfidence: 0.7\n---\n# {slug}\n\n{body}"
    )
}

/// A wiki as `steward wiki init` makes it, with two pages and an index that shows them.
fn real_wiki() -> Desk {
    let desk = Desk::new();
    create_wiki(&desk.root(), "plot", &render_wiki("plot", noon()).unwrap()).unwrap();
    std::fs::create_dir_all(desk.file(&format!("{WIKI}/entities"))).unwrap();
    // It has no overview, as wikis of other tools.
    std::fs::remove_file(desk.file(&format!("{WIKI}/overview.md"))).unwrap();
    desk.write(&format!("{WIKI}/_index.md"), b"# Index: Plot\n");
    let first = read_wiki(&desk);
    let mut wanted = first.clone();
    wanted.insert("entities/water.md".into(), page("water", "Free.\n\nIt is cold.\n\nIt is clear.\n"));
    wanted.insert("entities/lease.md".into(), page("lease", "It ends in 2027.\n"));
    let index = wanted.get_mut("_index.md").unwrap();
    index.push_str("## Entities\n- [[lease|lease]] `entity` — It ends in 2027.\n- [[water|water]] `entity` — Free.\n");
    commit(&desk.writer(), "setup", &first, &wanted);
    desk
}

/// Commits a run, and returns its record.
fn commit(writer: &VaultWriter, name: &str, before: &Contents, after: &Contents) -> RecordPath {
    // A wiki's own four files are no part of a run.
    let files = |contents: &Contents| -> Contents {
        let is_written = |file: &&String| !["KNOWLEDGE.md", "AGENTS.md"].contains(&file.as_str());
        contents.iter().filter(|(file, _)| is_written(file)).map(|(file, text)| (file.clone(), text.clone())).collect()
    };
    writer.commit_run(&plan(run(WikiRunType::Manual, name), &files(before), &files(after))).unwrap().record
}

fn revert(writer: &VaultWriter, record: &RecordPath, edited: EditedPages) -> Result<RevertedRun, RevertError> {
    let at = noon() + TimeDelta::hours(1);
    writer.revert_run(&RevertRequest { record, by: "ann", reason: None, edited, at, workflow: WorkflowRef::default() })
}

/// The run of these tests: it changes a page, makes one, removes one, and leaves an index that shows it.
fn change(wiki: &Contents) -> Contents {
    let mut after = wiki.clone();
    after.remove("entities/lease.md");
    after.insert("entities/council.md".into(), page("council", "It extends leases. See [[water]].\n"));
    let water = after.get_mut("entities/water.md").unwrap();
    *water = water.replace("It is cold.", "It is warm.").replace("[lease]", "[lease, letter]").replace("0.7", "0.9");
    let index = after.get_mut("_index.md").unwrap();
    *index = index.replace(
        "- [[lease|lease]] `entity` — It ends in 2027.",
        "- [[council|council]] `entity` — It extends leases.",
    );
    after.get_mut("_log.md").unwrap().push_str("\n## [2026-11-21T12:00:00Z] manual | A run\n");
    after
}

/// A wiki, what it held before the run of these tests, and the run's record.
struct ChangedWiki {
    desk: Desk,
    writer: VaultWriter,
    before: Contents,
    record: RecordPath,
}

impl ChangedWiki {
    fn new() -> Self {
        let desk = real_wiki();
        let (writer, before) = (desk.writer(), read_wiki(&desk));
        let record = commit(&writer, "a", &before, &change(&before));
        Self { desk, writer, before, record }
    }
}

#[test]
fn a_run_is_taken_back_to_the_byte_and_the_log_keeps_both_entries() {
    let ChangedWiki { desk, writer, before, record } = ChangedWiki::new();
    let after = change(&before);
    assert_eq!(read_wiki(&desk), after);
    let reverted = revert(&writer, &record, EditedPages::Refuse).unwrap();
    assert_eq!((reverted.kept.len(), reverted.receipt.repeated), (0, false));
    let mut now = read_wiki(&desk);
    let log = now.remove("_log.md").unwrap();
    let without_log: Contents =
        before.iter().filter(|(file, _)| *file != "_log.md").map(|(f, t)| (f.clone(), t.clone())).collect();
    assert_eq!(now, without_log);
    let run =
        record.as_str().strip_prefix("event/steward-wiki-").and_then(|name| name.strip_suffix("-plot.md")).unwrap();
    assert!(log.starts_with(&after["_log.md"]) && log.contains(&format!("manual | Took back {run}\n")), "{log}");
    assert!(revert(&writer, &record, EditedPages::Refuse).unwrap().receipt.repeated, "asked again, it is found");
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn the_first_of_several_runs_is_taken_back_beside_a_persons_words() {
    let ChangedWiki { desk, writer, before, record } = ChangedWiki::new();
    let after = change(&before);
    // A later run adds below, and a person above. A person links to the page that the run made.
    let mut later = after.clone();
    later.get_mut("entities/water.md").unwrap().push_str("\nA later run says so.\n");
    commit(&writer, "b", &after, &later);
    let water = later["entities/water.md"].replace("Free.", "Free, and [[council]] pays.");
    desk.write(&format!("{WIKI}/entities/water.md"), water.as_bytes());
    let reverted = revert(&writer, &record, EditedPages::Refuse).unwrap();
    let kept: Vec<String> = reverted.kept.iter().map(|page| format!("{}: {}", page.file, page.reason)).collect();
    assert_eq!(kept, ["entities/council.md: entities/water.md links to it"]);
    let expected =
        page("water", "Free, and [[council]] pays.\n\nIt is cold.\n\nIt is clear.\n\nA later run says so.\n");
    assert_eq!(desk.read(&format!("{WIKI}/entities/water.md")), expected);
    assert!(desk.read(&format!("{WIKI}/_index.md")).contains("[[council|council]]"));
    assert_eq!(desk.read(&format!("{WIKI}/entities/lease.md")), before["entities/lease.md"]);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn what_stands_in_the_way_is_named_and_nothing_is_changed() {
    let ChangedWiki { desk, writer, record, .. } = ChangedWiki::new();
    let water = desk.read(&format!("{WIKI}/entities/water.md")).replace("It is warm.", "It is hot.");
    desk.write(&format!("{WIKI}/entities/water.md"), water.as_bytes());
    let stood = read_wiki(&desk);
    let message = revert(&writer, &record, EditedPages::Refuse).unwrap_err().to_string();
    assert!(message.contains("entities/water.md: line 13 was changed since by hand: It is hot."), "{message}");
    assert_eq!(read_wiki(&desk), stood);
    let reverted = revert(&writer, &record, EditedPages::Keep).unwrap();
    assert_eq!(reverted.kept.len(), 1);
    assert_eq!(desk.read(&format!("{WIKI}/entities/water.md")), water);
    assert!(!desk.file(&format!("{WIKI}/entities/council.md")).exists());
    let trash = names(&desk.file(&format!("{WIKI}/.trash")));
    assert_eq!(trash.len(), 2, "what the run removed, and what the rollback removed");
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn an_edited_record_and_a_record_of_something_else_take_nothing_back() {
    let ChangedWiki { desk, writer, before, record } = ChangedWiki::new();
    let text = desk.read(record.as_str());
    desk.write(record.as_str(), text.replace("-It is cold.", "-It is mine.").as_bytes());
    assert!(matches!(revert(&writer, &record, EditedPages::Refuse), Err(RevertError::Details { .. })));
    desk.write(record.as_str(), text.as_bytes());
    let reverted = revert(&writer, &record, EditedPages::Refuse).unwrap();
    let again = RevertRequest {
        record: &record,
        by: "ann",
        reason: Some("The letter\nwas a draft."),
        edited: EditedPages::Refuse,
        at: noon() + TimeDelta::hours(2),
        workflow: WorkflowRef::default(),
    };
    assert!(matches!(writer.revert_run(&again), Err(RevertError::Again(_))), "it was taken back already");
    // The rollback is a run itself.
    let redo = writer.revert_run(&RevertRequest { record: &reverted.receipt.record, ..again }).unwrap();
    assert!(!redo.receipt.repeated);
    let text = desk.read(redo.receipt.record.as_str());
    assert!(text.contains(": The letter was a draft."), "the record keeps the reason: {text}");
    assert_eq!(desk.read(&format!("{WIKI}/entities/water.md")), change(&before)["entities/water.md"]);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_persons_lines_in_the_index_go_to_the_trash() {
    let ChangedWiki { desk, writer, before, record } = ChangedWiki::new();
    let mut index = std::fs::read(desk.file(&format!("{WIKI}/_index.md"))).unwrap();
    index.extend_from_slice(b"My own line, in Latin-1: \xfc\n");
    desk.write(&format!("{WIKI}/_index.md"), &index);
    let reverted = revert(&writer, &record, EditedPages::Refuse).unwrap();
    let trash = reverted.displaced[0].to_string();
    assert!(trash.starts_with("wiki/plot/.trash/r-20261121T130000Z-") && trash.ends_with("/_index.md"), "{trash}");
    assert_eq!(std::fs::read(desk.file(&trash)).unwrap(), index);
    assert_eq!(desk.read(&format!("{WIKI}/_index.md")), before["_index.md"]);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_manifest_that_cannot_be_read_keeps_nobody_from_taking_a_run_back() {
    let ChangedWiki { desk, writer, before, record } = ChangedWiki::new();
    desk.write(&format!("{WIKI}/KNOWLEDGE.md"), b"---\nname: [\n---\n");
    let reverted = revert(&writer, &record, EditedPages::Refuse).unwrap();
    assert_eq!(reverted.kept, []);
    assert_eq!(desk.read(&format!("{WIKI}/_index.md")), before["_index.md"]);
}

#[test]
fn a_folder_behind_a_link_stands_in_the_way_of_a_rollback() {
    let ChangedWiki { desk, writer, record, .. } = ChangedWiki::new();
    let (folder, moved) = (desk.file(&format!("{WIKI}/entities")), desk.file("moved"));
    std::fs::rename(&folder, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &folder).unwrap();
    let message = revert(&writer, &record, EditedPages::Refuse).unwrap_err().to_string();
    assert!(message.contains("is a link or a file"), "{message}");
    assert!(moved.join("council.md").exists());
}
