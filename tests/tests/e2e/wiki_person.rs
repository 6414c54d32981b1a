//! What a person does to a wiki by hand, on the real binary: preview an ingest, settle a dispute, confirm a page, replace a document, and
//! have the index rendered anew.

use crate::wiki_runs::{Desk, LEASE};
use serde_json::json;
use steward_tests::clerk::{Clerk, Says};
use steward_tests::files::Files;

const DISPUTE: &str = include_str!("../../../worker/example-wiki/documents/end-of-the-lease.md");
pub(crate) const OLD: &str = "c6107d23f";
pub(crate) const NEW: &str = "c4dc23754";

/// A wiki with the two documents of the example, and the page that sets them against each other.
pub(crate) async fn disputed() -> Desk {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let example = steward_tests::run::project().join("worker/example-wiki/documents");
    std::fs::create_dir_all(desk.world.vault.path().join("wiki/allotment/comparisons")).unwrap();
    std::fs::write(desk.world.vault.path().join("wiki/allotment/comparisons/end-of-the-lease.md"), DISPUTE).unwrap();
    for name in ["2024-03-02-lease.md", "2026-11-20-council-letter.md"] {
        desk.ingest(example.join(name).to_str().unwrap()).await;
    }
    worker.stop().await;
    desk
}

#[tokio::test]
async fn a_person_settles_a_dispute_and_takes_that_back() {
    let desk = disputed().await;
    let _worker = desk.world.worker().await;
    assert!(desk.read("overview.md").contains("[[end-of-the-lease|End of the lease]] against"));
    let page = desk.read("comparisons/end-of-the-lease.md");
    let claim = format!("end-of-the-lease#{OLD}");
    desk.wiki(&["settle", "allotment", &claim, "--keep", "c00000000"]).await.expect(3);
    desk.wiki(&["settle", "allotment", "end-of-the-lease", "--keep", NEW]).await.expect(2);
    assert_eq!(desk.read("comparisons/end-of-the-lease.md"), page);
    desk.wiki(&["settle", "allotment", &claim, "--keep", NEW]).await.expect(0);
    let settled = desk.read("comparisons/end-of-the-lease.md");
    assert!(!settled.contains(":::") && !settled.contains(OLD) && !settled.contains("contradicts"), "{settled}");
    assert!(
        settled.contains("it ends on 31 March 2029.[^c4dc23754]") && settled.contains("written by hand"),
        "{settled}"
    );
    assert!(!desk.read("overview.md").contains("End of the lease]] against"));
    let runs = desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json();
    let run = runs.as_array().unwrap().last().unwrap();
    assert_eq!(run["run_type"], "manual", "{runs:#}");
    let shown = desk.wiki(&["runs", "show", run["run"].as_str().unwrap()]).await.expect(0).out;
    assert!(shown.contains(&format!("removed end-of-the-lease#{OLD}")), "{shown}");
    desk.wiki(&["runs", "revert", run["run"].as_str().unwrap()]).await.expect(0);
    assert_eq!(desk.read("comparisons/end-of-the-lease.md"), page);
    desk.is_sound().await;
}

#[tokio::test]
async fn an_index_that_shows_other_pages_is_rendered_anew() {
    let desk = disputed().await;
    let _worker = desk.world.worker().await;
    std::fs::remove_file(desk.world.vault.path().join("wiki/allotment/concepts/shed.md")).unwrap();
    desk.edit("_index.md", |index| format!("{index}\nMine.\n"));
    let found = desk.wiki(&["lint", "allotment"]).await;
    assert!(found.out.contains("index_stale"), "{found}");
    let fixed = desk.wiki(&["lint", "allotment", "--fix"]).await;
    assert!(!fixed.out.contains("index_stale") && fixed.err.contains(".trash/"), "{fixed}");
    assert!(
        !desk.read("_index.md").contains("Mine.") && desk.read("_log.md").contains("lint | Rendered the index anew")
    );
    let log = desk.read("_log.md");
    let again = desk.wiki(&["lint", "allotment", "--fix"]).await;
    assert!(again.err.contains("shows the pages as they are"), "{again}");
    assert_eq!(desk.read("_log.md"), log);
    // A folder elsewhere is only checked.
    let folder = desk.world.folder.join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(desk.world.vault.path().join("wiki/allotment/KNOWLEDGE.md"), folder.join("KNOWLEDGE.md")).unwrap();
    desk.wiki(&["lint", folder.to_str().unwrap(), "--fix"]).await.expect(2);
}

