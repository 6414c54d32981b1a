//! `steward wiki ingest` and `runs` on the real binary: documents become pages with quotes, and everything goes back.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use steward_tests::pdf::render_pdf;
use steward_tests::run;
use steward_tests::steward::{Running, Said, Steward};
use steward_tests::wait;
use steward_tests::world::World;

pub(crate) const LEASE: &str = "# The lease\n\nThe lease of Plot 12 ends on 31 March 2027. Plot 12 lies by the river. Who pays for Plot 12?\n\n\
    ## Water\n\nA stopcock is a valve that shuts off the water.\n";
const LETTER: &str = "# Letter of the council\n\nThe council extends the lease of Plot 12 to 31 March 2029. Plot 12 keeps its \
    water. The council thanks the holder of Plot 12.\n";
const TAP: &str = "# The tap\n\nA stopcock is a tap that a plumber may turn. A stopcock is closed in winter.\n";
const WIKI: &str = "wiki/allotment";

/// A wiki in a vault, and documents beside it.
pub(crate) struct Desk {
    pub(crate) world: World,
    pub(crate) steward: Steward,
    documents: PathBuf,
}

impl Desk {
    /// With a Temporal server of the test, and no worker yet.
    pub(crate) async fn new() -> Self {
        let world = World::new().await;
        Self::build(world.steward.clone(), world)
    }

    /// Without any server: each command starts its own.
    async fn alone() -> Self {
        let world = World::new().await;
        // Each command starts a server of its own, on any free port.
        let steward = world.without_server();
        let steward = steward.with("STEWARD_TEMPORAL_PORT", 0).with("STEWARD_TEMPORAL_UI_PORT", 0);
        Self::build(steward, world)
    }

    pub(crate) fn build(steward: Steward, world: World) -> Self {
        let documents = world.vault.path().with_file_name("documents");
        std::fs::create_dir(&documents).unwrap();
        Self { world, steward, documents }
    }

