//! Relations between pages, from a staged run to `_graph.md`, and back.

use crate::desk::settle;
use crate::ingest::{FOLDER, LEASE, LETTER, add, revert_record, stage, wiki};
use steward_domain::action::audit::WorkflowRef;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::run::RunSource;
use steward_vault::action::writer::VaultWriter;
use steward_vault::wiki::staged::StagedPlan;

const GRAPH: &str = "_graph.md";
const NAMED: &str = "[[plot-12]] --named_in--> [[summary-lease]]";
const NEAR: &str = "[[plot-12]] --near--> [[summary-lease]]";

/// Commits the pages of a source with these relations.
fn ingest(writer: &VaultWriter, minutes: i64, source: &RunSource, relations: &[&str]) -> RecordPath {
    let run = stage(writer, minutes, source);
    let (plan, files) = run.read_staged().unwrap().unwrap();
    let relations = relations.iter().map(|line| line.parse().unwrap()).collect();
    run.stage(&files, StagedPlan { relations, ..plan }).unwrap();
    writer.commit_staged(&run, None, run.meta.began, &WorkflowRef::default()).unwrap().receipt.record
}

#[test]
fn a_run_adds_relations_once_and_takes_only_its_own_lines_back() {
    let (desk, writer) = wiki();
    let read = |file: &str| desk.read(&format!("{FOLDER}/{file}"));
    let (lease, letter) = (add(&writer, 1, "lease.md", LEASE).unwrap(), add(&writer, 2, "letter.md", LETTER).unwrap());
    let nowhere = "[[plot-12]] --near--> [[nowhere]]";
    let first = ingest(&writer, 3, &lease.source, &[NAMED, nowhere, NAMED]);
    assert_eq!(read(GRAPH), format!("# Graph\n\n{NAMED}\n"));
    assert!(read("_log.md").contains("; graph: extracted 1 new triples\n"), "{}", read("_log.md"));
    // A person writes a line of theirs, without an end of line.
    desk.write(&format!("{FOLDER}/{GRAPH}"), format!("# Graph\n\n{NAMED}\nMine.").as_bytes());
    let second = ingest(&writer, 4, &letter.source, &[NAMED, NEAR]);
    let both = format!("# Graph\n\n{NAMED}\nMine.\n{NEAR}\n");
    assert_eq!(read(GRAPH), both);
    let rollback = revert_record(&writer, &second, 5);
    assert_eq!(read(GRAPH), format!("# Graph\n\n{NAMED}\nMine.\n"));
    let restored = revert_record(&writer, &rollback, 6);
    assert_eq!(read(GRAPH), both);
    revert_record(&writer, &restored, 7);
    revert_record(&writer, &first, 8);
    assert_eq!(read(GRAPH), "# Graph\n\nMine.\n");
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_graph_that_cannot_be_extended_holds_up_no_run() {
    for content in [b"\xff\xfe".as_slice(), b"# Graph\n\n\0"] {
        let (desk, writer) = wiki();
        let source = add(&writer, 1, "lease.md", LEASE).unwrap().source;
        desk.write(&format!("{FOLDER}/{GRAPH}"), content);
        let run = ingest(&writer, 2, &source, &[NAMED]);
        assert_eq!(std::fs::read(desk.file(&format!("{FOLDER}/{GRAPH}"))).unwrap(), content);
        assert!(!desk.read(&format!("{FOLDER}/_log.md")).contains("graph:"));
        revert_record(&writer, &run, 3);
        assert_eq!(std::fs::read(desk.file(&format!("{FOLDER}/{GRAPH}"))).unwrap(), content);
    }
    // A wiki of an older version has none yet.
    let (desk, writer) = wiki();
    let source = add(&writer, 1, "lease.md", LEASE).unwrap().source;
    std::fs::remove_file(desk.file(&format!("{FOLDER}/{GRAPH}"))).unwrap();
    let run = ingest(&writer, 2, &source, &[NAMED]);
    assert_eq!(desk.read(&format!("{FOLDER}/{GRAPH}")), format!("# Graph\n\n{NAMED}\n"));
    revert_record(&writer, &run, 3);
    assert_eq!(desk.read(&format!("{FOLDER}/{GRAPH}")), "# Graph\n\n");
}