#[tokio::test]
async fn a_preview_says_what_an_ingest_may_take_and_does_nothing() {
    let desk = disputed().await;
    let before = Files::of(desk.world.vault.path());
    let document = desk.write("2026-11-20-other-lease.md", LEASE);
    let rules = desk.wiki(&["ingest", "allotment", "--dry-run", &document]).await.expect(0).out;
    assert!(rules.contains("1 part; fixed rules make its pages, which costs nothing"), "{rules}");
    let clerk = Clerk::start(|_| Says::Text("I am done.".to_owned())).await;
    let steward = desk
        .steward
        .with("STEWARD_WIKI_CLERK", "openai")
        .with("STEWARD_WIKI_CLERK_BASE_URL", &clerk.url)
        .with("STEWARD_WIKI_CLERK_MODEL", "scripted")
        .with("STEWARD_WIKI_PRICE_INPUT", "2")
        .with("STEWARD_WIKI_PRICE_OUTPUT", "8.5");
    let preview = async || steward.run(&["wiki", "ingest", "allotment", "--dry-run", &document, "--json"]).await;
    let shown = preview().await.expect(0).json();
    assert_eq!((&shown[0]["limits"]["calls"], &shown[0]["expected"]), (&json!(40), &json!(null)), "{shown:#}");
    assert_eq!(shown[0]["limits"]["cost"], json!(0.825), "200,000 at 2 and 50,000 at 8.5 for a million");
    let large = desk.write("2026-11-20-large.md", "A word of it. ".repeat(32_000));
    let refused = steward.run(&["wiki", "ingest", "allotment", "--dry-run", &large]).await.expect(3).out;
    assert!(refused.contains("too_large"), "{refused}");
    assert_eq!(clerk.asked().len(), 0);
    assert_eq!(Files::of(desk.world.vault.path()).since_but_events(&before), Vec::<String>::new());
    // What a run really took is what the next one is expected to take.
    let _worker = desk.world.worker_with(&steward).await;
    steward.run(&["wiki", "ingest", "allotment", &document]).await.expect(3);
    let shown = preview().await.expect(0).json();
    let expected = &shown[0]["expected"];
    assert_eq!(expected["calls"], json!(clerk.asked().len()), "{shown:#}");
    assert!(expected["input_tokens"].as_u64().unwrap() > 0, "{shown:#}");
}

#[tokio::test]
async fn a_newer_document_replaces_an_older_one_and_what_rests_on_the_old_one_is_named() {
    let desk = disputed().await;
    let _worker = desk.world.worker().await;
    let newer = desk.write("2027-01-10-lease.md", "# The lease\n\nThe lease of plot 12 ends on 30 June 2030.\n");
    let replace = async |old: &str, documents: &[&str]| {
        let arguments = ["ingest", "allotment", "--supersedes", old];
        desk.wiki(&[&arguments, documents].concat()).await
    };
    let unknown = replace("2024-lease", &[&newer]).await.expect(1).err;
    assert!(unknown.contains("no source `2024-lease`") && unknown.contains("wiki sources"), "{unknown}");
    replace("2024-03-02-lease", &[&newer, &newer.replace("lease.md", "none.md")]).await.expect(1);
    let sources = async || desk.wiki(&["sources", "allotment", "--json"]).await.expect(0).json();
    let before = sources().await;
    assert_eq!(before.as_array().unwrap().len(), 2, "{before:#}");
    let cited = before[0]["pages"].as_u64().unwrap();
    let done = replace("2024-03-02-lease", &[&newer]).await.expect(0).out;
    assert!(done.contains(&format!("{cited} pages rest on `2024-03-02-lease`")), "{done}");
    let after = sources().await;
    assert_eq!(after[0]["superseded_by"], "2027-01-10-lease", "{after:#}");
    assert_eq!((&after[2]["id"], &after[2]["state"]), (&json!("2027-01-10-lease"), &json!("ingested")), "{after:#}");
    let table = desk.wiki(&["sources", "allotment"]).await.expect(0).out;
    assert!(table.contains("replaced by 2027-01-10-lease"), "{table}");
    let lint = desk.wiki(&["lint", "allotment"]).await.out;
    assert!(lint.contains("source_superseded") && lint.contains("which `2027-01-10-lease` replaces"), "{lint}");
    assert!(desk.read("_log.md").contains("manual | 2027-01-10-lease replaces 2024-03-02-lease"));
    // Said again, nothing is changed.
    let log = desk.read("_log.md");
    replace("2024-03-02-lease", &["2027-01-10-lease"]).await.expect(0);
    assert_eq!(desk.read("_log.md"), log);
    replace("2027-01-10-lease", &["2027-01-10-lease"]).await.expect(3);
    // Said the other way round, the first note goes.
    replace("2027-01-10-lease", &["2024-03-02-lease"]).await.expect(0);
    let turned = sources().await;
    assert_eq!((&turned[0]["superseded_by"], &turned[2]["superseded_by"]), (&json!(null), &json!("2024-03-02-lease")));
    desk.is_sound().await;
}

