//! The sources of a wiki: what became of each document, and what rests on it.
//!
//! All of it is read from files. Titles are untrusted.

use super::open_wiki;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::wiki::SOURCES_FOLDER;
use steward_domain::wiki::registry::WikiSource;
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::source_text::find_format;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::folder::WikiContents;
use steward_vault::wiki::runs::{list_rejected_runs, list_runs};
use steward_vault::wiki::staged::{RunState, StagedRuns};
use steward_vault::wiki::state::ReadWikiError;

/// What became of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum WikiSourceState {
    /// Pages were made of it.
    Ingested,
    /// It had no run yet.
    Pending,
    /// A run of it is under way, or waits for a person.
    Waiting,
    /// Its run was taken back.
    Reverted,
    /// Its last run was rejected or given up.
    Rejected,
    /// It lies in `sources/` and is not registered.
    New,
    /// No page can be made of a file of this type.
    Unsupported,
    /// Its bytes are not those that were registered.
    Changed,
    /// Its file is gone.
    Missing,
}

/// A source in a list.
#[derive(Clone, Debug, Serialize)]
pub struct WikiSourceRow {
    /// `None` for a file that is not registered.
    pub id: Option<String>,
    /// Relative to the wiki.
    pub path: String,
    /// Untrusted.
    pub title: String,
    pub state: WikiSourceState,
    pub captured_at: Option<DateTime<Utc>>,
    /// The id of the source that replaces it.
    pub superseded_by: Option<String>,
    /// How many pages cite it.
    pub pages: u64,
}

/// Lists the sources of a wiki, by path. Call it on a blocking thread.
///
/// # Errors
/// [`ReadWikiError::Unknown`] if there is no wiki of this name.
pub fn list_wiki_sources(root: &VaultRoot, wiki: &str) -> Result<Vec<WikiSourceRow>, ReadWikiError> {
    let ends = list_ends(root, wiki)?;
    Ok(list_rows(&open_wiki(root, wiki)?.read(), &ends))
}

/// How the last run of each source ended, by its path. Runs that were committed and stand are left out.
fn list_ends(root: &VaultRoot, wiki: &str) -> Result<BTreeMap<String, WikiSourceState>, ReadWikiError> {
    let mut ends = BTreeMap::new();
    for run in list_rejected_runs(root, Some(wiki), usize::MAX)? {
        if let (Some(source), WikiRunType::Ingest) = (run.source, run.run_type) {
            ends.insert(source.path, WikiSourceState::Rejected);
        }
    }
    for run in list_runs(root, Some(wiki))? {
        if let (Some(source), WikiRunType::Ingest) = (run.source, run.run_type) {
            ends.insert(source.path, WikiSourceState::Reverted);
        }
    }
    // A folder that cannot be listed says nothing about any source.
    for run in StagedRuns::new(root).list().unwrap_or_default() {
        let state = match run.status.state {
            RunState::Pending | RunState::Verifying => WikiSourceState::Waiting,
            RunState::Rejected | RunState::Abandoned => WikiSourceState::Rejected,
            RunState::Committed => continue,
        };
        if let Some(source) = run.meta.source.filter(|_| run.meta.wiki == wiki) {
            ends.insert(source.path, state);
        }
    }
    Ok(ends)
}

fn list_rows(contents: &WikiContents, ends: &BTreeMap<String, WikiSourceState>) -> Vec<WikiSourceRow> {
    let mut citing: BTreeMap<&str, u64> = BTreeMap::new();
    for id in contents.pages.iter().flat_map(|page| &page.sources) {
        *citing.entry(id).or_default() += 1;
    }
    let known = contents.sources.values().map(|source| WikiSourceRow {
        id: Some(source.id.clone()),
        path: source.path.clone(),
        title: source.title.clone(),
        state: find_state(contents, source, ends),
        captured_at: source.captured_at,
        superseded_by: source.superseded_by.clone(),
        pages: citing.get(source.id.as_str()).copied().unwrap_or(0),
    });
    let range = format!("{SOURCES_FOLDER}/")..format!("{SOURCES_FOLDER}0");
    let paths: BTreeSet<&str> = contents.sources.values().map(|source| source.path.as_str()).collect();
    let new = contents.files.range(range).filter(|path| !paths.contains(path.as_str())).map(|path| WikiSourceRow {
        id: None,
        path: path.clone(),
        title: String::new(),
        state: if find_format(path).is_some() { WikiSourceState::New } else { WikiSourceState::Unsupported },
        captured_at: None,
        superseded_by: None,
        pages: 0,
    });
    let mut rows: Vec<WikiSourceRow> = known.chain(new).collect();
    rows.sort_by(|a, b| a.path.cmp(&b.path));
    rows
}

fn find_state(
    contents: &WikiContents,
    source: &WikiSource,
    ends: &BTreeMap<String, WikiSourceState>,
) -> WikiSourceState {
    match contents.source_hashes.get(&source.path) {
        Some(None) => WikiSourceState::Missing,
        Some(Some(hash)) if !hash.eq_ignore_ascii_case(&source.content_hash) => WikiSourceState::Changed,
        _ if contents.provenance.sources.contains_key(&source.path) => WikiSourceState::Ingested,
        _ if find_format(&source.path).is_none() => WikiSourceState::Unsupported,
        _ => ends.get(&source.path).copied().unwrap_or(WikiSourceState::Pending),
    }
}