    /// Ingests a document with a worker that dies at a point. If it does, a second one goes on. Returns the workers.
    pub(crate) async fn ingest_over_crash(&self, document: &str, point: &str) -> Vec<Running> {
        let mut workers = vec![self.world.worker_with(&self.steward.with("STEWARD_CRASH_AT", point)).await];
        let arguments = ["ingest", "allotment", document, "--json"];
        let command = self.wiki(&arguments);
        tokio::pin!(command);
        let said = loop {
            tokio::select! {
                said = &mut command => break said,
                () = wait::a_moment(Duration::from_millis(50)) => {}
            }
            if workers.len() == 1 && workers[0].status().is_some() {
                workers.push(self.world.worker_with(&self.steward).await);
            }
        };
        let done = said.expect(0).json();
        assert_eq!(done[0]["ingested"]["kind"], "committed", "{point}: {done:#}");
        workers
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let file = self.documents.join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    pub(crate) fn read(&self, file: &str) -> String {
        let path = self.world.vault.path().join(WIKI).join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub(crate) fn edit(&self, file: &str, change: impl FnOnce(String) -> String) {
        let text = change(self.read(file));
        std::fs::write(self.world.vault.path().join(WIKI).join(file), text).unwrap();
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.world.vault.path().join(WIKI).join(file).exists()
    }

    pub(crate) async fn wiki(&self, arguments: &[&str]) -> Said {
        self.steward.run(&[&["wiki"], arguments].concat()).await
    }

    /// Ingests a document, which must be committed; returns the last 8 characters of the run.
    pub(crate) async fn ingest(&self, document: &str) -> String {
        let done = self.wiki(&["ingest", "allotment", document, "--json"]).await.expect(0).json();
        let ingested = &done[0]["ingested"];
        assert_eq!(ingested["kind"], "committed", "{done:#}");
        ingested["run"].as_str().unwrap().rsplit('-').next().unwrap().to_owned()
    }

    pub(crate) async fn is_sound(&self) {
        self.wiki(&["lint", "allotment"]).await.expect(0);
        let verified = self.steward.run(&["audit", "verify"]).await.expect(0);
        assert!(verified.out.contains("the chain is intact"), "{verified}");
    }
}

#[tokio::test]
async fn documents_become_pages_without_any_server() {
    let desk = Desk::alone().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let run = desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    desk.wiki(&["runs", "revert", &run]).await.expect(0);
    assert!(!desk.has("concepts/plot-12.md"));
    desk.is_sound().await;
}

#[tokio::test]
async fn documents_become_pages_are_explained_and_go_back() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let (lease, letter) = (desk.write("2026-11-20-lease.md", LEASE), desk.write("letter.txt", LETTER));
    let first = desk.ingest(&lease).await;
    let second = desk.ingest(&letter).await;
    assert!(desk.read("concepts/plot-12.md").contains("## From The lease\n"));
    assert_eq!(desk.read("sources/2026-11-20-lease.md"), LEASE);
    desk.is_sound().await;
    let again =
        desk.wiki(&["ingest", "allotment", &lease, "2026-11-20-lease", "pending", "--json"]).await.expect(0).json();
    let kinds: Vec<&Value> = again.as_array().unwrap().iter().map(|one| &one["ingested"]["kind"]).collect();
    assert_eq!(kinds, [&json!("nothing"), &json!("nothing")], "{again:#}");
    let why = desk.wiki(&["why", "allotment", "stopcock", "--json"]).await.expect(0).json();
    let claim = &why["claims"][0];
    let (anchor, event) = (&claim["anchors"][0], &claim["history"][0]);
    assert_eq!((&why["match_type"], &anchor["verified_against_source"]), (&json!("page"), &json!(true)), "{why:#}");
    let offset = usize::try_from(anchor["offset"].as_u64().unwrap()).unwrap();
    assert!(LEASE[offset..].starts_with(anchor["quote"].as_str().unwrap()));
    assert!(event["run"].as_str().unwrap().ends_with(&first) && event["change"] == "asserted", "{why:#}");
    let named = desk.wiki(&["why", "allotment", claim["claim"].as_str().unwrap()]).await.expect(0).out;
    assert!(named.contains("stands there at byte") && named.contains(&first), "{named}");
    let hits = desk.wiki(&["search", "allotment", "STOPCOCK", "valve", "--json"]).await.expect(0).json();
    assert_eq!(hits[0]["slug"], "stopcock", "{hits:#}");
    let shown = desk.wiki(&["runs", "show", &second]).await.expect(0).out;
    assert!(shown.contains("concepts/plot-12.md (changed)") && shown.contains("+ ## From letter"), "{shown}");
    // The log also names what changed no page.
    let log = desk.read("_log.md");
    let added = log.lines().find_map(|line| line.strip_prefix("- run: ")).unwrap().split(',').next().unwrap();
    let other = desk.wiki(&["runs", "show", added]).await.expect(1);
    assert!(other.err.contains("changed no page; its record is event/steward-wiki-"), "{other}");
    // A person writes on the page; the first run goes back below the second one.
    desk.edit("concepts/plot-12.md", |text| text.replace("# Plot 12\n", "# Plot 12\n\nMine.\n"));
    desk.wiki(&["runs", "revert", &first]).await.expect(0);
    let page = desk.read("concepts/plot-12.md");
    assert!(page.contains("\nMine.\n") && page.contains("## From letter\n") && !page.contains("The lease"), "{page}");
    assert!(!desk.has("concepts/stopcock.md") && !desk.has("summaries/summary-2026-11-20-lease.md"));
    desk.is_sound().await;
    let refused = desk.wiki(&["runs", "revert", &first]).await.expect(3);
    assert!(refused.out.contains("took it back already"), "{refused}");
    let listed = desk.wiki(&["runs", "list"]).await.expect(0).out;
    assert!(listed.contains("taken back by") && listed.contains("rollback"), "{listed}");
    // What was taken back can be ingested again.
    desk.ingest("2026-11-20-lease").await;
    desk.is_sound().await;
}

/// Real PDF files of a browser and of an office program are built otherwise; this one has two pages of plain text.
fn lease_pdf() -> Vec<u8> {
    let pages: [&[&str]; 2] = [
        &["The lease of Plot 12 ends on 31 March 2027.", "Plot 12 lies by the river."],
        &["A stopcock is a valve that shuts off the water."],
    ];
    render_pdf(&pages)
}

#[tokio::test]
async fn pdf_and_html_become_pages_whose_quotes_stand_in_the_kept_text() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let html = "<html><head><title>Letter of the council</title></head><body><nav>Home</nav><article><h1>Letter</h1>\
        <p>The council extends the lease of <b>Plot 12</b> to 31 March 2029.</p><script>alert(1)</script></article></body></html>";
    desk.ingest(&desk.write("2026-11-20-lease.pdf", lease_pdf())).await;
    desk.ingest(&desk.write("2026-11-21-letter.html", html)).await;
    let kept = desk.read("_text/2026-11-20-lease.txt");
    assert!(kept.starts_with("rustium-pdf ") && kept.contains('\u{c}'), "{kept}");
    for (page, quote) in [("stopcock", "A stopcock is a valve"), ("summary-2026-11-21-letter", "The council extends")] {
        let why = desk.wiki(&["why", "allotment", page, "--json"]).await.expect(0).json();
        let anchor = &why["claims"][0]["anchors"][0];
        let (source, offset) = (anchor["source"].as_str().unwrap(), anchor["offset"].as_u64().unwrap());
        let text = desk.read(&format!("_text/{source}.txt"));
        assert!(text[usize::try_from(offset).unwrap()..].starts_with(quote), "{why:#}");
    }
    assert!(desk.read("_sources.json").contains("\"title\": \"Letter of the council\""));
    desk.is_sound().await;
    // What cannot be read is kept and named, and the worker goes on.
    for (name, bytes, reason) in [
        ("scan.pdf", render_pdf(&[&[]]), "holds no text"),
        ("broken.pdf", b"%PDF-1.7\n1 0 obj\n<< /Length 99999999999 >>".to_vec(), "text_unreadable"),
        ("empty.html", b"<html><body></body></html>".to_vec(), "no page:"),
    ] {
        let said = desk.wiki(&["ingest", "allotment", &desk.write(name, bytes)]).await.expect(0).out;
        assert!(said.contains(reason), "{said}");
    }
    // A kept text that somebody edited proves nothing.
    desk.edit("_text/2026-11-20-lease.txt", |text| text.replace("31 March 2027", "31 March 2030"));
    let why = desk.wiki(&["why", "allotment", "plot-12"]).await.expect(4).out;
    assert!(why.contains("NOT VERIFIED: source_mutated"), "{why}");
}

