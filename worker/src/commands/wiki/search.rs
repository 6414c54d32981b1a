//! `steward wiki search`: finds pages by their words.
//!
//! It reads the files, so it works on any folder, without a vault or a server, and changes nothing.

use super::open_folder;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use std::path::Path;
use steward_domain::wiki::overview::OVERVIEW;
use steward_domain::wiki::page::WikiPage;
use steward_domain::wiki::search::{PageHit, search_pages};

/// The most pages that are shown.
const MAX_HITS: usize = 10;

/// Which pages are searched.
pub(super) struct PageFilter {
    pub(super) kind: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) path: Option<String>,
}

impl PageFilter {
    fn covers(&self, page: &WikiPage) -> bool {
        // The overview only repeats what other pages say.
        self.kind.as_ref().map_or(page.kind != OVERVIEW, |kind| page.kind == *kind)
            && self.tag.as_ref().is_none_or(|tag| page.tags.contains(tag))
            && self.path.as_ref().is_none_or(|path| page.file.starts_with(path.as_str()))
    }
}

pub(super) fn run(folder: &Path, words: &str, filter: &PageFilter, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let contents = open_folder(folder)?.read();
    let pages: Vec<&WikiPage> = contents.pages.iter().filter(|page| filter.covers(page)).collect();
    let hits = search_pages(&pages, words, MAX_HITS);
    out.print_value(&hits, || match hits.as_slice() {
        [] => format!("No page of {} holds any of these words.", pages.len()),
        hits => hits.iter().map(describe).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(CommandExit::Ok)
}

fn describe(hit: &PageHit) -> String {
    let [title, file, passage] = [&hit.title, &hit.file, &hit.passage].map(|text| escape_text(text));
    format!("{title}  ({file})\n  {passage}")
}
