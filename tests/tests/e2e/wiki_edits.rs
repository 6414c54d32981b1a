//! A person edits, deletes or replaces a page while a run is about to change it, on the real binary.
//!
//! With fixed rules the process is held at points of the commit itself (SIGSTOP). With a model the page changes while the model
//! writes, or while another one checks. The page is never overwritten: the run is staged again, or ends in a named state.

use crate::wiki_runs::{Desk, LEASE};
use crate::wiki_writer::{Calls, QUOTE, answer, call, checked_desk, ingest, quoted, report, write};
use chrono::Utc;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::PathBuf;
use steward_tests::clerk::{Asked, Clerk, Says, gate};
use steward_tests::run;
use steward_tests::wait;
use steward_tests::world::is_frozen;
use strum::IntoEnumIterator as _;

const PAGE: &str = "entities/plot-12.md";
const WORDS: &str = "Mine, written meanwhile.";

/// What a person does to the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
enum PersonEdit {
    /// Adds a line below the title.
    Add,
    Delete,
    /// A folder takes its place, with a file in it.
    Replace,
}

fn find_file(desk: &Desk, file: &str) -> PathBuf {
    desk.world.vault.path().join("wiki/allotment").join(file)
}

impl PersonEdit {
    fn carry_out(self, desk: &Desk) {
        match self {
            Self::Add => desk.edit(PAGE, |text| text.replace("# Plot 12\n", &format!("# Plot 12\n\n{WORDS}\n"))),
            Self::Delete => std::fs::remove_file(find_file(desk, PAGE)).unwrap(),
            Self::Replace => {
                std::fs::remove_file(find_file(desk, PAGE)).unwrap();
                std::fs::create_dir(find_file(desk, PAGE)).unwrap();
                std::fs::write(find_file(desk, PAGE).join("note.txt"), WORDS).unwrap();
            }
        }
    }

    /// Checks that what the person did still stands.
    fn stands(self, desk: &Desk, what: &str) {
        match self {
            Self::Add => {
                let page = desk.read(PAGE);
                assert_eq!((page.matches(WORDS).count(), page.matches("\nMine.\n").count()), (1, 1), "{what}: {page}");
            }
            Self::Delete => assert!(!desk.has(PAGE), "{what}: the page is back"),
            Self::Replace => assert_eq!(desk.read(&format!("{PAGE}/note.txt")), WORDS, "{what}"),
        }
    }
}

/// Writes the page as a person does, over whatever is there.
fn write_page(desk: &Desk) {
    if find_file(desk, PAGE).is_dir() {
        std::fs::remove_dir_all(find_file(desk, PAGE)).unwrap();
    }
    let page = "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: Plot 12\n\
        updated_at: \"2026-11-22T09:15:04Z\"\n---\n# Plot 12\n\nMine.\n";
    desk.world.vault.write(&format!("wiki/allotment/{PAGE}"), page);
}

/// Registers a document as a source, without making pages of it.
async fn add_source(desk: &Desk, name: &str, text: &str) -> String {
    let path = format!("sources/{name}");
    desk.world.vault.write(&format!("wiki/allotment/{path}"), text);
    let request = json!({"kind": "add_source", "path": path, "upload": null});
    let input = json!({"wiki": "allotment", "by": "ann", "at": Utc::now(), "request": request});
    let added = desk.world.begin_as(&format!("add-{name}"), "WikiRunWorkflow", &input).await.result().await;
    added["source"]["id"].as_str().unwrap().to_owned()
}

/// Ingests a source while a person acts at a point of the commit. Returns the outcome.
async fn ingest_beside(desk: &Desk, source: &str, point: &str, act: impl Fn()) -> Value {
    let mut worker = desk.world.worker_with(&desk.steward.with("STEWARD_CRASH_AT", format!("{point}:stop"))).await;
    let arguments = ["ingest", "allotment", source, "--json"];
    let act = async {
        wait::until("the commit to be held", async || {
            assert!(worker.status().is_none(), "{point}: {}", worker.err());
            is_frozen(worker.pid()).then_some(())
        })
        .await;
        act();
        worker.send(Signal::CONT);
    };
    let (said, ()) = tokio::join!(desk.wiki(&arguments), act);
    worker.stop().await;
    said.json()[0]["ingested"].clone()
}

