//! `steward wiki search`: finds pages by their words, or entries of the log.
//!
//! The index answers for a wiki of the vault. For any other folder, and where the index cannot be used, the files are read; both
//! find the same.

use super::{OpenedWiki, open_folder};
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;
use std::path::Path;
use steward_domain::wiki::log::{LogEntry, read_log};
use steward_domain::wiki::search::{PageFilter, PageHit, list_query_words, search_pages, split_words};
use steward_domain::wiki::{LOG_FILE, MAX_GENERATED_BYTES};
use steward_vault::wiki::search::{find_sources, search_indexed};

/// The most pages that are shown.
const MAX_HITS: usize = 10;
/// The most entries of the log that are shown.
const MAX_ENTRIES: usize = 20;

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
        [] if *filter != PageFilter::default() => {
            "No page with this kind, tag or path holds any of these words.".to_owned()
        }
        [] => describe_sources(&wiki.folder, words),
        hits => hits.iter().map(describe).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(CommandExit::Ok)
}

/// Shows the entries of the log that hold all words, the newest first.
pub(super) fn search_log(
    wiki: &OpenedWiki,
    words: &str,
    after: Option<DateTime<Utc>>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let log = open_folder(&wiki.folder)?.read_text(LOG_FILE, MAX_GENERATED_BYTES)?.unwrap_or_default();
    let wanted = list_query_words(words);
    let holds = |entry: &LogEntry| {
        let held: BTreeSet<String> =
            [&entry.subject].into_iter().chain(&entry.bullets).flat_map(|line| split_words(line)).collect();
        wanted.is_subset(&held) && after.is_none_or(|after| entry.at >= after)
    };
    let mut found: Vec<LogEntry> = read_log(&log).entries.into_iter().filter(holds).collect();
    found.reverse();
    found.truncate(MAX_ENTRIES);
    out.print_value(&found, || match found.as_slice() {
        [] => "No entry of the log holds all of these words.".to_owned(),
        found => found.iter().map(describe_entry).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(CommandExit::Ok)
}

fn describe_entry(entry: &LogEntry) -> String {
    let word = entry.log_type.map(|word| format!("{word} | ")).unwrap_or_default();
    let bullets: String = entry.bullets.iter().map(|bullet| format!("\n  {}", escape_text(bullet))).collect();
    format!("{} {word}{}{bullets}", entry.at.format("%Y-%m-%d %H:%M"), escape_text(&entry.subject))
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