#[tokio::test]
async fn a_page_that_a_person_confirms_is_not_stale_and_that_goes_back() {
    let desk = disputed().await;
    let _worker = desk.world.worker().await;
    desk.edit("_sources.json", |text| text.replace("\"captured_at\": \"20", "\"captured_at\": \"19"));
    let stale = async |page: &str| {
        let found = desk.wiki(&["lint", "allotment", "--json"]).await.json();
        let is_stale = |it: &serde_json::Value| it["code"] == "stale" && it["file"].as_str().unwrap().contains(page);
        found["findings"].as_array().unwrap().iter().any(is_stale)
    };
    let page = desk.read("concepts/shed.md");
    assert!(stale("concepts/shed.md").await);
    desk.wiki(&["lint", "allotment", "--confirm", "nothing"]).await.expect(3);
    let confirmed = desk.wiki(&["lint", "allotment", "--confirm", "shed"]).await;
    assert!(confirmed.err.contains("the page is confirmed"), "{confirmed}");
    assert!(!stale("concepts/shed.md").await && stale("summaries/").await);
    let runs = desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json();
    let confirmed = runs.as_array().unwrap().iter().rfind(|run| run["run_type"] == "manual").unwrap();
    desk.wiki(&["runs", "revert", confirmed["run"].as_str().unwrap()]).await.expect(0);
    assert_eq!(desk.read("concepts/shed.md"), page);
    desk.is_sound().await;
}

#[tokio::test]
async fn a_changed_source_is_reported_with_all_that_rests_on_it() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    desk.edit("sources/2026-11-20-lease.md", |text| text.replace("31 March 2027", "31 March 2030"));
    let found = desk.wiki(&["lint", "allotment", "--json"]).await.expect(4).json();
    let findings = found["findings"].as_array().unwrap();
    let of = |code: &str| findings.iter().filter(|it| it["code"] == code).collect::<Vec<_>>();
    let [changed] = of("source_mutated")[..] else { panic!("{found:#}") };
    let problem = changed["problem"].as_str().unwrap();
    assert!(problem.contains("claims on 4 pages rest on it; 2 quotes of them not in it any more"), "{problem}");
    // The pages that quote the changed words, and no other.
    let mut drifted: Vec<&str> = of("source_drifted").iter().map(|it| it["file"].as_str().unwrap()).collect();
    drifted.sort_unstable();
    assert_eq!(drifted, ["concepts/plot-12.md", "summaries/summary-2026-11-20-lease.md"], "{found:#}");
    std::fs::remove_file(desk.world.vault.path().join("wiki/allotment/sources/2026-11-20-lease.md")).unwrap();
    let found = desk.wiki(&["lint", "allotment"]).await.expect(4).out;
    assert!(found.contains("is not there: ") && found.contains(" pages rest on it: put the file back"), "{found}");
}
