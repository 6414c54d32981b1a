//! `steward wiki status`: the wikis of a vault.
//!
//! All of it is read from their files, so it is the same whether or not a process serves the vault.

use super::eval::describe_reading;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::table::create_wide_table;
use anyhow::bail;
use chrono::Utc;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use steward_domain::record::plain_text::count_noun;
use steward_domain::wiki::finding::Severity;
use steward_domain::wiki::log::{LogEntry, LogType, read_log};
use steward_domain::wiki::metrics::{MetricReading, MetricState};
use steward_domain::wiki::overview::OVERVIEW;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::create::list_wikis;
use steward_vault::wiki::folder::WikiContents;
use steward_vault::wiki::health::{CheckedWiki, check_wiki};
use steward_vault::wiki::metrics::read_metrics;
use steward_vault::wiki::staged::{RunState, StagedRuns};

/// How far a wiki has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
enum WikiLifecycle {
    /// It has no page but the overview.
    Empty,
    Populated,
    /// The newest entry of its log is a lint.
    Linted,
}

/// A wiki as it is shown.
#[derive(Debug, Serialize)]
struct WikiStatus {
    wiki: String,
    folder: PathBuf,
    title: String,
    lifecycle: WikiLifecycle,
    pages: usize,
    /// The number of pages of each kind.
    kinds: BTreeMap<String, usize>,
    /// The files in `sources/`, and those of which pages were made.
    sources: usize,
    ingested_sources: usize,
    /// The runs that wait for a person.
    waiting_runs: usize,
    errors: usize,
    warnings: usize,
    metrics: Vec<MetricReading>,
    /// The newest entry of the log.
    newest_entry: Option<LogEntry>,
}

pub(super) fn run(root: &VaultRoot, wanted: Option<&str>, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let mut wikis = list_wikis(root)?;
    if let Some(wanted) = wanted {
        wikis.retain(|(name, _)| name == wanted);
        if wikis.is_empty() {
            bail!("there is no wiki `{wanted}`: `steward wiki status` lists all");
        }
    }
    let shown: Vec<WikiStatus> =
        wikis.into_iter().map(|(name, folder)| read_status(root, name, &folder)).collect::<anyhow::Result<_>>()?;
    out.print_value(&shown, || describe(&shown))?;
    Ok(CommandExit::Ok)
}

fn read_status(root: &VaultRoot, wiki: String, folder: &Path) -> anyhow::Result<WikiStatus> {
    let CheckedWiki { contents, manifest, findings } = check_wiki(folder, Utc::now())?;
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let mut kinds = BTreeMap::new();
    for page in contents.pages.iter() {
        *kinds.entry(page.kind.clone()).or_default() += 1;
    }
    let title = manifest.find_text(&["title"]).unwrap_or(&wiki).to_owned();
    let newest_entry = contents.log.as_deref().and_then(|log| read_log(log).entries.pop());
    let sources = contents.files.range("sources/".to_owned().."sources0".to_owned());
    let is_ingested = |file: &&String| contents.provenance.sources.contains_key(*file);
    Ok(WikiStatus {
        folder: folder.to_owned(),
        title,
        lifecycle: find_lifecycle(&contents, newest_entry.as_ref()),
        pages: contents.pages.len(),
        kinds,
        sources: sources.clone().count(),
        ingested_sources: sources.filter(is_ingested).count(),
        waiting_runs: StagedRuns::new(root)
            .list()?
            .iter()
            .filter(|run| run.meta.wiki == wiki && run.status.state == RunState::Pending && run.status.waits)
            .count(),
        metrics: read_metrics(root, &wiki)?,
        errors: count(Severity::Error),
        warnings: count(Severity::Warn),
        newest_entry,
        wiki,
    })
}

fn find_lifecycle(wiki: &WikiContents, newest: Option<&LogEntry>) -> WikiLifecycle {
    match newest.and_then(|entry| entry.log_type) {
        _ if wiki.pages.iter().all(|page| page.kind == OVERVIEW) => WikiLifecycle::Empty,
        Some(LogType::Lint) => WikiLifecycle::Linted,
        _ => WikiLifecycle::Populated,
    }
}

fn describe(wikis: &[WikiStatus]) -> String {
    if wikis.is_empty() {
        return "The vault has no wiki: `steward wiki init <name>` makes one.".to_owned();
    }
    let mut table = create_wide_table(
        &["wiki", "state", "pages", "sources", "waiting", "found", "newest entry"],
        &["wiki", "pages", "newest entry"],
        &["sources"],
    );
    for wiki in wikis {
        let kinds: Vec<String> = wiki.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let entry = wiki.newest_entry.as_ref().map_or_else(String::new, |entry| {
            format!("{} {}", entry.at.format("%Y-%m-%d %H:%M"), escape_text(&entry.subject))
        });
        table.add_row([
            escape_text(&format!("{} ({})", wiki.wiki, wiki.title)),
            wiki.lifecycle.to_string(),
            format!(
                "{}{}",
                wiki.pages,
                if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) }
            ),
            format!("{}, {} of them ingested", wiki.sources, wiki.ingested_sources),
            wiki.waiting_runs.to_string(),
            format!("{}, {}", count_noun(wiki.errors as u64, "error"), count_noun(wiki.warnings as u64, "warning")),
            entry,
        ]);
    }
    let measured = wikis.iter().flat_map(|wiki| {
        let known = wiki.metrics.iter().filter(|reading| reading.state != MetricState::Unknown);
        known.map(|reading| format!("\n{}: {}", wiki.wiki, describe_reading(reading)))
    });
    format!("{table}{}", measured.collect::<String>())
}
