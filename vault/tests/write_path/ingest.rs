//! A wiki from its acceptance to a rollback: sources are added, become pages by fixed rules, and are taken back.

use crate::desk::{Desk, names, settle};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::path::Path;
use steward_domain::action::audit::{AuditRecord, WorkflowRef};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::claims::read_claims;
use steward_domain::wiki::details::WikiDetails;
use steward_domain::wiki::page::read_page;
use steward_domain::wiki::rollback::EditedPages;
use steward_domain::wiki::run::{RunId, RunSource, WikiRunType};
use steward_domain::wiki::template::render_wiki;
use steward_domain::wiki::writer::budget::RunLimits;
use steward_vault::action::writer::{ApplyError, VaultWriter};
use steward_vault::wiki::accept::{find_accepted, read_acceptable};
use steward_vault::wiki::create::create_wiki;
use steward_vault::wiki::folder::WikiFolder;
use steward_vault::wiki::ingest::{CommittedRun, RunApproval};
use steward_vault::wiki::request::{WikiRunError, WikiRunRequest};
use steward_vault::wiki::revert::RevertRequest;
use steward_vault::wiki::sources::{AddedSource, SourceDocument};
use steward_vault::wiki::staged::{RunMeta, StagedRun, StagedRuns};
use steward_vault::wiki::state::read_wiki;

pub(crate) const FOLDER: &str = "wiki/allotment";
pub(crate) const LEASE: &str = "# The lease\n\nThe lease of Plot 12 ends on 31 March 2027. Plot 12 lies by the river. Who pays for Plot 12?\n\n\
    ## Water\n\nA stopcock is a valve that shuts off the water.\n";
pub(crate) const LETTER: &str = "# Letter of the council\n\nThe council extends the lease of Plot 12 to 31 March 2029. Plot 12 keeps its \
    water. The council thanks the holder of Plot 12.\n";

pub(crate) fn at(minutes: i64) -> DateTime<Utc> {
    "2026-11-22T09:15:04Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::minutes(minutes)
}

pub(crate) fn request(minutes: i64) -> WikiRunRequest<'static> {
    WikiRunRequest { wiki: "allotment", by: "ann", at: at(minutes), workflow: WorkflowRef::default() }
}

fn new_wiki() -> (Desk, VaultWriter) {
    let desk = Desk::new();
    create_wiki(&desk.root(), "allotment", &render_wiki("allotment", at(0)).unwrap()).unwrap();
    let writer = desk.writer();
    (desk, writer)
}

/// A wiki that a person has accepted.
pub(crate) fn wiki() -> (Desk, VaultWriter) {
    let (desk, writer) = new_wiki();
    writer.accept_wiki(&request(0), &hash_files(&desk)).unwrap();
    (desk, writer)
}

fn hash_files(desk: &Desk) -> BTreeMap<String, ContentHash> {
    let files = read_acceptable(&desk.root(), FOLDER).unwrap();
    files.iter().map(|file| (file.file.to_owned(), ContentHash::hash_bytes(file.text.as_bytes()))).collect()
}

fn add_bytes(
    writer: &VaultWriter,
    minutes: i64,
    path: &str,
    bytes: Option<Vec<u8>>,
) -> Result<AddedSource, WikiRunError> {
    writer.add_source(&request(minutes), SourceDocument { path, bytes, decoded: None })
}

pub(crate) fn add(writer: &VaultWriter, minutes: i64, name: &str, text: &str) -> Result<AddedSource, WikiRunError> {
    add_bytes(writer, minutes, &format!("sources/{name}"), Some(text.as_bytes().to_vec()))
}

pub(crate) fn stage(writer: &VaultWriter, minutes: i64, source: &RunSource) -> StagedRun {
    try_stage(writer, minutes, source).unwrap()
}

