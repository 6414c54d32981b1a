//! A wiki that cannot be read or written as a whole, on the real binary: a page that two YAML parsers read differently, a
//! folder of pages that is read-only, and a full disk.
//!
//! What is not usable is left alone and named with its fix, everything else goes on, and nothing is half done.

use crate::full_disk::Cramped;
use crate::wiki_runs::{Desk, LEASE};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use steward_tests::files::Files;
use steward_tests::world::World;

/// What a YAML 1.1 parser reads as the number 3, and a YAML 1.2 parser as text.
const AMBIGUOUS: &str = "0b11";

fn page(slug: &str, title: &str, floors: &str) -> String {
    format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: concept\ntitle: {title}\nmetadata:\n  floors: {floors}\n\
         updated_at: \"2026-11-22T09:15:04Z\"\n---\n# {title}\n\nMine.\n"
    )
}

#[tokio::test]
async fn a_page_that_two_parsers_read_differently_is_left_alone_and_the_others_go_on() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let write = |slug: &str, title: &str, floors: &str| {
        desk.world.vault.write(&format!("wiki/allotment/concepts/{slug}.md"), page(slug, title, floors));
    };
    write("plot-12", "Plot 12", AMBIGUOUS);
    write("stopcock", "Stopcock", "3");
    let run = desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    assert_eq!(desk.read("concepts/plot-12.md"), page("plot-12", "Plot 12", AMBIGUOUS));
    let other = desk.read("concepts/stopcock.md");
    assert!(other.contains("\nMine.\n") && other.contains("## From The lease\n"), "{other}");
    let lint = desk.wiki(&["lint", "allotment"]).await.expect(4);
    let finding = lint.out.lines().find(|line| line.contains("concepts/plot-12.md")).unwrap_or_default();
    for part in ["entry_invalid", "YAML parsers disagree", "put the value of `metadata` in quotes"] {
        assert!(finding.contains(part) || lint.out.contains(part), "{part}: {lint}");
    }
    assert_eq!(lint.out.matches("entry_invalid").count(), 1, "{lint}");
    // Everything else works beside it.
    let hits = desk.wiki(&["search", "allotment", "stopcock", "--json"]).await.expect(0).json();
    assert_eq!(hits[0]["slug"], "stopcock", "{hits:#}");
    desk.wiki(&["runs", "revert", &run]).await.expect(0);
    assert_eq!(desk.read("concepts/plot-12.md"), page("plot-12", "Plot 12", AMBIGUOUS));
    assert_eq!(desk.read("concepts/stopcock.md"), page("stopcock", "Stopcock", "3"));
    // Corrected, it is a page like any other.
    write("plot-12", "Plot 12", "\"0b11\"");
    desk.ingest("2026-11-20-lease").await;
    let corrected = desk.read("concepts/plot-12.md");
    assert!(corrected.contains("floors: \"0b11\"") && corrected.contains("## From The lease\n"), "{corrected}");
    desk.is_sound().await;
}

/// How to start a process that permissions bind, which they do not for root; `None` if this system cannot.
fn find_bound_prefix() -> Option<Vec<&'static str>> {
    if !rustix::process::geteuid().is_root() {
        return Some(Vec::new());
    }
    let bound = vec!["setpriv", "--bounding-set=-dac_override,-dac_read_search"];
    let probe = Command::new(bound[0]).args([bound[1], "true"]).output();
    probe.is_ok_and(|output| output.status.success()).then_some(bound)
}

#[tokio::test]
async fn a_folder_of_pages_that_is_read_only_stops_the_whole_run_and_is_named() {
    let Some(bound) = find_bound_prefix() else {
        eprintln!("root without `setpriv`: the read-only folder is not played");
        return;
    };
    let desk = Desk::new().await;
    {
        let worker = desk.world.worker().await;
        desk.wiki(&["init", "allotment"]).await.expect(0);
        worker.stop().await;
    }
    desk.world.vault.write("wiki/allotment/concepts/plot-12.md", page("plot-12", "Plot 12", "3"));
    let folder = desk.world.vault.path().join("wiki/allotment/concepts");
    let allow = |mode: u32| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    allow(0o555);
    let worker = desk.world.worker_with(&desk.steward.wrapped(&bound)).await;
    let document = desk.write("2026-11-20-lease.md", LEASE);
    let said = desk.wiki(&["ingest", "allotment", &document]).await;
    assert_ne!(said.code, Some(0), "{said}");
    for part in ["concepts/", "let Steward's user read and write it"] {
        assert!(said.all().contains(part), "no `{part}`: {said}");
    }
    assert_eq!(desk.read("concepts/plot-12.md"), page("plot-12", "Plot 12", "3"));
    assert!(!desk.has("summaries/summary-2026-11-20-lease.md"), "half done");
    assert!(!desk.read("_index.md").contains("summary-") && !desk.read("_log.md").contains("] ingest | "), "half done");
    desk.world.verify_chain().await;
    worker.stop().await;
    allow(0o755);
    // Once it is writable, the same document goes through.
    let _worker = desk.world.worker().await;
    desk.ingest("2026-11-20-lease").await;
    assert!(desk.read("concepts/plot-12.md").contains("## From The lease\n"));
    desk.is_sound().await;
}

#[tokio::test]
async fn a_full_disk_refuses_a_document_with_its_fix_and_takes_it_once_there_is_space() {
    let world = World::new().await.with_rare_ticks();
    let databases = world.folder.join("databases");
    std::fs::create_dir(&databases).unwrap();
    let world = world.set("STEWARD_STATE_DIR", databases.display());
    let document = world.folder.join("2026-11-20-lease.md");
    std::fs::write(&document, LEASE).unwrap();
    let worker = world.worker().await;
    world.run(&["wiki", "init", "allotment"]).await.expect(0);
    worker.stop().await;
    let vault = world.vault.path().to_owned();
    let cramped = Cramped::up(world, &vault, "768k").await;
    let wiki = || Files::of(&cramped.disk().join("wiki"));
    let before = wiki();
    cramped.fill();
    let arguments = ["wiki", "ingest", "allotment", document.to_str().unwrap()];
    let said = cramped.run(&arguments).await;
    assert_ne!(said.code, Some(0), "{said}");
    assert!(said.all().contains("space"), "it names no fix: {said}");
    assert_eq!(wiki().since(&before), Vec::<String>::new(), "half done: {said}");
    cramped.make_room();
    cramped.run(&arguments).await.expect(0);
    let page = std::fs::read_to_string(cramped.disk().join("wiki/allotment/concepts/plot-12.md")).unwrap();
    assert!(page.contains("## From The lease\n"), "{page}");
    cramped.run(&["wiki", "lint", "allotment"]).await.expect(0);
    let verified = cramped.run(&["audit", "verify"]).await.expect(0);
    assert!(verified.out.contains("the chain is intact"), "{verified}");
}
