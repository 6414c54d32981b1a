//! What the pages of a wiki cost: the tokens of its ingests, beside the size of its sources.
//!
//! The tokens are those in the audit records of committed runs, also of such that were taken back. Nothing is changed.

use crate::files::root::VaultRoot;
use crate::wiki::folder::WikiFolder;
use crate::wiki::quotes::read_text;
use crate::wiki::runs::list_runs;
use crate::wiki::state::{ReadWikiError, find_wiki_folder};
use steward_domain::wiki::cost::{SourceCost, WikiCost};
use steward_domain::wiki::run::WikiRunType;

/// Reads what the pages of a wiki cost. Every source is read; one without a text is left out.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_cost(root: &VaultRoot, wiki: &str) -> Result<WikiCost, ReadWikiError> {
    let path = find_wiki_folder(root, wiki)?;
    let folder = WikiFolder::open(&root.path().join(&path)).map_err(|source| ReadWikiError::Io { path, source })?;
    let sources = folder.read_some(&[]).sources;
    let texts = sources.values().filter_map(|source| read_text(&folder, source).ok());
    let characters = texts.map(|text| text.as_str().chars().count() as u64).sum();
    let ingests = list_runs(root, Some(wiki))?.into_iter().filter(|run| run.run_type == WikiRunType::Ingest);
    let costs = ingests.filter_map(|run| Some(SourceCost { source: run.source?.id, tokens: run.tokens? }));
    Ok(WikiCost::new(costs, characters))
}
