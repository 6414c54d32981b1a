//! `steward wiki lint`: checks a wiki, without a model unless a person asks for it.
//!
//! The log of a wiki of the vault gets an entry if the wiki is another one than at its last check. Nothing else is changed, unless
//! pages are to be corrected and the index rendered anew first, or a page is confirmed.

use super::requests::{describe_outcome, request_change};
use super::review::find_deep;
use super::{CheckReport, OpenedWiki, VaultWiki, validate};
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::temporal::is_nothing_running;
use anyhow::Context;
use chrono::Utc;
use std::time::Duration;
use steward_domain::wiki::MANIFEST_FILE;
use steward_vault::wiki::health::{CheckedWiki, check_wiki};
use steward_vault::wiki::lint_log::is_check_due;
use steward_workflows::{WikiRequest, WikiRunOutput};

/// How long a command waits until its check is noted in the log. A worker that starts later notes it, too.
const LOG_PATIENCE: Duration = Duration::from_secs(10);

/// What is done before the wiki is checked.
pub(super) struct LintChanges {
    pub(super) fix: bool,
    /// A model reads pages, too.
    pub(super) deep: bool,
    /// The page that a person found still right.
    pub(super) confirm: Option<String>,
}

impl LintChanges {
    fn list_requests(self) -> Vec<WikiRequest> {
        let confirm = self.confirm.map(|page| WikiRequest::Confirm { page });
        confirm.into_iter().chain(self.fix.then_some(WikiRequest::Fix { pages: true })).collect()
    }
}

pub(super) async fn run(wiki: &OpenedWiki, changes: LintChanges, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let folder = &wiki.folder;
    if wiki.vault.is_none() && folder.is_dir() && folder.join(MANIFEST_FILE).symlink_metadata().is_err() {
        return CheckReport { findings: vec![validate::find_no_manifest(folder)], checked: 1 }.print(out);
    }
    let is_deep = changes.deep;
    if is_deep && wiki.vault.is_none() {
        eprintln!("error: --deep needs a wiki of the vault");
        return Ok(CommandExit::Usage);
    }
    for request in changes.list_requests() {
        let Some(vault) = &wiki.vault else {
            eprintln!("error: --fix and --confirm need a wiki of the vault: nothing was changed");
            return Ok(CommandExit::Usage);
        };
        let is_fix = matches!(request, WikiRequest::Fix { .. });
        let output = request_change(&vault.config, &vault.name, request).await?;
        let done = match &output {
            WikiRunOutput::Done { .. } if !is_fix => "the page is confirmed",
            WikiRunOutput::Done { record: None, .. } => {
                "nothing to fix: the index shows the pages as they are, and the overview the disputes"
            }
            WikiRunOutput::Done { .. } | WikiRunOutput::Refused { .. } => {
                "the index and the overview were rendered anew"
            }
        };
        eprintln!("{}", describe_outcome(&output, done));
        if matches!(output, WikiRunOutput::Refused { .. }) {
            return Ok(CommandExit::Refused);
        }
    }
    let checked = check_wiki(folder, Utc::now());
    let checked = checked.with_context(|| format!("failed to check the folder {}", folder.display()))?;
    let is_due = match &wiki.vault {
        Some(vault) => is_check_due(&vault.root, &vault.name, &checked)?,
        None => false,
    };
    let CheckedWiki { contents, mut findings, .. } = checked;
    if let Some(vault) = &wiki.vault {
        for finding in &mut findings {
            finding.fix = finding.fix.replace("<wiki>", &vault.name);
        }
    }
    let mut is_refused = false;
    if let Some(vault) = wiki.vault.as_ref().filter(|_| is_deep) {
        match find_deep(vault).await? {
            Ok(found) => findings.extend(found),
            Err(reason) => {
                eprintln!("the pages were not read by a model: {}", escape_text(&reason));
                is_refused = true;
            }
        }
    }
    let exit = CheckReport { findings, checked: contents.pages.len() + 1 }.print(out)?;
    if let Some(vault) = wiki.vault.as_ref().filter(|_| is_due) {
        note_check(vault).await;
    }
    Ok(if is_refused { CommandExit::Refused } else { exit })
}

/// Has the check noted in the log of the wiki. The report does not depend on it.
async fn note_check(vault: &VaultWiki) {
    let noting = request_change(&vault.config, &vault.name, WikiRequest::Lint);
    // A server and a worker of this command's own end in order. Another server keeps the request.
    let is_own = is_nothing_running(&vault.config).await.unwrap_or(false);
    let patience = if is_own { Duration::MAX } else { LOG_PATIENCE };
    match tokio::time::timeout(patience, noting).await {
        Ok(Ok(WikiRunOutput::Done { .. })) => {}
        Ok(Ok(refused @ WikiRunOutput::Refused { .. })) => {
            eprintln!("the check is not noted in the log: {}", describe_outcome(&refused, ""));
        }
        Ok(Err(e)) => eprintln!("the check is not noted in the log: {e:#}"),
        Err(_) => eprintln!("the check is noted in the log as soon as a worker runs for the vault"),
    }
}
