//! `steward wiki runs`: what was changed in the wikis, what waits, and the way back.
//!
//! The lists are read from audit records and staged runs. The process that holds the vault carries out the rest.

use super::requests::{NamedRun, describe_outcome, find_run, print_outcome, request_change};
use super::{OpenedWikis, open_vault};
use crate::cli::ResolveArgs;
use crate::cli::output::{CommandError, CommandExit, CommandOutput, escape_text, prompt_yes_no};
use crate::cli::style::TextStyle;
use crate::cli::table::create_table;
use crate::cli::wiki::RunsCommand;
use crate::config::StewardConfig;
use anyhow::{Context, bail};
use std::io::IsTerminal;
use std::path::Path;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::OVERVIEW_FILE;
use steward_domain::wiki::details::FileRecord;
use steward_domain::wiki::page::may_be_page;
use steward_domain::wiki::run::RunId;
use steward_server::views::wiki::{DiffSide, WikiRunRow, WikiRunView, find_wiki_run, list_wiki_runs};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::runs::read_run;
use steward_vault::wiki::state::find_wiki_folder;
use steward_workflows::{WikiRequest, WikiRunOutput};

/// Undoes, confirms or dismisses the run of a wiki that has this name; `None` if none has it.
pub(crate) async fn resolve_run(
    config: &StewardConfig,
    kind: ResolutionKind,
    resolution: &ResolveArgs,
    out: CommandOutput,
) -> anyhow::Result<Option<CommandExit>> {
    let [name] = resolution.actions.as_slice() else { return Ok(None) };
    let Ok(root) = config.vault_folder().and_then(|vault| Ok(VaultRoot::open(vault)?)) else { return Ok(None) };
    let Ok(NamedRun { run, .. }) = find_run(&root, name) else { return Ok(None) };
    let (name, reason) = (run.to_string(), resolution.reason.clone());
    if resolution.by.is_some() || kind == ResolutionKind::Confirm && reason.is_some() {
        let left_out = if resolution.by.is_some() { "--by" } else { "--reason" };
        bail!(CommandError::Usage(format!("{run} is a run of a wiki: leave out {left_out}")));
    }
    let command = match kind {
        ResolutionKind::Undo => RunsCommand::Revert { run: name, keep_edited: false, reason },
        ResolutionKind::Confirm => RunsCommand::Approve { run: name },
        ResolutionKind::Dismiss => RunsCommand::Reject { run: name, reason },
        _ => return Ok(None),
    };
    carry_out(config, &root, command, out).await.map(Some)
}

pub(super) async fn run(vault: Option<&Path>, command: RunsCommand, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    carry_out(&config, &root, command, out).await
}