#[tokio::test]
async fn a_search_finds_the_same_with_and_without_the_index() {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.ingest(&desk.write("lease.md", LEASE)).await;
    desk.ingest(&desk.write("letter.txt", LETTER)).await;
    desk.edit("concepts/stopcock.md", |text| text.replace("# Stopcock\n", "# Stopcock\n\nBehind the shed.\n"));
    let folder = desk.world.vault.path().join(WIKI).display().to_string();
    let elsewhere = desk.documents.join("copy").display().to_string();
    assert!(std::process::Command::new("cp").args(["-r", &folder, &elsewhere]).status().unwrap().success());
    for query in ["shed", "lease council", "PLOT 12", "nothing-of-this"] {
        let indexed = desk.wiki(&["search", "allotment", query, "--json"]).await.expect(0).json();
        let read = desk.wiki(&["search", &elsewhere, query, "--json"]).await.expect(0).json();
        assert_eq!(indexed, read, "{query}");
        let named = desk.wiki(&["why", "allotment", query, "--json"]).await.json();
        let found = desk.wiki(&["why", &elsewhere, query, "--json"]).await.json();
        assert_eq!(named["match_type"], found["match_type"], "{query}");
    }
    let by_name = desk.wiki(&["grep", "allotment", "stop(cock|valve) is", "--json"]).await.expect(0).json();
    let by_folder = desk.wiki(&["grep", &elsewhere, "STOP(cock|valve) IS", "-i", "--json"]).await.expect(0).json();
    assert_eq!(by_name, by_folder);
    let shown = desk.wiki(&["grep", "allotment", "A stopcock", "--path", "sources/**", "-C", "1"]).await.expect(0).out;
    let number = LEASE.lines().position(|line| line.starts_with("A stopcock")).unwrap();
    let source =
        by_name["hits"].as_array().unwrap().iter().find(|hit| hit["path"].as_str().unwrap().starts_with("sources/"));
    let path = source.unwrap()["path"].as_str().unwrap();
    assert!(shown.contains(&format!("{path}-{number}- \n{path}:{}: A stopcock", number + 1)), "{shown}");
    let refused = desk.wiki(&["grep", "allotment", "a("]).await.expect(2);
    assert!(refused.err.contains("PATTERN: unclosed group"), "{refused}");
    let none = desk.wiki(&["grep", "allotment", "nothing.of.this"]).await.expect(0).out;
    assert!(none.starts_with("No line of ") && none.contains("files matches."), "{none}");
    let checked = desk.steward.run(&["index", "check"]).await.expect(0);
    assert!(!checked.out.contains("wiki/"), "{checked}");
    drop(worker);
}

