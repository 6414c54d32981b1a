//! A power cut at every crash point while a wiki is changed by what people ask for: an ingest, a rollback, a settled dispute
//! and an acceptance.
//!
//! A child process carries out one request and kills itself at the point. After the restart the wiki is wholly before the
//! request or wholly after it, to the byte, with one record or none. The same request then ends as if nothing had happened.

use crate::desk::{self, Desk, faults, lock, names, settle};
use crate::ingest::{FOLDER, LEASE, LETTER, add, at, ingest, read_files, request, try_stage, wiki};
use std::collections::BTreeMap;
use std::path::Path;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::rollback::EditedPages;
use steward_domain::wiki::run::RunId;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::crash::{MANY_FILES, POINTS};
use steward_vault::wiki::accept::read_acceptable;
use steward_vault::wiki::revert::RevertRequest;
use steward_vault::wiki::runs::find_run_records;
use steward_vault::wiki::settle::SettleChoice;
use steward_vault::wiki::sources::SourceDocument;

const FLOW: &str = "STEWARD_TEST_WIKI_FLOW";
const VAULT: &str = "STEWARD_TEST_WIKI_KILLS_VAULT";
pub(crate) const FLOWS: [&str; 4] = ["ingest", "revert", "settle", "accept"];
const DISPUTE: &str = include_str!("../../../worker/example-wiki/documents/end-of-the-lease.md");
const PAGE: &str = "end-of-the-lease";
/// When the request is made that the child carries out.
const MINUTE: i64 = 9;

/// Everything that a reader of the wiki can see.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    files: BTreeMap<String, String>,
    /// The pages in the trash, by run.
    trash: Vec<String>,
    records: usize,
}

pub(crate) fn see(desk: &Desk) -> Seen {
    let trash = desk.file(&format!("{FOLDER}/.trash"));
    let pages = |run: &String| {
        let folders = names(&trash.join(run)).into_iter();
        folders.flat_map(|folder| names(&trash.join(run).join(folder))).map(|page| format!("{run}/{page}")).collect()
    };
    let trash = names(&trash).iter().flat_map(|run| -> Vec<String> { pages(run) }).collect();
    Seen { files: read_files(desk), trash, records: names(&desk.file("event")).len() }
}

/// A wiki in which the request of a flow can be made.
pub(crate) fn prepare(flow: &str) -> Desk {
    let (desk, writer) = wiki();
    let lease = add(&writer, 1, "lease.md", LEASE).unwrap().source;
    ingest(&writer, 2, &lease);
    match flow {
        "ingest" => drop(add(&writer, 3, "letter.md", LETTER).unwrap()),
        "settle" => {
            std::fs::create_dir_all(desk.file(&format!("{FOLDER}/comparisons"))).unwrap();
            desk.write(&format!("{FOLDER}/comparisons/{PAGE}.md"), DISPUTE.as_bytes());
        }
        "accept" => {
            let manifest = desk.read(&format!("{FOLDER}/KNOWLEDGE.md"));
            let changed = manifest.replace("depth: medium", "depth: deep");
            assert_ne!(changed, manifest);
            desk.write(&format!("{FOLDER}/KNOWLEDGE.md"), changed.as_bytes());
        }
        _ => {}
    }
    settle(&writer);
    desk
}

/// Carries out the request of a flow; returns whether it had been carried out before.
pub(crate) fn act(writer: &VaultWriter, flow: &str) -> Result<bool, String> {
    let root = writer.root();
    match flow {
        "ingest" => {
            let document = SourceDocument { path: "sources/letter.md", bytes: None, decoded: None };
            let source = writer.add_source(&request(3), document).map_err(|e| e.to_string())?.source;
            let run = try_stage(writer, MINUTE, &source).map_err(|e| e.to_string())?;
            let committed = writer.commit_staged(&run, None, run.meta.began, &WorkflowRef::default());
            committed.map(|done| done.receipt.repeated).map_err(|e| e.to_string())
        }
        "revert" => {
            let run = RunId::derive(at(2), &["ingest", "lease"]);
            let record = &find_run_records(root, run.as_str()).unwrap()[0];
            let (edited, workflow) = (EditedPages::Refuse, WorkflowRef::default());
            let reverted =
                writer.revert_run(&RevertRequest { record, by: "ann", reason: None, edited, at: at(MINUTE), workflow });
            reverted.map(|done| done.receipt.repeated).map_err(|e| e.to_string())
        }
        "settle" => {
            let choice = SettleChoice { page: PAGE, claim: "c6107d23f", keep: "c4dc23754" };
            let settled = writer.settle_wiki_dispute(&request(MINUTE), choice);
            settled.map(|done| done.receipt.unwrap().repeated).map_err(|e| e.to_string())
        }
        "accept" => {
            let files = read_acceptable(root, FOLDER).unwrap();
            let hash = |text: &str| ContentHash::hash_bytes(text.as_bytes());
            let seen = files.iter().map(|file| (file.file.to_owned(), hash(&file.text))).collect();
            writer.accept_wiki(&request(MINUTE), &seen).map(|receipt| receipt.repeated).map_err(|e| e.to_string())
        }
        other => panic!("no flow {other}"),
    }
}

