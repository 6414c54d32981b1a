//! The sources of a wiki of which no page was made yet, and those that had a run which nobody asked for.
//!
//! Nothing of the wiki is changed. That a source had its one unattended run is kept for ever.

use crate::files::root::VaultRoot;
use crate::wiki::folder::WikiContents;
use crate::wiki::kept::{change_log, read_log};
use crate::wiki::request::WikiRunError;
use crate::wiki::runs::{list_rejected_runs, list_runs};
use crate::wiki::staged::StagedRuns;
use crate::wiki::state::ReadWikiError;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use steward_domain::wiki::SOURCES_FOLDER;
use steward_domain::wiki::run::RunSource;
use steward_domain::wiki::source_text::find_format;

/// A source in the folder of a wiki.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundSource {
    Registered(RunSource),
    /// A file that is not registered, by its path in the wiki.
    Unregistered(String),
}

impl FoundSource {
    /// Its path in the wiki.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Registered(source) => &source.path,
            Self::Unregistered(path) => path,
        }
    }
}

const TRIED: &str = "unattended.jsonl";

/// A source that had an unattended run.
#[derive(Debug, Serialize, Deserialize)]
struct TriedSource {
    path: String,
    at: DateTime<Utc>,
}

/// Lists the sources of which pages can be made and that had no run yet, at most so many, by their paths. What was taken back had
/// one.
///
/// # Errors
/// The records or the staged runs cannot be listed.
pub fn list_pending(
    root: &VaultRoot,
    wiki: &str,
    contents: &WikiContents,
    limit: usize,
) -> Result<Vec<FoundSource>, WikiRunError> {
    let range = format!("{SOURCES_FOLDER}/")..format!("{SOURCES_FOLDER}0");
    let is_open = |path: &&String| find_format(path).is_some() && !contents.provenance.sources.contains_key(*path);
    let open: Vec<&String> = contents.files.range(range).filter(is_open).collect();
    // Where every source became pages, no record is read.
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let committed = list_runs(root, Some(wiki)).map_err(ReadWikiError::from)?;
    let rejected = list_rejected_runs(root, Some(wiki), usize::MAX).map_err(ReadWikiError::from)?;
    let recorded = committed.into_iter().chain(rejected).filter_map(|run| run.source);
    let staged = StagedRuns::new(root).list()?.into_iter().filter(|run| run.meta.wiki == wiki);
    let staged = staged.filter_map(|run| run.meta.source);
    let seen: BTreeSet<String> = recorded.chain(staged).map(|source| source.path).collect();
    let find = |path: &String| find_registered(contents, path).unwrap_or(FoundSource::Unregistered(path.clone()));
    Ok(open.into_iter().filter(|path| !seen.contains(*path)).map(find).take(limit).collect())
}

/// The sources that had no unattended run yet, of those that are pending.
///
/// # Errors
/// As [`list_pending`].
pub fn list_untried(
    root: &VaultRoot,
    wiki: &str,
    contents: &WikiContents,
    limit: usize,
) -> Result<Vec<FoundSource>, WikiRunError> {
    let tried: Vec<TriedSource> = read_log(root, wiki, TRIED)?;
    let tried: BTreeSet<String> = tried.into_iter().map(|it| it.path).collect();
    let is_tried = |found: &FoundSource| tried.contains(found.path());
    let mut pending = list_pending(root, wiki, contents, usize::MAX)?;
    pending.retain(|found| !is_tried(found));
    pending.truncate(limit);
    Ok(pending)
}

/// Keeps that a source had an unattended run, whatever its outcome was.
///
/// # Errors
/// [`ReadWikiError`].
pub fn note_tried(root: &VaultRoot, wiki: &str, path: &str, at: DateTime<Utc>) -> Result<(), ReadWikiError> {
    change_log(root, wiki, TRIED, |lines: &mut Vec<TriedSource>| {
        if lines.iter().all(|known| known.path != path) {
            lines.push(TriedSource { path: path.to_owned(), at });
        }
    })
}

/// The registered source with an id or a path.
#[must_use]
pub fn find_registered(contents: &WikiContents, name: &str) -> Option<FoundSource> {
    let known = contents.sources.get(name).or_else(|| contents.sources.values().find(|source| source.path == name))?;
    let (id, path, content_hash) = (known.id.clone(), known.path.clone(), known.content_hash.clone());
    Some(FoundSource::Registered(RunSource { id, path, content_hash }))
}
