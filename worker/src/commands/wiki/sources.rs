//! `steward wiki sources`: the documents of a wiki, and what became of each.
//!
//! All of it is read from files, so it is the same whether or not a process serves the vault.

use super::{OpenedWikis, open_vault};
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::table::create_table;
use std::path::Path;
use steward_server::views::wiki::{WikiSourceRow, list_wiki_sources};

pub(super) fn run(vault: Option<&Path>, wiki: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let OpenedWikis { root, .. } = open_vault(vault)?;
    let sources = list_wiki_sources(&root, wiki)?;
    out.print_value(&sources, || describe(wiki, &sources))?;
    Ok(CommandExit::Ok)
}

fn describe(wiki: &str, sources: &[WikiSourceRow]) -> String {
    if sources.is_empty() {
        return format!("The wiki has no source: `steward wiki ingest {wiki} <file>` adds one.");
    }
    let mut table = create_table(&["source", "state", "pages", "added", "title"], &["source", "title"]);
    for source in sources {
        let replaced = source.superseded_by.as_ref().map(|by| format!(", replaced by {by}")).unwrap_or_default();
        table.add_row([
            escape_text(source.id.as_ref().unwrap_or(&source.path)),
            escape_text(&format!("{}{replaced}", source.state)),
            source.pages.to_string(),
            source.captured_at.map_or_else(String::new, |at| at.format("%Y-%m-%d").to_string()),
            escape_text(&source.title),
        ]);
    }
    table.to_string()
}
