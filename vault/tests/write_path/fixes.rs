//! A person has pages corrected: at most 15 in a run, by the rules, and every run goes back to the byte.

use crate::desk::{Desk, settle};
use crate::ingest::{FOLDER, at, read_files, request, wiki};
use std::collections::BTreeMap;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::wiki::rollback::EditedPages;
use steward_vault::action::writer::VaultWriter;
use steward_vault::wiki::fix::FixedWiki;
use steward_vault::wiki::revert::RevertRequest;

/// How many pages have a broken link.
const BROKEN: usize = 17;

fn write_page(desk: &Desk, slug: &str, more: &str, body: &str) {
    std::fs::create_dir_all(desk.file(&format!("{FOLDER}/entities"))).unwrap();
    let text = format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: Of {slug}\nupdated_at: \"2026-11-22T09:15:04Z\"\n{more}---\n{body}\n"
    );
    desk.write(&format!("{FOLDER}/entities/{slug}.md"), text.as_bytes());
}

/// The files of pages alone.
fn read_pages(desk: &Desk) -> BTreeMap<String, String> {
    read_files(desk).into_iter().filter(|(file, _)| file.starts_with("entities/")).collect()
}

fn revert(writer: &VaultWriter, fixed: &FixedWiki, minutes: i64) {
    let record = &fixed.run.receipt.as_ref().unwrap().record;
    let workflow = WorkflowRef::default();
    let request =
        RevertRequest { record, by: "ann", reason: None, edited: EditedPages::Refuse, at: at(minutes), workflow };
    writer.revert_run(&request).unwrap();
}

#[test]
fn a_fix_changes_fifteen_pages_and_says_how_many_are_left() {
    let (desk, writer) = wiki();
    write_page(&desk, "plot-12", "", "A plot.");
    for n in 0..BROKEN {
        write_page(&desk, &format!("page-{n:02}"), "", "Mine, beside [[Plot_12]] and [[nowhere]].");
    }
    let before = read_pages(&desk);
    let first = writer.fix_wiki(&request(1)).unwrap();
    let after = read_pages(&desk);
    let changed: Vec<&String> = after.keys().filter(|file| after[*file] != before[*file]).collect();
    assert_eq!(changed.len(), 15);
    for file in changed {
        assert_eq!(after[file], before[file].replace("[[Plot_12]]", "[[plot-12|Plot_12]]"), "{file}");
        assert!(first.notes.contains(&format!("{file}: 1 link corrected (plot-12)")), "{:#?}", first.notes);
    }
    assert!(first.notes.last().unwrap().contains("2 pages can be corrected yet"), "{:#?}", first.notes);
    let log = desk.read(&format!("{FOLDER}/_log.md"));
    assert!(log.contains("] lint | Corrected 15 pages\n"), "{log}");
    assert!(writer.fix_wiki(&request(1)).unwrap().run.receipt.unwrap().repeated, "asked again, it is found");
    assert_eq!(read_pages(&desk), after);
    let second = writer.fix_wiki(&request(2)).unwrap();
    assert_eq!(second.notes.len(), 2, "{:#?}", second.notes);
    let third = writer.fix_wiki(&request(3)).unwrap();
    assert_eq!((third.run.receipt, third.notes), (None, Vec::new()));
    for (fixed, minutes) in [(&second, 4), (&first, 5)] {
        revert(&writer, fixed, minutes);
    }
    assert_eq!(read_pages(&desk), before);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_page_that_cannot_be_corrected_holds_nothing_up() {
    let (desk, writer) = wiki();
    write_page(&desk, "plot-12", "", "A plot.");
    // This field begins no line, so it cannot be edited.
    write_page(&desk, "odd", "? contradicts\n: [Plot_12]\n", "A.");
    write_page(&desk, "page", "contradicts: [Plot_12]\n", "B.");
    let before = read_pages(&desk);
    let fixed = writer.fix_wiki(&request(1)).unwrap();
    let after = read_pages(&desk);
    assert_eq!(after["entities/odd.md"], before["entities/odd.md"]);
    assert_eq!(after["entities/page.md"], before["entities/page.md"].replace("[Plot_12]", "[plot-12]"));
    assert!(fixed.notes.iter().any(|note| note.contains("entities/page.md: 1 link corrected")), "{:#?}", fixed.notes);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn the_nightly_fix_changes_no_page() {
    let (desk, writer) = wiki();
    write_page(&desk, "plot-12", "", "A plot.");
    write_page(&desk, "page", "", "Beside [[Plot_12]].");
    let before = read_pages(&desk);
    assert!(writer.render_wiki_files(&request(1)).unwrap().receipt.is_some());
    assert_eq!(read_pages(&desk), before);
    settle(&writer);
    desk.is_tidy();
}