/// The state that a run ended in; a refusal must name it.
fn is_named(done: &Value) -> bool {
    let message = done["message"].as_str().unwrap_or_default();
    done["kind"] == "committed" || done["kind"] == "refused" && message.contains("stale_plan")
}

#[tokio::test]
async fn a_page_that_a_person_changes_during_a_commit_is_never_overwritten() {
    let desk = Desk::new().await;
    {
        let worker = desk.world.worker().await;
        desk.wiki(&["init", "allotment"]).await.expect(0);
        worker.stop().await;
    }
    let points = ["before-staging:1", "after-staging-content:2", "before-swap:1", "after-journal:1"];
    let mut number = 0;
    for point in run::choose_cases(points.to_vec()) {
        for edit in PersonEdit::iter() {
            number += 1;
            let what = format!("{edit:?} at {point}");
            write_page(&desk);
            let worker = desk.world.worker().await;
            desk.wiki(&["lint", "allotment", "--fix"]).await;
            let text = format!("# Letter {number}\n\nPlot 12 has fence number {number}. Plot 12 lies by the river.\n");
            let source = add_source(&desk, &format!("letter-{number}.md"), &text).await;
            worker.stop().await;
            let done = ingest_beside(&desk, &source, point, || edit.carry_out(&desk)).await;
            assert!(is_named(&done), "{what}: {done:#}");
            edit.stands(&desk, &what);
            if edit == PersonEdit::Add {
                assert!(desk.read(PAGE).contains(&format!("## From Letter {number}\n")), "{what}: {done:#}");
            }
            let worker = desk.world.worker().await;
            // The index and the overview show a page that a person removed until they are rendered anew.
            desk.wiki(&["lint", "allotment", "--fix"]).await.expect(0);
            desk.is_sound().await;
            if done["kind"] == "committed" {
                let run = done["run"].as_str().unwrap();
                desk.wiki(&["runs", "revert", run, "--keep-edited"]).await.expect(0);
                edit.stands(&desk, &what);
                desk.is_sound().await;
            }
            worker.stop().await;
        }
    }
}

#[tokio::test]
async fn a_name_that_a_person_takes_during_a_commit_is_left_to_them() {
    let desk = Desk::new().await;
    {
        let worker = desk.world.worker().await;
        desk.wiki(&["init", "allotment"]).await.expect(0);
        worker.stop().await;
    }
    for (number, is_folder) in [(1, false), (2, true)] {
        let worker = desk.world.worker().await;
        let text = format!("# Letter {number}\n\nA stopcock{number} is a valve that shuts off the water.\n");
        let source = add_source(&desk, &format!("letter-{number}.md"), &text).await;
        worker.stop().await;
        let file = format!("concepts/stopcock{number}.md");
        let taken = find_file(&desk, &file);
        let take = || {
            std::fs::create_dir_all(taken.parent().unwrap()).unwrap();
            match is_folder {
                true => std::fs::create_dir(&taken).unwrap(),
                false => std::fs::write(&taken, "# A note of mine\n").unwrap(),
            }
        };
        let done = ingest_beside(&desk, &source, "after-journal:1", take).await;
        assert_eq!(done["kind"], "committed", "{file}: {done:#}");
        assert_eq!(taken.is_dir(), is_folder, "{file}");
        assert!(is_folder || std::fs::read_to_string(&taken).unwrap() == "# A note of mine\n", "{file}");
        assert!(!done["pages"].to_string().contains(&file), "{done:#}");
        let worker = desk.world.worker().await;
        desk.is_sound().await;
        worker.stop().await;
    }
}

