//! What goes wrong around a run of a wiki, on the real binary: a verifier that does not answer, crashes while it checks, files that are
//! lost, and two runs on one page.

use crate::wiki_runs::{Desk, LEASE};
use crate::wiki_writer::{Calls, answer, call, checked_desk, good_turns, ingest, report, write};
use serde_json::json;
use steward_tests::clerk::{Clerk, Says, gate};
use steward_tests::wait;
use steward_tests::world::World;

#[tokio::test]
async fn a_verifier_that_refuses_for_a_while_is_asked_again_and_nothing_passes_meanwhile() {
    let writer = Clerk::start(|asked| answer(&good_turns(), asked)).await;
    let busy = Clerk::start(|asked| match asked.number {
        1 => Says::Status(429, Some("1".to_owned())),
        2 => Says::Status(503, None),
        _ => report(asked, "nothing of this"),
    })
    .await;
    let desk = checked_desk(&writer, &busy).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let done = ingest(&desk).await;
    assert_eq!(done["kind"], "committed", "{done:#}");
    assert!(busy.asked().len() >= 3 && writer.asked().len() == 3, "{}", busy.asked().len());
    desk.is_sound().await;
}

#[tokio::test]
async fn a_person_ends_a_run_that_waits_for_its_verifier() {
    let writer = Clerk::start(|asked| answer(&good_turns(), asked)).await;
    let down = Clerk::start(|_| Says::Status(503, None)).await;
    let desk = checked_desk(&writer, &down).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let document = desk.write("2026-11-20-lease.md", LEASE);
    let arguments = ["ingest", "allotment", document.as_str(), "--json"];
    let command = desk.wiki(&arguments);
    let reject = async {
        let run = wait::until("a run that is checked", async || {
            let runs = desk.wiki(&["runs", "list", "--json"]).await.expect(0).json();
            let run = runs.as_array().unwrap().iter().find(|run| run["state"] == "verifying")?;
            (!down.asked().is_empty()).then(|| run["run"].as_str().unwrap().to_owned())
        })
        .await;
        desk.wiki(&["runs", "reject", &run]).await.expect(0);
    };
    let (said, ()) = tokio::join!(command, reject);
    let done = said.expect(3).json();
    assert!(done[0]["ingested"]["message"].as_str().unwrap().contains("tester rejected it"), "{done:#}");
    assert!(!desk.has("entities/plot-12.md"));
    desk.is_sound().await;
}

#[tokio::test]
async fn a_crash_while_a_run_is_checked_pays_for_no_verdict_twice() {
    for point in ["before-verdict:1", "after-verdict:1"] {
        let writer = Clerk::start(|asked| answer(&good_turns(), asked)).await;
        let verifier = Clerk::start(|asked| report(asked, "nothing of this")).await;
        let desk = checked_desk(&writer, &verifier).await;
        let document = desk.write("2026-11-20-lease.md", LEASE);
        let workers = desk.ingest_over_crash(&document, point).await;
        assert_eq!(workers.len(), 2, "{point} was not met");
        assert_eq!((writer.asked().len(), verifier.asked().len()), (3, 1), "{point}");
        desk.is_sound().await;
    }
}

#[tokio::test]
async fn what_is_lost_during_a_run_ends_it_in_a_named_state_and_the_wiki_stays_sound() {
    for lost in ["state.db", "_manifest.json", "the folder of the run"] {
        let (open, closed) = gate();
        let writer =
            Clerk::start(move |asked| Says::Once(closed.clone(), Box::new(answer(&good_turns(), asked)))).await;
        let verifier = Clerk::start(|asked| report(asked, "nothing of this")).await;
        let desk = checked_desk(&writer, &verifier).await;
        // An earlier document, so that every file is there.
        let rules = desk.world.worker_with(&desk.steward.with("STEWARD_WIKI_CLERK", "rules")).await;
        desk.ingest(&desk.write("2026-11-19-fence.md", "# Fence\n\nThe fence is green and new.\n")).await;
        rules.stop().await;
        let _worker = desk.world.worker_with(&desk.steward).await;
        let document = desk.write("2026-11-20-lease.md", LEASE);
        let arguments = ["ingest", "allotment", document.as_str(), "--json"];
        let command = desk.wiki(&arguments);
        let lose = async {
            wait::until("the first turn", async || (!writer.asked().is_empty()).then_some(())).await;
            let own = desk.world.vault.path().join(".steward");
            match lost {
                "_manifest.json" => {
                    std::fs::remove_file(desk.world.vault.path().join("wiki/allotment/_manifest.json")).unwrap();
                }
                "the folder of the run" => std::fs::remove_dir_all(own.join("runs")).unwrap(),
                database => std::fs::remove_file(own.join(database)).unwrap(),
            }
            open.send(true).unwrap();
        };
        let (said, ()) = tokio::join!(command, lose);
        let done = said.json()[0]["ingested"].clone();
        let is_named = match lost {
            "the folder of the run" => done["kind"] == "refused" && done["message"].as_str().unwrap().contains("run"),
            _ => done["kind"] == "committed",
        };
        assert!(is_named, "{lost}: {done:#}");
        assert_eq!(desk.has("entities/plot-12.md"), done["kind"] == "committed", "{lost}");
        desk.is_sound().await;
    }
}

