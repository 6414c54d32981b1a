//! `steward wiki runs`: what was changed in the wikis, what waits, and the way back.
//!
//! The lists are read from audit records and staged runs. The process that holds the vault carries out the rest.

use super::requests::{NamedRun, describe_outcome, find_run, print_outcome, request_change};
use super::{OpenedWikis, open_vault, show_changed_lines};
use crate::cli::output::{CommandExit, CommandOutput, create_table, escape_text, prompt_yes_no};
use crate::cli::wiki::RunsCommand;
use crate::config::StewardConfig;
use anyhow::bail;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::OVERVIEW_FILE;
use steward_domain::wiki::details::{ClaimRecord, FileRecord, RecordedContent};
use steward_domain::wiki::page::may_be_page;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::run::RunId;
use steward_domain::wiki::verify::RulesVerdict;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::runs::{RunDetails, find_run_records, list_runs, read_run};
use steward_vault::wiki::staged::{StagedRunSummary, StagedRuns};
use steward_vault::wiki::state::find_wiki_folder;
use steward_workflows::{WikiRequest, WikiRunOutput};

pub(super) async fn run(vault: Option<&Path>, command: RunsCommand, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    match command {
        RunsCommand::List { wiki } => {
            wiki.as_deref().map(|wiki| find_wiki_folder(&root, wiki)).transpose()?;
            list(&root, wiki.as_deref(), out)
        }
        RunsCommand::Show { run } => show(&root, &run, out),
        RunsCommand::Approve { run } => approve(&config, &root, &run, out).await,
        RunsCommand::Reject { run } => {
            let NamedRun { run, wiki } = find_run(&root, &run)?;
            let output = request_change(&config, &wiki, WikiRequest::Reject { run: run.clone() }).await?;
            print_outcome(&output, &format!("rejected: {run}"), out)
        }
        RunsCommand::Revert { run, keep_edited } => {
            let NamedRun { run, wiki } = find_run(&root, &run)?;
            let request = WikiRequest::Revert { run: run.clone(), keep_edited };
            let output = request_change(&config, &wiki, request).await?;
            let hint = match &output {
                WikiRunOutput::Refused { message, .. } if message.starts_with("in the way") && !keep_edited => {
                    "\n`--keep-edited` leaves these pages as they are, and takes the others back"
                }
                WikiRunOutput::Refused { .. } | WikiRunOutput::Done { .. } => "",
            };
            let files = match &output {
                WikiRunOutput::Done { record: Some(record), .. } => list_taken_back(&root, record),
                WikiRunOutput::Done { record: None, .. } | WikiRunOutput::Refused { .. } => String::new(),
            };
            out.print_value(&output, || {
                format!("{}{files}{hint}", describe_outcome(&output, &format!("took back {run}")))
            })?;
            Ok(match output {
                WikiRunOutput::Done { .. } => CommandExit::Ok,
                WikiRunOutput::Refused { .. } => CommandExit::Refused,
            })
        }
    }
}

/// The pages that a rollback changed, one on each line.
fn list_taken_back(root: &VaultRoot, record: &RecordPath) -> String {
    let Some(run) = read_run(root, record) else { return String::new() };
    let pages = run.files.iter().filter(|file| may_be_page(&file.file) && file.file != OVERVIEW_FILE);
    let line = |file: &FileRecord| {
        let what = match (&file.before, &file.after) {
            (_, None) => format!("removed, kept in .trash/{}", run.summary.run),
            (None, Some(_)) => "back".to_owned(),
            (Some(_), Some(_)) => "changed; what others wrote stays".to_owned(),
        };
        format!("\n  {} ({what})", escape_text(&file.file))
    };
    pages.map(line).collect()
}

/// A run in a list.
#[derive(Debug, Serialize)]
struct ListedRun {
    run: RunId,
    wiki: String,
    run_type: String,
    at: DateTime<Utc>,
    state: String,
    what: String,
}

fn list(root: &VaultRoot, wiki: Option<&str>, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let committed = list_runs(root, wiki)?;
    let known: BTreeSet<RunId> = committed.iter().map(|run| run.run.clone()).collect();
    let mut runs: Vec<ListedRun> = committed
        .into_iter()
        .map(|run| ListedRun {
            state: run.reverted_by.map_or_else(|| "committed".to_owned(), |by| format!("taken back by {}", by.short())),
            run: run.run,
            wiki: run.wiki,
            run_type: run.run_type.to_string(),
            at: run.at,
            what: run.reasoning,
        })
        .collect();
    let waiting = StagedRuns::new(root).list()?.into_iter();
    let is_shown = |run: &StagedRunSummary| !known.contains(&run.meta.run) && wiki.is_none_or(|it| it == run.meta.wiki);
    runs.extend(waiting.filter(is_shown).map(|StagedRunSummary { meta, status }| ListedRun {
        run: meta.run,
        wiki: meta.wiki,
        run_type: meta.run_type.to_string(),
        at: meta.began,
        state: status.state.to_string(),
        what: status.reason,
    }));
    runs.sort_by(|a, b| (a.at, &a.run).cmp(&(b.at, &b.run)));
    out.print_value(&runs, || {
        if runs.is_empty() {
            return "No run yet: `steward wiki ingest` makes pages of a document.".to_owned();
        }
        let mut table = create_table(&["run", "wiki", "type", "at", "state", "what"]);
        for run in &runs {
            let at = run.at.format("%Y-%m-%d %H:%M").to_string();
            let row = [run.run.short(), &run.wiki, &run.run_type, &at, &run.state, &run.what];
            table.add_row(row.map(escape_text));
        }
        table.to_string()
    })?;
    Ok(CommandExit::Ok)
}

