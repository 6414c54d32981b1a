//! The entries of the history, and what is read of their runs beside the rows of the list.
//!
//! A run is read from its record or its folder only when a filter or an answer needs it.

use super::OPEN;
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::wiki::excerpt::shorten_words;
use crate::mcp::workspace::Workspace;
use crate::views::wiki::{WikiRunRow, shorten_run};
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use steward_domain::wiki::log::LogEntry;
use steward_domain::wiki::page::may_be_page;
use steward_domain::wiki::run::RunId;
use steward_domain::wiki::verify::{MAX_TOUCHED_PAGES, Verdict};
use steward_vault::wiki::run_facts::{RunFacts, read_run_facts};
use steward_vault::wiki::staged::StagedRunSummary;

/// The most characters of a title, of the lines below it, and of a name.
const MAX_TITLE: usize = 600;
const MAX_DETAILS: usize = 3_000;
const MAX_NAME: usize = 200;
/// How the log calls a verdict, and one against which a person committed a run.
const VERDICT: &str = "verdict: ";
const OVERRIDDEN: &str = "commit_override";

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct HistoryEntry {
    at: String,
    pub(super) op: String,
    /// Outside words: what was done, or the subject in the log.
    title: OutsideWords,
    // The 8 characters that name the run; absent for what was no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// For `steward_undo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    /// For a person.
    waits: bool,
    touched: Vec<String>,
    /// Outside words: who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<OutsideWords>,
    /// Outside words: the lines of the log below the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<OutsideWords>,
}

/// An entry, and what it is about.
pub(super) struct FoundEntry {
    pub(super) entry: HistoryEntry,
    /// The run, if it was one.
    pub(super) run: Option<WikiRunRow>,
    logged: Option<LogEntry>,
    facts: Option<RunFacts>,
}

impl FoundEntry {
    /// A run, and what the log says of it.
    pub(super) fn of_run(run: WikiRunRow, logged: Option<LogEntry>) -> Self {
        let title = logged.as_ref().map_or(run.what.as_str(), |entry| entry.subject.as_str());
        let entry = HistoryEntry {
            at: steward_domain::time::format_seconds(run.at),
            op: run.run_type.clone(),
            title: shorten_words(title, MAX_TITLE),
            run: Some(run.short().to_owned()),
            action: run.is_submitted().then(|| run.derive_action()),
            status: Some(run.state.clone()),
            verdict: None,
            waits: run.waits,
            touched: Vec::new(),
            by: None,
            details: logged.as_ref().map(show_bullets),
        };
        Self { entry, run: Some(run), logged, facts: None }
    }

    /// What stands in the log alone. A source that was added has a name like a run.
    pub(super) fn of_log(logged: LogEntry, run: Option<&str>) -> Self {
        let entry = HistoryEntry {
            at: steward_domain::time::format_seconds(logged.at),
            op: logged.log_type.map(|log_type| log_type.to_string()).unwrap_or_default(),
            title: shorten_words(&logged.subject, MAX_TITLE),
            run: run.map(|run| shorten_run(run).to_owned()),
            action: None,
            status: None,
            verdict: None,
            waits: false,
            touched: Vec::new(),
            by: None,
            details: Some(show_bullets(&logged)).filter(|details| !details.0.is_empty()),
        };
        Self { entry, run: None, logged: Some(logged), facts: None }
    }

    /// Whether it touched this page.
    pub(super) fn has_touched(&mut self, file: &str, reader: &FactReader<'_>) -> bool {
        self.read_facts(reader).touched.iter().any(|touched| touched == file)
    }

    /// The last verdict about the run.
    pub(super) fn find_verdict(&mut self, reader: &FactReader<'_>) -> Option<Verdict> {
        self.read_facts(reader).verdict
    }

    /// The entry with all that is known of its run.
    pub(super) fn complete(mut self, reader: &FactReader<'_>) -> HistoryEntry {
        let facts = self.read_facts(reader).clone();
        let mut entry = self.entry;
        entry.verdict = facts.verdict.map(|verdict| verdict.to_string());
        entry.touched = facts.touched.iter().filter_map(|file| to_path(file)).take(MAX_TOUCHED_PAGES).collect();
        entry.by = facts.by.map(|by| shorten_words(&by, MAX_NAME));
        entry
    }