/// Without its ledger the guard lets no call go, and says so where a person looks.
#[tokio::test]
async fn a_run_that_the_guard_holds_says_why_and_a_person_may_end_it() {
    let (open, closed) = gate();
    let writer = Clerk::start(move |asked| Says::Once(closed.clone(), Box::new(answer(&good_turns(), asked)))).await;
    let verifier = Clerk::start(|asked| report(asked, "nothing of this")).await;
    let desk = checked_desk(&writer, &verifier).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let document = desk.write("2026-11-20-lease.md", LEASE);
    let arguments = ["ingest", "allotment", document.as_str(), "--json"];
    let lose = async {
        wait::until("the first turn", async || (!writer.asked().is_empty()).then_some(())).await;
        std::fs::remove_file(desk.world.vault.path().join(".steward/ledger.db")).unwrap();
        open.send(true).unwrap();
        wait::until("the run to say why it waits", async || {
            let runs = desk.wiki(&["runs", "list", "--json"]).await.expect(0).json();
            let what = runs[0]["what"].as_str()?.to_owned();
            (what.starts_with("it waits: ") && what.contains("ledger"))
                .then(|| runs[0]["run"].as_str().unwrap().to_owned())
        })
        .await
    };
    let run = tokio::select! {
        said = desk.wiki(&arguments) => panic!("it did not wait: {said}"),
        run = lose => run,
    };
    desk.wiki(&["runs", "reject", &run]).await.expect(0);
    assert!(!desk.has("entities/plot-12.md") && writer.asked().len() == 1);
    desk.is_sound().await;
}

#[tokio::test]
async fn two_runs_that_extend_two_sections_of_one_page_both_commit() {
    let (open, closed) = gate();
    let writer = Clerk::start(move |asked| {
        let text = asked.question["source"]["text"].as_str().unwrap_or_default();
        let section = if text.contains("fence") { "Fence" } else { "Gate" };
        let quote = format!("The {} is new.", section.to_lowercase());
        let content = |statement: &str| format!("{statement}[^1]\n\n[^1]: \"{quote}\"\n");
        let edit = json!({"slug": "plot-12", "old": format!("## {section}"), "new": content(&format!("## {section}\n\nThe {} is new.", section.to_lowercase()))});
        let turns: Vec<Calls> =
            vec![vec![write("summary", &format!("The {section}"), &content("It is new.")), call("edit_wiki_page", edit)]];
        Says::Once(closed.clone(), Box::new(answer(&turns, asked)))
    })
    .await;
    let world = World::new().await.asking(&writer);
    let world = world.set("STEWARD_WIKI_ALLOW_UNVERIFIED", "true").set("STEWARD_WIKI_VERIFIER", "rules");
    let desk = Desk::build(world.steward.clone(), world);
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let page = "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: Plot 12\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n\
        # Plot 12\n\n## Fence\n\nMine.\n\n## Gate\n\nMine too.\n";
    desk.world.vault.write("wiki/allotment/entities/plot-12.md", page);
    let fence = desk.write("2026-11-20-fence.md", "# Fence\n\nThe fence is new. It stands on Plot 12.\n");
    let gate = desk.write("2026-11-21-gate.md", "# Gate\n\nThe gate is new. It stands on Plot 12.\n");
    let (one, other) = (["ingest", "allotment", &fence, "--json"], ["ingest", "allotment", &gate, "--json"]);
    let begin = async {
        wait::until("both first turns", async || (writer.asked().len() == 2).then_some(())).await;
        open.send(true).unwrap();
    };
    let (one, other, ()) = tokio::join!(desk.wiki(&one), desk.wiki(&other), begin);
    for done in [one.expect(0).json(), other.expect(0).json()] {
        assert_eq!(done[0]["ingested"]["kind"], "committed", "{done:#}");
    }
    let page = desk.read("entities/plot-12.md");
    for part in ["The fence is new.[^c", "The gate is new.[^c", "Mine.", "Mine too."] {
        assert_eq!(page.matches(part).count(), 1, "{part}: {page}");
    }
    assert_eq!(writer.asked().len(), 4, "a run that is staged again pays for nothing");
    desk.is_sound().await;
}