/// A model that extends the page, and makes a summary.
fn extend(asked: &Asked) -> Says {
    let content = |heading: &str| format!("{heading}\n\nIts lease ends in 2027.[^1]\n\n[^1]: \"{QUOTE}\"\n");
    let edit = json!({"slug": "plot-12", "old": "Mine.", "new": content("Mine.\n\n## The lease")});
    let turns: Vec<Calls> = vec![vec![
        write("summary", "The lease", &quoted("The lease of plot 12 ends in 2027.")),
        call("edit_wiki_page", edit),
    ]];
    answer(&turns, asked)
}

#[tokio::test]
async fn a_page_that_a_person_changes_while_models_write_and_check_is_never_overwritten() {
    let moments = ["while it is written", "while it is checked"];
    let cases: Vec<_> = PersonEdit::iter().flat_map(|edit| moments.map(|moment| (edit, moment))).collect();
    for (edit, moment) in run::choose_cases(cases) {
        let what = format!("{edit:?} {moment}");
        let is_written = moment == moments[0];
        let (open, closed) = gate();
        let (held, free) = (closed.clone(), closed);
        let writer = Clerk::start(move |asked| match is_written && asked.number == 2 {
            true => Says::Once(held.clone(), Box::new(extend(asked))),
            false => extend(asked),
        })
        .await;
        let verifier = Clerk::start(move |asked| match is_written {
            true => report(asked, "nothing of this"),
            false => Says::Once(free.clone(), Box::new(report(asked, "nothing of this"))),
        })
        .await;
        let desk = checked_desk(&writer, &verifier).await;
        write_page(&desk);
        let _worker = desk.world.worker_with(&desk.steward).await;
        let act = async {
            let is_held = || if is_written { writer.asked().len() == 2 } else { !verifier.asked().is_empty() };
            wait::until("the model to be held", async || is_held().then_some(())).await;
            edit.carry_out(&desk);
            open.send(true).unwrap();
        };
        let (done, ()) = tokio::join!(ingest(&desk), act);
        let expected = if edit == PersonEdit::Add { "committed" } else { "refused" };
        assert!(is_named(&done) && done["kind"] == expected, "{what}: {done:#}");
        edit.stands(&desk, &what);
        assert_eq!(desk.has("summaries/summary-2026-11-20-lease.md"), expected == "committed", "{what}");
        assert!(edit != PersonEdit::Add || desk.read(PAGE).contains("Its lease ends in 2027.[^c"), "{what}");
        let runs = desk.wiki(&["runs", "list", "--json"]).await.expect(0).json();
        let state = if expected == "committed" { "committed" } else { "rejected" };
        assert_eq!(runs[0]["state"], state, "{what}: {runs:#}");
        assert_eq!(writer.asked().len(), 2, "{what}: nothing is paid twice");
        desk.wiki(&["lint", "allotment", "--fix"]).await.expect(0);
        desk.is_sound().await;
    }
}

#[tokio::test]
async fn two_documents_that_extend_one_page_by_rules_at_once_both_stay() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    write_page(&desk);
    let fence = desk.write("2026-11-20-fence.md", "# Fence\n\nThe fence of Plot 12 is new and green.\n");
    let lease = desk.write("2026-11-21-lease.md", LEASE);
    let (one, other) = (["ingest", "allotment", &fence, "--json"], ["ingest", "allotment", &lease, "--json"]);
    let (one, other) = tokio::join!(desk.wiki(&one), desk.wiki(&other));
    for done in [one.expect(0).json(), other.expect(0).json()] {
        assert_eq!(done[0]["ingested"]["kind"], "committed", "{done:#}");
    }
    let page = desk.read(PAGE);
    for part in ["## From Fence\n", "## From The lease\n", "\nMine.\n"] {
        assert_eq!(page.matches(part).count(), 1, "{part}: {page}");
    }
    desk.is_sound().await;
}