pub(crate) fn try_stage(writer: &VaultWriter, minutes: i64, source: &RunSource) -> Result<StagedRun, WikiRunError> {
    let meta = RunMeta {
        run: RunId::derive(at(minutes), &["ingest", &source.id]),
        wiki: "allotment".into(),
        folder: FOLDER.into(),
        run_type: WikiRunType::Ingest,
        by: "ann".into(),
        began: at(minutes),
        source: Some(source.clone()),
        answer: None,
        review: None,
        writer: "rules".into(),
        limits: RunLimits::default(),
        unattended: false,
    };
    let run = StagedRuns::new(writer.root()).begin(&meta)?;
    restage(writer, &run)?;
    Ok(run)
}

fn restage(writer: &VaultWriter, run: &StagedRun) -> Result<(), WikiRunError> {
    let wiki = read_wiki(writer.root(), "allotment", FOLDER)?;
    steward_vault::wiki::ingest::stage_by_rules(writer.root(), &wiki, run, None)
}

fn is_ingested(desk: &Desk, source: &RunSource) -> bool {
    WikiFolder::open(&desk.file(FOLDER)).unwrap().read().is_ingested(source)
}

pub(crate) fn ingest(writer: &VaultWriter, minutes: i64, source: &RunSource) -> CommittedRun {
    let run = stage(writer, minutes, source);
    writer.commit_staged(&run, None, run.meta.began, &WorkflowRef::default()).unwrap()
}

/// Every file of the wiki but the trash.
pub(crate) fn read_files(desk: &Desk) -> BTreeMap<String, String> {
    fn visit(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            match entry.file_type().unwrap().is_dir() {
                true if name == ".trash" => {}
                true => visit(&entry.path(), &format!("{name}/"), files),
                false => drop(files.insert(name, std::fs::read_to_string(entry.path()).unwrap())),
            }
        }
    }
    let mut files = BTreeMap::new();
    visit(&desk.file(FOLDER), "", &mut files);
    files
}

fn revert(writer: &VaultWriter, run: &CommittedRun, minutes: i64) {
    revert_record(writer, &run.receipt.record, minutes);
}

/// Takes a run back; returns the record of the rollback.
pub(crate) fn revert_record(writer: &VaultWriter, record: &RecordPath, minutes: i64) -> RecordPath {
    let workflow = WorkflowRef::default();
    let request =
        RevertRequest { record, by: "ann", reason: None, edited: EditedPages::Refuse, at: at(minutes), workflow };
    writer.revert_run(&request).unwrap().receipt.record
}