/// What a run changes, from its record or from where it is staged.
struct ShownRun {
    title: String,
    files: Vec<ShownFile>,
    claims: Vec<ClaimRecord>,
    /// What the rules found about a run that waits.
    verdict: Option<RulesVerdict>,
    /// Lines that it adds to the ideas.
    ideas: Vec<String>,
    /// What is staged; `None` for a run that was committed.
    staged: Option<ContentHash>,
}

struct ShownFile {
    file: String,
    before: Option<String>,
    after: Option<String>,
}

fn show(root: &VaultRoot, name: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let NamedRun { run, .. } = find_run(root, name)?;
    let shown = read_shown(root, &run)?;
    let files: Vec<&str> = shown.files.iter().map(|file| file.file.as_str()).collect();
    let value =
        json!({"run": run, "title": shown.title, "files": files, "claims": shown.claims, "verdict": shown.verdict});
    out.print_value(&value, || describe(&shown))?;
    Ok(CommandExit::Ok)
}

fn read_shown(root: &VaultRoot, run: &RunId) -> anyhow::Result<ShownRun> {
    let records = find_run_records(root, run.as_str())?;
    if let Some(RunDetails { summary, files, claims, missing_files }) =
        records.first().and_then(|record| read_run(root, record))
    {
        let missing = if missing_files.is_empty() { "" } else { "; some files were not reached, see its record" };
        let title = format!("{run}: {} of {}, {}{missing}", summary.run_type, summary.wiki, summary.reasoning);
        return Ok(ShownRun {
            title,
            files: files.into_iter().map(show_recorded).collect(),
            claims,
            verdict: None,
            ideas: Vec::new(),
            staged: None,
        });
    }
    let staged = StagedRuns::new(root).open(run)?;
    let (plan, files) = staged.read_staged()?.unwrap_or_default();
    let status = staged.read_status()?.map_or_else(String::new, |it| format!("{}: {}", it.state, it.reason));
    let verdict = staged.read_verdict()?;
    Ok(ShownRun {
        title: format!("{run}: {} of {}, {status}", staged.meta.run_type, staged.meta.wiki),
        files: files.into_iter().map(show_staged).collect(),
        claims: verdict.as_ref().map_or_else(Vec::new, |verdict| verdict.claims.clone()),
        verdict,
        staged: Some(plan.hash()),
        ideas: plan.ideas,
    })
}

fn show_recorded(file: FileRecord) -> ShownFile {
    let (before, after) = match file.content {
        RecordedContent::Page { before, after } => {
            (file.before.is_some().then_some(before), file.after.is_some().then_some(after))
        }
        RecordedContent::Entry(entry) => (Some(String::new()), Some(entry)),
        RecordedContent::Accepted(text) => (Some(text.clone()), Some(text)),
        RecordedContent::Hashes => (None, None),
    };
    ShownFile { file: file.file, before, after }
}

fn show_staged(file: RunFile) -> ShownFile {
    let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    ShownFile { file: file.path.file().to_owned(), before: text(file.before), after: text(file.after) }
}

fn describe(shown: &ShownRun) -> String {
    let mut text = format!("{}\n", escape_text(&shown.title));
    for finding in shown.verdict.iter().flat_map(|verdict| &verdict.findings) {
        text.push_str(&format!(
            "  {} {}: {}\n",
            escape_text(&finding.file),
            finding.fault,
            escape_text(&finding.problem)
        ));
    }
    for file in &shown.files {
        let state = match (&file.before, &file.after) {
            (None, Some(_)) => "new",
            (Some(_), None) => "removed",
            (Some(_), Some(_)) => "changed",
            (None, None) => "written by code",
        };
        text.push_str(&format!("\n{} ({state})\n", escape_text(&file.file)));
        let sides = (file.before.as_deref().unwrap_or_default(), file.after.as_deref().unwrap_or_default());
        text.push_str(&show_changed_lines(sides.0, sides.1));
    }
    text.extend(shown.ideas.iter().map(|idea| format!("\n_ideas.md\n  + {}\n", escape_text(idea))));
    for claim in &shown.claims {
        let sources: Vec<&str> = claim.anchors.iter().map(|anchor| anchor.source.as_str()).collect();
        text.push_str(&format!(
            "{} {} {}\n",
            claim.change,
            escape_text(&claim.claim),
            escape_text(&sources.join(", "))
        ));
    }
    text.trim_end().to_owned()
}

/// Commits a run that waits, after a person has seen it and agreed in a terminal.
async fn approve(
    config: &StewardConfig,
    root: &VaultRoot,
    name: &str,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let NamedRun { run, wiki } = find_run(root, name)?;
    let shown = read_shown(root, &run)?;
    let Some(staged) = shown.staged.clone() else { bail!("the run {run} is committed already") };
    out.print_text(&describe(&shown))?;
    if !prompt_yes_no("Commit this run?") {
        out.print_text(&format!(
            "nothing was committed. Answer `y` in a terminal: `steward wiki runs approve {}`",
            run.short()
        ))?;
        return Ok(CommandExit::Refused);
    }
    let output = request_change(config, &wiki, WikiRequest::Approve { run: run.clone(), staged }).await?;
    print_outcome(&output, &format!("committed: {run}"), out)
}