#[test]
fn a_child_carries_out_one_request_and_dies_at_its_point() {
    let (Ok(flow), Ok(vault)) = (std::env::var(FLOW), std::env::var(VAULT)) else { return };
    let writer = lock(Path::new(&vault));
    act(&writer, &flow).unwrap();
    settle(&writer);
}

fn dies(desk: &Desk, flow: &str, point: &str) -> bool {
    let test = "wiki_kills::a_child_carries_out_one_request_and_dies_at_its_point";
    desk::dies(test, &[(FLOW, flow.as_ref()), (VAULT, desk.path().as_os_str())], point)
}

/// The wiki of a flow before its request and after it, when nobody is in the way.
pub(crate) fn find_ends(flow: &str) -> [Seen; 2] {
    let desk = prepare(flow);
    let before = see(&desk);
    let writer = desk.writer();
    assert!(!act(&writer, flow).unwrap(), "{flow}");
    settle(&writer);
    let after = see(&desk);
    assert!(before.files != after.files && after.records == before.records + 1, "{flow}");
    [before, after]
}

/// The restart after a crash, and the same request again.
fn restart(desk: &Desk, flow: &str, [before, after]: &[Seen; 2], what: &str) {
    let writer = desk.writer();
    let now = see(desk);
    let is_done = now.records == after.records;
    assert_eq!(&now, if is_done { after } else { before }, "{what}");
    assert_eq!(act(&writer, flow).unwrap(), is_done, "{what}");
    assert_eq!(&see(desk), after, "{what}");
    assert!(act(&writer, flow).unwrap(), "{what}: asked again, it is found");
    settle(&writer);
    assert_eq!(&see(desk), after, "{what}");
    desk.is_tidy();
}

#[test]
fn a_crash_at_any_point_of_a_request_leaves_the_wiki_before_it_or_after_it() {
    for flow in FLOWS {
        let (ends, mut deaths) = (find_ends(flow), 0);
        for point in POINTS.into_iter().chain(MANY_FILES) {
            for pass in 1.. {
                let (desk, at) = (prepare(flow), format!("{point}:{pass}"));
                let (what, died) = (format!("{flow} at {at}"), dies(&desk, flow, &at));
                assert_eq!(faults(&desk.root()), Vec::<String>::new(), "{what}: a reader before the restart");
                restart(&desk, flow, &ends, &what);
                if !died {
                    break;
                }
                deaths += 1;
            }
        }
        assert!(deaths > 12, "{flow}: only {deaths} deaths");
    }
}

/// A second crash while the first one is recovered.
#[test]
fn a_crash_during_the_recovery_of_a_request_changes_nothing() {
    for flow in FLOWS {
        let (ends, mut deaths) = (find_ends(flow), 0);
        for first in ["after-journal:1", "between-exchanges:1", "before-filing:1", "after-filing:1"] {
            for second in ["after-swap:1", "before-filing:1", "after-filing:1", "after-chain-head:1"] {
                let desk = prepare(flow);
                assert!(dies(&desk, flow, first), "{flow} at {first}");
                deaths += u32::from(dies(&desk, flow, second));
                restart(&desk, flow, &ends, &format!("{flow} at {first}, then at {second}"));
            }
        }
        assert!(deaths > 6, "{flow}: only {deaths} second crashes");
    }
}