#[test]
fn what_was_accepted_is_in_force_until_it_is_accepted_again() {
    let (desk, writer) = new_wiki();
    assert_eq!(find_accepted(&desk.root(), "allotment").unwrap(), None);
    let hashes = || hash_files(&desk);
    let seen = hashes();
    writer.accept_wiki(&request(1), &seen).unwrap();
    assert!(writer.accept_wiki(&request(1), &seen).unwrap().repeated);
    let accepted = find_accepted(&desk.root(), "allotment").unwrap().unwrap();
    assert_eq!(accepted.files["KNOWLEDGE.md"], desk.read(&format!("{FOLDER}/KNOWLEDGE.md")));
    assert_eq!(accepted.files["AGENTS.md"], desk.read(&format!("{FOLDER}/AGENTS.md")));
    let manifest = desk.read(&format!("{FOLDER}/KNOWLEDGE.md"));
    desk.write(&format!("{FOLDER}/KNOWLEDGE.md"), manifest.replace("depth: medium", "depth: deep").as_bytes());
    assert!(matches!(writer.accept_wiki(&request(2), &seen), Err(WikiRunError::Refused(_))), "another one was seen");
    writer.accept_wiki(&request(3), &hashes()).unwrap();
    let accepted = find_accepted(&desk.root(), "allotment").unwrap().unwrap();
    assert_eq!(accepted.files["KNOWLEDGE.md"], desk.read(&format!("{FOLDER}/KNOWLEDGE.md")));
    // A file that looks like a newer record is no link of the chain.
    let forged = desk.read(accepted.record.as_str()).replace("depth: deep", "depth: none");
    let name = accepted.record.as_str().replace("T0918", "T0919");
    desk.write(&name, forged.replace("r-20261122T0918", "r-20261122T0919").as_bytes());
    assert_eq!(find_accepted(&desk.root(), "allotment").unwrap(), None, "two records claim one place");
    std::fs::remove_file(desk.file(&name)).unwrap();
    assert_eq!(find_accepted(&desk.root(), "allotment").unwrap(), Some(accepted));
    desk.write(&format!("{FOLDER}/KNOWLEDGE.md"), b"---\nschema: knowledge.workspace/v1\n---\n");
    assert!(matches!(writer.accept_wiki(&request(4), &hashes()), Err(WikiRunError::Refused(_))), "not valid");
    assert!(desk.read(&format!("{FOLDER}/_log.md")).contains("] manual | Accepted KNOWLEDGE.md, AGENTS.md\n"));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_source_is_added_once_and_never_over_another_file() {
    let (desk, writer) = wiki();
    let added = add(&writer, 1, "lease.md", LEASE).unwrap();
    assert_eq!((added.source.id.as_str(), added.title.as_str(), added.unreadable), ("lease", "The lease", None));
    assert_eq!(desk.read(&format!("{FOLDER}/sources/lease.md")), LEASE);
    assert_eq!(add(&writer, 2, "copy.md", LEASE).unwrap().source, added.source, "the same bytes");
    for (name, part) in [("lease.md", "other bytes"), ("more/lease.txt", "duplicate_id")] {
        let refused = add(&writer, 3, name, "Other words.").unwrap_err();
        assert!(matches!(&refused, WikiRunError::Refused(reason) if reason.contains(part)), "{refused}");
    }
    for path in ["sources/../KNOWLEDGE.md", "entities/a.md", "sources/-rf.md", "sources/KNOWLEDGE.md/../a.md"] {
        assert!(add_bytes(&writer, 4, path, Some(b"x".to_vec())).is_err(), "{path}");
    }
    // A person put a file there.
    desk.write(&format!("{FOLDER}/sources/photo.png"), b"\x89PNG");
    let photo = add_bytes(&writer, 5, "sources/photo.png", None).unwrap();
    assert!(photo.unreadable.unwrap().starts_with("unsupported_type"));
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("Grüße aus Köln.".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    add_bytes(&writer, 6, "sources/greeting.txt", Some(utf16)).unwrap();
    assert!(desk.read(&format!("{FOLDER}/_text/greeting.txt")).ends_with("\nGrüße aus Köln."));
    let contents = WikiFolder::open(&desk.file(FOLDER)).unwrap().read();
    assert_eq!(contents.findings, []);
    assert_eq!(contents.sources.keys().collect::<Vec<_>>(), ["greeting", "lease", "photo"]);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn an_ingest_makes_pages_with_quotes_and_its_rollback_leaves_the_log_alone() {
    let (desk, writer) = wiki();
    let source = add(&writer, 1, "lease.md", LEASE).unwrap().source;
    let before = read_files(&desk);
    assert!(!is_ingested(&desk, &source));
    let run = ingest(&writer, 2, &source);
    assert_eq!(run.pages.len(), 4, "{:?}", run.pages);
    assert!(run.displaced.is_empty(), "{:?}", run.displaced);
    assert!(is_ingested(&desk, &source));
    for file in &run.pages {
        let text = desk.read(&format!("{FOLDER}/{file}"));
        let page = read_page(file, text.as_bytes()).page.unwrap();
        let claims = read_claims(page.document.body(), &page.body.disputed);
        assert!(!claims.claims.is_empty() && claims.anchors.values().all(|it| it.is_intact()), "{text}");
    }
    let record = desk.read(run.receipt.record.as_str());
    let details = WikiDetails::parse(&record).unwrap();
    let anchor = &details.claims[0].anchors[0];
    let slice = &LEASE[anchor.offset..anchor.offset + anchor.length];
    assert_eq!(anchor.quote_sha256, ContentHash::hash_bytes(slice.as_bytes()));
    let mark = AuditRecord::parse(record.as_bytes()).unwrap().draft.wiki.unwrap();
    assert_eq!(mark.source.as_ref(), Some(&source));
    let log = desk.read(&format!("{FOLDER}/_log.md"));
    assert!(log.contains("] ingest | The lease\n- run: r-20261122T091704Z-") && log.contains("claims: "), "{log}");
    assert!(desk.read(&format!("{FOLDER}/_ideas.md")).contains("- Who pays for Plot 12? (lease, 2026-11-22)\n"));
    assert!(desk.read(&format!("{FOLDER}/overview.md")).contains("- 2026-11-22 ingest: The lease\n"));
    revert(&writer, &run, 3);
    let mut after = read_files(&desk);
    let log = after.insert("_log.md".into(), before["_log.md"].clone()).unwrap();
    assert_eq!(after, before);
    assert!(log.starts_with(&before["_log.md"]) && log.contains("takes back: r-"), "{log}");
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn the_first_of_two_ingests_is_taken_back_below_the_second_and_beside_a_person() {
    let (desk, writer) = wiki();
    let (lease, letter) = (add(&writer, 1, "lease.md", LEASE).unwrap(), add(&writer, 2, "letter.md", LETTER).unwrap());
    let first = ingest(&writer, 3, &lease.source);
    let second = ingest(&writer, 4, &letter.source);
    let page = format!("{FOLDER}/concepts/plot-12.md");
    assert!(second.pages.contains(&"concepts/plot-12.md".to_owned()), "{:?}", second.pages);
    let both = desk.read(&page);
    assert!(both.contains("## From The lease\n") && both.contains("## From Letter of the council\n"), "{both}");
    desk.write(&page, both.replace("# Plot 12\n", "# Plot 12\n\nMine.\n").as_bytes());
    let stopcock = desk.read(&format!("{FOLDER}/concepts/stopcock.md"));
    revert(&writer, &first, 5);
    let left = desk.read(&page);
    // Who made the page is taken back, but others have edited it, so it stays.
    assert!(left.contains("\nMine.\n") && left.contains("## From Letter of the council\n"), "{left}");
    assert!(!desk.file(&format!("{FOLDER}/summaries/summary-lease.md")).exists());
    assert!(!desk.file(&format!("{FOLDER}/concepts/stopcock.md")).exists(), "{stopcock}");
    assert!(!is_ingested(&desk, &lease.source));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_page_that_changed_is_staged_again_and_a_stop_holds_everything_but_a_rollback() {
    let (desk, writer) = wiki();
    let (lease, letter) = (add(&writer, 1, "lease.md", LEASE).unwrap(), add(&writer, 2, "letter.md", LETTER).unwrap());
    let first = ingest(&writer, 3, &lease.source);
    let run = stage(&writer, 4, &letter.source);
    let page = format!("{FOLDER}/concepts/plot-12.md");
    let mine = desk.read(&page).replace("# Plot 12\n", "# Plot 12\n\nMine.\n");
    desk.write(&page, mine.as_bytes());
    let stale = writer.commit_staged(&run, None, run.meta.began, &WorkflowRef::default()).unwrap_err();
    assert!(matches!(stale, WikiRunError::Stale), "{stale}");
    assert_eq!(desk.read(&page), mine);
    restage(&writer, &run).unwrap();
    desk.write(".steward/STOP", b"{}");
    let stopped = writer.commit_staged(&run, None, run.meta.began, &WorkflowRef::default()).unwrap_err();
    assert!(matches!(stopped, WikiRunError::Apply(ApplyError::Stopped)), "{stopped}");
    assert!(matches!(add(&writer, 6, "more.md", "More words."), Err(WikiRunError::Apply(ApplyError::Stopped))));
    revert(&writer, &first, 7);
    std::fs::remove_file(desk.file(".steward/STOP")).unwrap();
    restage(&writer, &run).unwrap();
    writer.commit_staged(&run, None, run.meta.began, &WorkflowRef::default()).unwrap();
    assert!(writer.commit_staged(&run, None, run.meta.began, &WorkflowRef::default()).unwrap().receipt.repeated);
    assert!(desk.read(&page).contains("\nMine.\n"));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_source_whose_bytes_changed_is_not_ingested() {
    let (desk, writer) = wiki();
    let source = add(&writer, 1, "lease.md", LEASE).unwrap().source;
    let run = stage(&writer, 2, &source);
    desk.write(&format!("{FOLDER}/sources/lease.md"), LEASE.replace("2027", "2037").as_bytes());
    let refused = writer.commit_staged(&run, None, run.meta.began, &WorkflowRef::default()).unwrap_err();
    assert!(refused.to_string().contains("source_mutated"), "{refused}");
    assert!(restage(&writer, &run).is_err());
}

#[test]
fn a_persons_file_in_the_place_of_a_page_is_left_alone() {
    let (desk, writer) = wiki();
    let source = add(&writer, 1, "lease.md", LEASE).unwrap().source;
    let broken = "---\nschema: knowledge.entry/v1\nslug: [\n---\nMine.\n";
    for (file, text) in [("concepts/plot-12.md", broken), ("concepts/stopcock.md", "# A note of mine\n")] {
        std::fs::create_dir_all(desk.file(&format!("{FOLDER}/concepts"))).unwrap();
        desk.write(&format!("{FOLDER}/{file}"), text.as_bytes());
    }
    let run = ingest(&writer, 2, &source);
    assert_eq!(run.pages, ["summaries/summary-lease.md", "concepts/water.md"]);
    assert!(!desk.read(&format!("{FOLDER}/summaries/summary-lease.md")).contains("[[stopcock"), "nothing is there");
    assert_eq!(desk.read(&format!("{FOLDER}/concepts/plot-12.md")), broken);
    assert_eq!(desk.read(&format!("{FOLDER}/concepts/stopcock.md")), "# A note of mine\n");
}

#[test]
fn names_of_a_persons_files_become_other_pages() {
    let (desk, writer) = wiki();
    let text =
        "# Notes\n\n## Identity\n\nThe club has a name of its own.\n\n## Knowledge\n\nThe club knows its members.\n";
    let source = add(&writer, 1, "club.md", text).unwrap().source;
    let run = ingest(&writer, 2, &source);
    assert!(run.pages.contains(&"concepts/identity-page.md".to_owned()), "{:?}", run.pages);
    assert!(desk.file(&format!("{FOLDER}/concepts/knowledge-page.md")).exists());
}

#[test]
fn a_run_goes_back_once_and_can_be_repeated() {
    let (desk, writer) = wiki();
    let source = add(&writer, 1, "lease.md", LEASE).unwrap().source;
    let first = ingest(&writer, 2, &source);
    revert(&writer, &first, 3);
    let second = ingest(&writer, 4, &source);
    let standing = read_files(&desk);
    let request = |record, minutes| {
        let workflow = WorkflowRef::default();
        RevertRequest { record, by: "ann", reason: None, edited: EditedPages::Refuse, at: at(minutes), workflow }
    };
    let again = writer.revert_run(&request(&first.receipt.record, 5)).unwrap_err();
    assert!(again.to_string().contains("took it back already"), "{again}");
    assert_eq!(read_files(&desk), standing);
    // A rollback can be taken back, too: the pages stand again, and the source counts as ingested.
    let rollback = writer.revert_run(&request(&second.receipt.record, 6)).unwrap();
    assert!(!is_ingested(&desk, &source));
    writer.revert_run(&request(&rollback.receipt.record, 7)).unwrap();
    assert!(is_ingested(&desk, &source));
    assert!(desk.file(&format!("{FOLDER}/concepts/plot-12.md")).exists());
}

#[test]
fn a_forged_staging_changes_nothing_outside_of_the_pages_of_its_wiki() {
    let (desk, writer) = wiki();
    let source = add(&writer, 1, "lease.md", LEASE).unwrap().source;
    let run = stage(&writer, 2, &source);
    let seen = run.read_staged().unwrap().unwrap().0.hash();
    let approval = RunApproval { staged: &seen, by: "ann", override_reason: None, in_terminal: true };
    let folder = desk.file(&format!(".steward/runs/{}", run.meta.run));
    let plan = std::fs::read_to_string(folder.join("plan.json")).unwrap();
    let (page, text) = ("summaries/summary-lease.md", "Forged.");
    std::fs::write(folder.join("staged").join(page), text).unwrap();
    assert!(
        writer.commit_staged(&run, Some(&approval), run.meta.began, &WorkflowRef::default()).is_err(),
        "the content does not fit the plan"
    );
    let old = ContentHash::hash_bytes(desk.read("wiki/allotment/AGENTS.md").as_bytes());
    let hash = |text: &str| ContentHash::hash_bytes(text.as_bytes()).as_str().to_owned();
    let start = plan.find(page).unwrap();
    let line = plan[start..].lines().nth(2).unwrap();
    std::fs::write(folder.join("plan.json"), plan.replace(line, &format!("      \"after\": \"{}\"", hash(text))))
        .unwrap();
    let other = writer.commit_staged(&run, Some(&approval), run.meta.began, &WorkflowRef::default()).unwrap_err();
    assert!(other.to_string().contains("something else is staged"), "{other}");
    for forged in ["_log.md", "_ideas.md", "overview.md", "sources/new.md"] {
        let text = format!(
            "{{\"files\":[{{\"path\":\"{forged}\",\"before\":null,\"after\":null}}],\"ideas\":[],\"notes\":[]}}"
        );
        std::fs::write(folder.join("plan.json"), text).unwrap();
        assert!(writer.commit_staged(&run, None, run.meta.began, &WorkflowRef::default()).is_err(), "{forged}");
    }
    assert_eq!(old, ContentHash::hash_bytes(desk.read("wiki/allotment/AGENTS.md").as_bytes()));
    assert!(!desk.file(&format!("{FOLDER}/{page}")).exists());
}

#[test]
fn the_index_of_a_new_wiki_is_nobodys_words_even_beside_pages_that_a_person_made() {
    let (desk, writer) = wiki();
    std::fs::create_dir_all(desk.file(&format!("{FOLDER}/entities"))).unwrap();
    let page = "---\nschema: knowledge.entry/v1\nslug: shed\nkind: entity\ntitle: Shed\n\
        updated_at: \"2026-11-22T09:15:04Z\"\n---\n# Shed\n\nMine.\n";
    desk.write(&format!("{FOLDER}/entities/shed.md"), page.as_bytes());
    let source = add(&writer, 1, "lease.md", LEASE).unwrap().source;
    assert_eq!(ingest(&writer, 2, &source).displaced, []);
    assert!(!desk.file(&format!("{FOLDER}/.trash")).exists());
    // What somebody wrote there is kept.
    let index = desk.read(&format!("{FOLDER}/_index.md"));
    desk.write(&format!("{FOLDER}/_index.md"), format!("{index}Mine.\n").as_bytes());
    let letter = add(&writer, 3, "letter.md", LETTER).unwrap().source;
    let displaced: Vec<String> = names(&desk.file(&format!("{FOLDER}/.trash")));
    assert_eq!((displaced.len(), ingest(&writer, 4, &letter).displaced.len()), (1, 0), "the first run moved it");
}

#[test]
fn each_rollback_of_a_rollback_says_again_whether_the_source_is_ingested() {
    let (desk, writer) = wiki();
    let source = add(&writer, 1, "lease.md", LEASE).unwrap().source;
    let mut record = ingest(&writer, 2, &source).receipt.record;
    for minute in 3..8 {
        let workflow = WorkflowRef::default();
        let request = RevertRequest {
            record: &record,
            by: "ann",
            reason: None,
            edited: EditedPages::Refuse,
            at: at(minute),
            workflow,
        };
        record = writer.revert_run(&request).unwrap().receipt.record;
        let is_there = desk.file(&format!("{FOLDER}/summaries/summary-lease.md")).exists();
        assert_eq!((is_there, is_ingested(&desk, &source)), (minute % 2 == 0, minute % 2 == 0), "{minute}");
    }
    settle(&writer);
    desk.is_tidy();
}
