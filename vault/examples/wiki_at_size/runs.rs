//! Changes the wiki by the write path: makes it, commits runs whose pages a script gives, and adds a source.
//!
//! A run is staged and committed as one of a model is. No verifier is asked, because the script stands for the model.

use crate::usage::Stopwatch;
use crate::{WIKI, compute_time};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::run::{RunId, RunSource, WikiRunType};
use steward_domain::wiki::template::render_wiki;
use steward_domain::wiki::writer::budget::RunLimits;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::accept::read_acceptable;
use steward_vault::wiki::create::create_wiki;
use steward_vault::wiki::folder::WikiFolder;
use steward_vault::wiki::request::WikiRunRequest;
use steward_vault::wiki::sources::SourceDocument;
use steward_vault::wiki::staged::{RunMeta, StagedPlan, StagedRuns};

/// What the writer of one run gives.
#[derive(Deserialize)]
struct ScriptedRun {
    source: RunSource,
    /// The new texts by their files, relative to the wiki.
    pages: BTreeMap<String, String>,
}

pub(crate) fn create_new_wiki(vault: &Path) -> Result<Value, Box<dyn Error>> {
    std::fs::create_dir_all(vault)?;
    create_wiki(&VaultRoot::open(vault)?, WIKI, &render_wiki(WIKI, compute_time(0))?)?;
    Ok(json!({}))
}

/// Commits the runs of a script, one after the other. Accepting the wiki before them is not measured.
pub(crate) fn measure_ingest(vault: &Path, script: &Path) -> Result<Value, Box<dyn Error>> {
    let runs: Vec<ScriptedRun> = serde_json::from_slice(&std::fs::read(script)?)?;
    let writer = VaultWriter::lock(VaultRoot::open(vault)?)?;
    accept(&writer)?;
    let (mut figures, mut minutes) = (Vec::new(), 1);
    for run in runs {
        figures.push(commit(&writer, run, compute_time(minutes))?);
        minutes += 1;
    }
    Ok(json!({"runs": figures}))
}

/// Adds a source to a wiki, then reads the wiki with it.
pub(crate) fn measure_new_source(vault: &Path, file: &Path) -> Result<Value, Box<dyn Error>> {
    let writer = VaultWriter::lock(VaultRoot::open(vault)?)?;
    let document = SourceDocument { path: "sources/large.md", bytes: Some(std::fs::read(file)?), decoded: None };
    let watch = Stopwatch::start();
    let added = writer.add_source(&describe_request(compute_time(1)), document)?;
    let add = watch.wall_ms();
    let watch = Stopwatch::start();
    let contents = WikiFolder::open(&vault.join("wiki").join(WIKI))?.read();
    let read = watch.wall_ms();
    let is_right = contents.source_hashes.get(&added.source.path) == Some(&Some(added.source.content_hash));
    Ok(json!({"add_ms": add, "read_ms": read, "is_right": is_right}))
}

fn accept(writer: &VaultWriter) -> Result<(), Box<dyn Error>> {
    let files = read_acceptable(writer.root(), &format!("wiki/{WIKI}"))?;
    let hashes = files.iter().map(|file| (file.file.to_owned(), ContentHash::hash_bytes(file.text.as_bytes())));
    writer.accept_wiki(&describe_request(compute_time(0)), &hashes.collect())?;
    Ok(())
}

fn commit(writer: &VaultWriter, script: ScriptedRun, at: DateTime<Utc>) -> Result<Value, Box<dyn Error>> {
    let (folder, root) = (format!("wiki/{WIKI}"), writer.root());
    let mut files = Vec::new();
    for (file, text) in script.pages {
        let path = PagePath::new(&folder, &file)?;
        let before = std::fs::read(root.path().join(&folder).join(&file))?;
        files.push(RunFile { path, before: Some(before), after: Some(text.into_bytes()) });
    }
    let meta = RunMeta {
        run: RunId::derive(at, &["ingest", &script.source.id]),
        wiki: WIKI.to_owned(),
        folder,
        run_type: WikiRunType::Ingest,
        by: "ann".to_owned(),
        began: at,
        source: Some(script.source),
        answer: None,
        review: None,
        writer: "script".to_owned(),
        limits: RunLimits::default(),
        unattended: false,
    };
    let watch = Stopwatch::start();
    let run = StagedRuns::new(root).begin(&meta)?;
    run.stage(&files, StagedPlan::default())?;
    let stage = watch.wall_ms();
    let committed = writer.commit_staged(&run, None, run.meta.began, &WorkflowRef::default())?;
    let (wall, cpu) = (watch.wall_ms(), watch.cpu_ms());
    Ok(json!({"stage_ms": stage, "wall_ms": wall, "cpu_ms": cpu, "pages": committed.pages.len(),
        "displaced": committed.displaced.len()}))
}

fn describe_request(at: DateTime<Utc>) -> WikiRunRequest<'static> {
    WikiRunRequest { wiki: WIKI, by: "ann", at, workflow: WorkflowRef::default() }
}
