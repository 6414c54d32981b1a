//! `steward wiki search`: finds pages by their words.
//!
//! The index answers for a wiki of the vault. For any other folder, and where the index cannot be used, the files are read; both
//! find the same.

use super::{OpenedWiki, open_folder};
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use std::path::Path;
use steward_domain::wiki::search::{PageFilter, PageHit, search_pages};
use steward_vault::wiki::search::{find_sources, search_indexed};

/// The most pages that are shown.
const MAX_HITS: usize = 10;

pub(super) async fn run(
    wiki: &OpenedWiki,
    words: &str,
    filter: &PageFilter,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let indexed = match wiki.open_index().await {
        Some((vault, index)) => {
            search_indexed(&index, &vault.root, &vault.name, words, filter, MAX_HITS).await.ok().flatten()
        }
        None => None,
    };
    let hits = match indexed {
        Some(hits) => hits,
        None => search_pages(&open_folder(&wiki.folder)?.read().pages, words, filter, MAX_HITS),
    };
    out.print_value(&hits, || match hits.as_slice() {
        [] => describe_sources(&wiki.folder, words),
        hits => hits.iter().map(describe).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(CommandExit::Ok)
}

/// What is said if no page was found: a source may hold the words all the same.
fn describe_sources(folder: &Path, words: &str) -> String {
    let found = open_folder(folder).map(|folder| find_sources(&folder, words)).unwrap_or_default();
    let sources: String = found.iter().map(|id| format!("\n  {}", escape_text(id))).collect();
    match found.as_slice() {
        [] => "No page holds any of these words, and no source holds all of them.".to_owned(),
        _ => format!("No page holds any of these words. These sources hold all of them:{sources}"),
    }
}

fn describe(hit: &PageHit) -> String {
    let [title, file, passage] = [&hit.title, &hit.file, &hit.passage].map(|text| escape_text(text));
    format!("{title}  ({file})\n  {passage}")
}