#[tokio::test]
async fn bad_documents_are_refused_alone_and_nothing_is_lost() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    for (name, bytes) in [
        ("a.md", LEASE.as_bytes()),
        ("a.txt", b"Other words of the same name."),
        ("letter.docx", b"PK"),
        ("latin.txt", b"K\xe4se und Brot."),
        ("-rf.md", b"A name like an option."),
        (".hidden.md", b"Nobody sees this."),
        ("KNOWLEDGE.md", b"---\nschema: knowledge.workspace/v1\nname: evil\n---\nOrders."),
    ] {
        desk.write(name, bytes);
    }
    std::os::unix::fs::symlink("/etc/passwd", desk.documents.join("link.md")).unwrap();
    let all = desk.documents.display().to_string();
    let done = desk.wiki(&["ingest", "allotment", &all, "--json"]).await.expect(3).json();
    let outcome = |name: &str| {
        let all = done.as_array().unwrap();
        let one = all.iter().find(|one| one["document"].as_str().unwrap().ends_with(name)).unwrap_or(&Value::Null);
        let refusal = one["added"]["message"].as_str().or(one["added"]["notes"][0].as_str());
        let kind = one["ingested"]["kind"].as_str().unwrap_or_default();
        format!("{kind}{}", refusal.unwrap_or_default())
    };
    assert_eq!(outcome("/a.md"), "committed");
    assert!(outcome("/a.txt").starts_with("duplicate_id"), "{done:#}");
    assert!(outcome("/letter.docx").starts_with("unsupported_type"), "{done:#}");
    assert!(outcome("/latin.txt").starts_with("not_text"), "{done:#}");
    assert_eq!(outcome("/link.md") + &outcome("/.hidden.md"), "");
    assert!(!desk.read("KNOWLEDGE.md").contains("evil"));
    let kept: Vec<String> = std::fs::read_dir(desk.world.vault.path().join(WIKI).join("sources"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap()[10..].to_owned())
        .collect();
    assert!(kept.contains(&"-letter.docx".to_owned()) && kept.contains(&"-latin.txt".to_owned()), "{kept:?}");
    desk.wiki(&["ingest", "allotment", "gone.md"]).await.expect(1);
    desk.wiki(&["ingest", "unknown", &all]).await.expect(1);
    let large = desk.documents.join("large.md");
    std::fs::File::create(&large).unwrap().set_len(33 << 20).unwrap();
    let refused = desk.wiki(&["ingest", "allotment", large.to_str().unwrap()]).await.expect(3);
    assert!(refused.out.contains("too_large"), "{refused}");
    let runs = desk.world.vault.path().join(".steward/runs");
    let left =
        std::fs::read_dir(runs).unwrap().map(|run| run.unwrap().path().join("source")).filter(|file| file.exists());
    assert_eq!(left.count(), 0, "no upload is left");
}

#[tokio::test]
async fn a_wiki_is_in_force_as_a_person_accepted_it() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.edit("KNOWLEDGE.md", |text| text.replace("autoLink: byName", "autoLink: off"));
    let found = desk.wiki(&["lint", "allotment", "--json"]).await.expect(0).json();
    assert_eq!(found["findings"][0]["code"], "manifest_unreviewed", "{found:#}");
    assert!(found["findings"][0]["problem"].as_str().unwrap().contains("`curation`"), "{found:#}");
    desk.ingest(&desk.write("lease.md", LEASE)).await;
    assert!(desk.read("concepts/plot-12.md").contains("See also: "), "the accepted manifest links");
    let folder = "allotment".to_owned();
    let refused = desk.wiki(&["validate", &folder, "--accept"]).await.expect(3);
    assert!(refused.out.contains("+ curation: {tone: plain, depth: medium, autoLink: off"), "{refused}");
    let no = desk.steward.run_in_terminal(&["wiki", "validate", &folder, "--accept"], "n\n").await;
    assert_eq!(no.code, Some(3), "{no}");
    desk.steward.run_in_terminal(&["wiki", "validate", &folder, "--accept"], "y\n").await.expect(0);
    desk.ingest(&desk.write("2026-11-20-letter.md", LETTER)).await;
    assert!(!desk.read("summaries/summary-2026-11-20-letter.md").contains("See also"), "the new one does not");
    desk.is_sound().await;
}