async fn carry_out(
    config: &StewardConfig,
    root: &VaultRoot,
    command: RunsCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    match command {
        RunsCommand::List { wiki } => {
            wiki.as_deref().map(|wiki| find_wiki_folder(root, wiki)).transpose()?;
            list(root, wiki.as_deref(), out)
        }
        RunsCommand::Show { run } => show(root, &run, out),
        RunsCommand::Approve { run } => approve(config, root, &run, None, out).await,
        RunsCommand::Override { run, reason } => approve(config, root, &run, Some(reason), out).await,
        RunsCommand::Reject { run, reason } => {
            let NamedRun { run, wiki } = find_run(root, &run)?;
            let output = request_change(config, &wiki, WikiRequest::Reject { run: run.clone(), reason }).await?;
            print_outcome(&output, &format!("rejected: {run}"), out)
        }
        RunsCommand::Revert { run, keep_edited, reason } => {
            let NamedRun { run, wiki } = find_run(root, &run)?;
            let request = WikiRequest::Revert { run: run.clone(), keep_edited, reason };
            let output = request_change(config, &wiki, request).await?;
            let hint = match &output {
                WikiRunOutput::Refused { message, .. } if message.starts_with("in the way") && !keep_edited => {
                    "\n`--keep-edited` leaves these pages as they are, and takes the others back"
                }
                WikiRunOutput::Refused { .. } | WikiRunOutput::Done { .. } => "",
            };
            let files = match &output {
                WikiRunOutput::Done { record: Some(record), .. } => list_taken_back(root, record),
                WikiRunOutput::Done { record: None, .. } | WikiRunOutput::Refused { .. } => String::new(),
            };
            out.print_value(&output, || match &output {
                WikiRunOutput::Done { record, notes, .. } => {
                    let record = record.as_ref().map(|record| format!("; see {record}")).unwrap_or_default();
                    let notes: String = notes.iter().map(|note| format!("\n  {}", escape_text(note))).collect();
                    format!("took back {run}{record}{files}{notes}")
                }
                WikiRunOutput::Refused { .. } => format!("{}{hint}", describe_outcome(&output, "")),
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

fn list(root: &VaultRoot, wiki: Option<&str>, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let mut runs = list_wiki_runs(root, wiki, usize::MAX)?;
    runs.reverse();
    out.print_value(&runs, || {
        if runs.is_empty() {
            return "No run yet: `steward wiki ingest` makes pages of a document.".to_owned();
        }
        let mut table = create_table(&["run", "wiki", "type", "at", "state", "what"], &["state", "what"]);
        for run in &runs {
            let at = TextStyle::current().show_moment(run.at);
            let state = run.describe_state();
            let row = [run.short(), &run.wiki, &run.run_type, &at, &state, &run.what];
            table.add_row(row.map(escape_text));
        }
        table.to_string()
    })?;
    Ok(CommandExit::Ok)
}

fn show(root: &VaultRoot, name: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let shown = read_shown(root, &find_run(root, name)?.run)?;
    out.print_value(&shown, || describe(&shown))?;
    Ok(CommandExit::Ok)
}

fn read_shown(root: &VaultRoot, run: &RunId) -> anyhow::Result<WikiRunView> {
    find_wiki_run(root, run.as_str())?.with_context(|| format!("the run {run} cannot be read"))
}

fn describe(shown: &WikiRunView) -> String {
    let WikiRunRow { run, run_type, wiki, what, .. } = &shown.row;
    let missing = if shown.missing_files.is_empty() { "" } else { "; some files were not reached, see its record" };
    let title = format!("{run}: {run_type} of {wiki}, {}: {what}{missing}", shown.row.describe_state());
    let mut text = format!("{}\n", escape_text(&title));
    text.extend(shown.findings.iter().map(|finding| format!("  {}\n", escape_text(finding))));
    for file in &shown.files {
        let change = if file.change == "rendered" { "written by code" } else { &file.change };
        text.push_str(&format!("\n{} ({change})\n", escape_text(&file.file)));
        for line in &file.lines {
            let sign = if line.side == DiffSide::Before { '-' } else { '+' };
            text.push_str(&format!("  {sign} {}\n", escape_text(&line.text)));
        }
    }
    text.extend(shown.ideas.iter().map(|idea| format!("\n_ideas.md\n  + {}\n", escape_text(idea))));
    text.extend(shown.claims.iter().map(|claim| format!("{}\n", escape_text(claim))));
    text.trim_end().to_owned()
}

/// Commits a run that waits, after a person has seen it and agreed in a terminal; with a reason one that a verifier refused.
async fn approve(
    config: &StewardConfig,
    root: &VaultRoot,
    name: &str,
    override_reason: Option<String>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    if out.json {
        bail!(CommandError::Usage("a person must see the run first: leave out --json".to_owned()));
    }
    let NamedRun { run, wiki } = find_run(root, name)?;
    let shown = read_shown(root, &run)?;
    let command = if override_reason.is_some() { "override" } else { "approve" };
    let staged = match (&shown.staged, &override_reason) {
        (Some(staged), None) if shown.row.waits => staged.clone(),
        (Some(staged), Some(_)) if shown.may_override => staged.clone(),
        (_, Some(_)) => bail!(CommandError::Refused(format!(
            "the run {run} cannot be overridden: it is {}, and no verifier refused what is staged",
            shown.row.describe_state()
        ))),
        (_, None) => {
            bail!(CommandError::Refused(format!("the run {run} does not wait: it is {}", shown.row.describe_state())))
        }
    };
    out.print_text(&describe(&shown))?;
    if !prompt_yes_no("Commit this run?") {
        let hint = format!(" Answer `y` in a terminal: `steward wiki runs {command} {}`", run.short());
        let hint = if std::io::stdin().is_terminal() { "" } else { &hint };
        out.print_text(&format!("nothing was committed.{hint}"))?;
        return Ok(CommandExit::Refused);
    }
    let output = request_change(
        config,
        &wiki,
        WikiRequest::Approve { run: run.clone(), staged, override_reason, in_terminal: true },
    )
    .await?;
    print_outcome(&output, &format!("committed: {run}"), out)
}
