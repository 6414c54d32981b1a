//! What commands ask of the process that holds the vault: to accept, to add, to ingest, to take back.
//!
//! The command itself writes nothing into a wiki. If nothing runs for the vault, it starts what it needs and stops it again.

use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::commands::resolve::request_from_vault;
use crate::config::StewardConfig;
use anyhow::bail;
use chrono::Utc;
use std::collections::BTreeMap;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::plan::AcceptedFile;
use steward_domain::wiki::run::RunId;
use steward_server::temporal::resolve::ResolutionClient;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::runs::{find_entry_record, find_rejected_runs, find_run_records, read_run};
use steward_vault::wiki::staged::StagedRuns;
use steward_workflows::{WikiRequest, WikiRunInput, WikiRunOutput};

/// Asks for one change of a wiki, and waits for its outcome.
pub(super) async fn request_change(
    config: &StewardConfig,
    wiki: &str,
    request: WikiRequest,
) -> anyhow::Result<WikiRunOutput> {
    let by = steward_server::access::parse_caller_name(&config.operator)?;
    let input = WikiRunInput { wiki: wiki.to_owned(), by, at: Utc::now(), request };
    request_from_vault(config, async |client: ResolutionClient| client.request_wiki_run(input).await).await
}

/// Accepts files as they were shown.
pub(super) async fn accept_files(
    config: &StewardConfig,
    wiki: &str,
    files: &[AcceptedFile],
) -> anyhow::Result<WikiRunOutput> {
    let hash = |file: &AcceptedFile| (file.file.to_owned(), ContentHash::hash_bytes(file.text.as_bytes()));
    let files: BTreeMap<String, ContentHash> = files.iter().map(hash).collect();
    request_change(config, wiki, WikiRequest::Accept { files }).await
}

/// A run that a person named, and its wiki.
pub(super) struct NamedRun {
    pub(super) run: RunId,
    pub(super) wiki: String,
}

/// Finds a run by its whole name or by the 8 characters at its end: one that was committed, that is staged, or that ended otherwise.
pub(super) fn find_run(root: &VaultRoot, name: &str) -> anyhow::Result<NamedRun> {
    let committed = find_run_records(root, name)?.into_iter().filter_map(|record| read_run(root, &record));
    let mut found: Vec<NamedRun> =
        committed.map(|run| NamedRun { run: run.summary.run, wiki: run.summary.wiki }).collect();
    for staged in StagedRuns::new(root).list_named(name)? {
        if found.iter().all(|known| known.run != staged.meta.run) {
            found.push(NamedRun { run: staged.meta.run, wiki: staged.meta.wiki });
        }
    }
    for ended in find_rejected_runs(root, name)? {
        if found.iter().all(|known| known.run != ended.run) {
            found.push(NamedRun { run: ended.run, wiki: ended.wiki });
        }
    }
    match found.len() {
        0 => match find_entry_record(root, name)? {
            Some(record) => bail!("`{}` changed no page; its record is {record}", escape_text(name)),
            None => bail!("there is no run `{}`: `steward wiki runs list` shows all", escape_text(name)),
        },
        1 => Ok(found.remove(0)),
        count => bail!("{count} runs end in `{}`: give the whole name", escape_text(name)),
    }
}

/// Prints the outcome of a change.
pub(super) fn print_outcome(output: &WikiRunOutput, done: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    out.print_value(output, || describe_outcome(output, done))?;
    Ok(match output {
        WikiRunOutput::Done { .. } => CommandExit::Ok,
        WikiRunOutput::Refused { .. } => CommandExit::Refused,
    })
}

/// The outcome in words; `done` says what was done.
pub(super) fn describe_outcome(output: &WikiRunOutput, done: &str) -> String {
    match output {
        WikiRunOutput::Done { record, notes, .. } => {
            let record = record.as_ref().map(|record| format!("; see {record}")).unwrap_or_default();
            let notes: String = notes.iter().map(|note| format!("\n{}", escape_text(note))).collect();
            format!("{done}{record}{notes}")
        }
        WikiRunOutput::Refused { message, .. } => format!("refused: {}", escape_text(message)),
    }
}