#[tokio::test]
async fn a_wiki_that_nobody_accepted_takes_no_document() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let clone = desk.world.vault.path().join("wiki/cloned");
    std::fs::create_dir(&clone).unwrap();
    for file in ["KNOWLEDGE.md", "AGENTS.md"] {
        std::fs::write(clone.join(file), desk.read(file).replace("\"allotment\"", "\"cloned\"")).unwrap();
    }
    let lease = desk.write("lease.md", LEASE);
    let refused = desk.wiki(&["ingest", "cloned", &lease]).await.expect(3);
    assert!(refused.out.contains("`steward wiki validate cloned --accept`"), "{refused}");
    assert!(!clone.join("summaries").exists());
    let folder = clone.display().to_string();
    desk.steward.run_in_terminal(&["wiki", "validate", &folder, "--accept"], "y\n").await.expect(0);
    desk.wiki(&["ingest", "cloned", "pending"]).await.expect(0);
    assert!(clone.join("overview.md").exists());
}

#[tokio::test]
async fn a_run_waits_for_a_person_who_sees_it_in_a_terminal() {
    let desk = Desk::new().await;
    let desk = Desk { steward: desk.steward.with("STEWARD_WIKI_MODE", "pending"), ..desk };
    let _worker = desk.world.worker_with(&desk.steward).await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let mut runs = Vec::new();
    for (name, text) in [("lease.md", LEASE), ("letter.md", LETTER), ("tap.md", TAP)] {
        let document = desk.write(name, text);
        let done = desk.wiki(&["ingest", "allotment", &document, "--json"]).await.expect(0).json();
        assert_eq!(done[0]["ingested"]["kind"], "pending", "{done:#}");
        runs.push(done[0]["ingested"]["run"].as_str().unwrap().to_owned());
    }
    assert!(!desk.has("concepts/plot-12.md"));
    let short = |run: &str| run.rsplit('-').next().unwrap().to_owned();
    let shown = desk.wiki(&["runs", "show", &short(&runs[0])]).await.expect(0).out;
    assert!(shown.contains("concepts/plot-12.md (new)") && shown.contains("asserted plot-12#c"), "{shown}");
    let refused = desk.wiki(&["runs", "approve", &short(&runs[0])]).await.expect(3);
    assert!(refused.out.contains("in a terminal"), "{refused}");
    desk.steward.run_in_terminal(&["wiki", "runs", "approve", &short(&runs[0])], "y\n").await.expect(0);
    assert!(desk.has("concepts/plot-12.md"));
    // The second one was staged when there was no such page. Now it extends one, which the person has to see.
    let changed = desk.steward.run_in_terminal(&["confirm", &short(&runs[1])], "y\n").await;
    assert!(changed.code == Some(3) && changed.out.contains("look at it once more"), "{changed}");
    // Another edit of the page does not change what they saw.
    desk.edit("concepts/plot-12.md", |text| text.replace("# Plot 12\n", "# Plot 12\n\nMine.\n"));
    desk.steward.run_in_terminal(&["confirm", &short(&runs[1])], "y\n").await.expect(0);
    assert!(desk.read("concepts/plot-12.md").contains("# Plot 12\n\nMine.\n"));
    let page = desk.read("concepts/plot-12.md");
    assert!(page.contains("31 March 2027") && page.contains("31 March 2029"), "{page}");
    // The third one would write on another page now, which the person has not seen.
    let stopcock = desk.read("concepts/stopcock.md");
    desk.edit("concepts/stopcock.md", |text| text.replace("kind: concept", "kind: entity"));
    let folder = desk.world.vault.path().join(WIKI);
    std::fs::create_dir_all(folder.join("entities")).unwrap();
    std::fs::rename(folder.join("concepts/stopcock.md"), folder.join("entities/stopcock.md")).unwrap();
    let changed = desk.steward.run_in_terminal(&["wiki", "runs", "approve", &short(&runs[2])], "y\n").await;
    assert!(changed.code == Some(3) && changed.out.contains("look at it once more"), "{changed}");
    assert_eq!(desk.read("entities/stopcock.md"), stopcock.replace("kind: concept", "kind: entity"));
    let shown = desk.wiki(&["runs", "show", &short(&runs[2])]).await.expect(0).out;
    assert!(shown.contains("entities/stopcock.md") && !shown.contains("concepts/stopcock.md"), "{shown}");
    let sources = desk.wiki(&["sources", "allotment", "--json"]).await.expect(0).json();
    let states = |sources: &Value| -> Vec<String> {
        sources.as_array().unwrap().iter().map(|source| source["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(states(&sources), ["ingested", "ingested", "waiting"], "{sources:#}");
    desk.steward.run(&["dismiss", &short(&runs[2])]).await.expect(0);
    desk.wiki(&["runs", "reject", &short(&runs[2])]).await.expect(3);
    desk.steward.run(&["undo", &short(&runs[1])]).await.expect(0);
    let sources = desk.wiki(&["sources", "allotment", "--json"]).await.expect(0).json();
    assert_eq!(states(&sources), ["ingested", "reverted", "rejected"], "{sources:#}");
    // The id of its record names the command.
    let records = desk.steward.run(&["audit", "list", "--json"]).await.expect(0).json();
    let changed = records.as_array().unwrap().iter().find(|record| record["kind"] == "steward-wiki").unwrap();
    let refused = desk.steward.run(&["undo", changed["id"].as_str().unwrap()]).await.expect(3);
    assert!(refused.out.contains("`steward wiki runs revert "), "{refused}");
    desk.wiki(&["lint", "allotment", "--fix"]).await.expect(0);
    let listed = desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json();
    let states: Vec<&str> = listed.as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["rejected", "committed", "taken_back", "committed", "committed"], "{listed:#}");
    desk.is_sound().await;
}

#[tokio::test]
async fn a_stop_holds_every_run_but_a_rollback_and_one_source_twice_is_one_run() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let (lease, letter) = (desk.write("lease.md", LEASE), desk.write("letter.md", LETTER));
    let arguments = ["ingest", "allotment", lease.as_str(), "--json"];
    let (one, two) = tokio::join!(desk.wiki(&arguments), desk.wiki(&arguments));
    let outcomes = [one.expect(0).json(), two.expect(0).json()];
    let committed: Vec<&Value> =
        outcomes.iter().map(|one| &one[0]["ingested"]).filter(|it| it["kind"] == "committed").collect();
    assert!(!committed.is_empty() && committed.iter().all(|it| it["run"] == committed[0]["run"]), "{outcomes:#?}");
    let run = committed[0]["run"].as_str().unwrap().rsplit('-').next().unwrap().to_owned();
    desk.steward.run(&["stop"]).await.expect(0);
    let refused = desk.wiki(&["ingest", "allotment", &letter]).await.expect(3);
    assert!(refused.out.contains("steward resume"), "{refused}");
    assert!(!desk.read("_sources.json").contains("letter"));
    desk.wiki(&["runs", "revert", &run]).await.expect(0);
    assert!(!desk.has("concepts/plot-12.md"));
    desk.steward.run(&["resume"]).await.expect(0);
    desk.ingest(&letter).await;
    desk.is_sound().await;
}

/// The vault's own tests die at every file; here the workflow goes on in another process.
#[tokio::test]
async fn a_crash_during_an_ingest_leaves_one_run_and_a_sound_wiki() {
    // The first commit adds the source, the second one the pages.
    let points =
        ["after-staging-content:2", "after-journal:1", "between-exchanges:3", "after-swap:2", "before-filing:2"];
    for point in
        run::choose_cases([points.as_slice(), &["after-filing:2", "before-filing:1", "after-settling:1"]].concat())
    {
        let desk = Desk::new().await;
        {
            let worker = desk.world.worker().await;
            desk.wiki(&["init", "allotment"]).await.expect(0);
            worker.stop().await;
        }
        let lease = desk.write("lease.md", LEASE);
        let workers = desk.ingest_over_crash(&lease, point).await;
        assert!(workers.len() == 2 || point.starts_with("after-settling"), "{point} was not met");
        let listed = desk.wiki(&["runs", "list", "--json"]).await.expect(0).json();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{point}: {listed:#}");
        assert_eq!(desk.read("_log.md").matches("] ingest | ").count(), 1, "{point}");
        desk.is_sound().await;
    }
}