    fn read_facts(&mut self, reader: &FactReader<'_>) -> &RunFacts {
        let Self { run, logged, facts, .. } = self;
        facts.get_or_insert_with(|| match run {
            Some(run) => {
                let facts = reader.read_run(run);
                let verdict = logged.as_ref().and_then(find_logged_verdict).or(facts.verdict);
                RunFacts { verdict, ..facts }
            }
            None => RunFacts {
                touched: logged.as_ref().map(|logged| reader.find_pages(logged)).unwrap_or_default(),
                ..RunFacts::default()
            },
        })
    }
}

/// Reads what is known of runs.
pub(super) struct FactReader<'a> {
    workspace: &'a Workspace<'a>,
    staged: BTreeMap<String, StagedRunSummary>,
    /// The files of pages, by their slugs. They are listed when an entry of the log alone needs them.
    pages: OnceCell<BTreeMap<String, String>>,
}

impl<'a> FactReader<'a> {
    pub(super) fn new(workspace: &'a Workspace<'a>, staged: &[StagedRunSummary]) -> Self {
        let staged = staged.iter().filter(|run| run.meta.wiki == workspace.name);
        let staged = staged.map(|run| (run.meta.run.to_string(), run.clone())).collect();
        Self { workspace, staged, pages: OnceCell::new() }
    }

    fn read_run(&self, row: &WikiRunRow) -> RunFacts {
        let Ok(run) = row.run.parse::<RunId>() else { return RunFacts::default() };
        let staged = self.staged.get(&row.run);
        let facts = read_run_facts(self.workspace.vault.root(), &row.wiki, &run, staged);
        // What an open run has staged is its caller's alone, and its verdict is that about an earlier submission.
        let is_open = row.state == OPEN && !row.waits && facts.verdict.is_none();
        if is_open { RunFacts { touched: Vec::new(), ..facts } } else { facts }
    }

    /// The pages that an entry of the log names.
    fn find_pages(&self, logged: &LogEntry) -> Vec<String> {
        let names = logged.list_touched();
        if names.is_empty() {
            return Vec::new();
        }
        let pages = self.pages.get_or_init(|| {
            let files = self.workspace.folder.read_some(&[]).files.into_iter().filter(|file| may_be_page(file));
            files.map(|file| (find_slug(&file).to_owned(), file)).collect()
        });
        names.iter().filter_map(|name| pages.get(find_slug(name)).cloned()).collect()
    }
}

/// The name of a page, as a link or a path has it.
fn find_slug(name: &str) -> &str {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.strip_suffix(".md").unwrap_or(name)
}

fn show_bullets(entry: &LogEntry) -> OutsideWords {
    shorten_words(&entry.bullets.join("\n"), MAX_DETAILS)
}

/// The verdict about a committed run, as its entry in the log says. A person may have committed it all the same.
fn find_logged_verdict(entry: &LogEntry) -> Option<Verdict> {
    let words = entry.bullets.iter().filter_map(|bullet| Some(bullet.split_once(VERDICT)?.1));
    let words: Vec<&str> = words.filter_map(|rest| rest.split([',', ';', ' ']).next()).collect();
    if words.contains(&OVERRIDDEN) {
        return Some(Verdict::Reject);
    }
    words.into_iter().find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::wiki::log::read_log;

    #[test]
    fn the_log_says_the_verdict() {
        for (bullets, verdict) in [
            ("- run: r-1, writer: assistant, verdict: commit, verifier: a/b\n", Some(Verdict::Commit)),
            (
                "- run: r-1, writer: a/b, verdict: commit\n- verdict: commit_override; x committed it\n",
                Some(Verdict::Reject),
            ),
            ("- touched: [[lease]]\n", None),
        ] {
            let log = format!("## [2026-11-22T09:15:04Z] ingest | The lease\n{bullets}");
            assert_eq!(find_logged_verdict(&read_log(&log).entries[0]), verdict, "{bullets}");
        }
        assert_eq!((find_slug("concepts/lease.md"), find_slug("lease")), ("lease", "lease"));
    }
}
