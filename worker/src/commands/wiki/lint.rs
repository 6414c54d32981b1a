//! `steward wiki lint`: checks a wiki without a model.
//!
//! Nothing is changed and nothing is logged, unless the index is to be rendered anew first, or a page is confirmed.

use super::requests::{describe_outcome, request_change};
use super::{CheckReport, OpenedWiki, validate};
use crate::cli::output::{CommandExit, CommandOutput};
use anyhow::Context;
use chrono::Utc;
use steward_domain::wiki::MANIFEST_FILE;
use steward_vault::wiki::health::{CheckedWiki, check_wiki};
use steward_workflows::{WikiRequest, WikiRunOutput};

/// What is done before the wiki is checked.
pub(super) struct LintChanges {
    pub(super) fix: bool,
    /// The page that a person found still right.
    pub(super) confirm: Option<String>,
}

impl LintChanges {
    fn list_requests(self) -> Vec<WikiRequest> {
        let confirm = self.confirm.map(|page| WikiRequest::Confirm { page });
        confirm.into_iter().chain(self.fix.then_some(WikiRequest::Fix)).collect()
    }
}

pub(super) async fn run(wiki: &OpenedWiki, changes: LintChanges, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let folder = &wiki.folder;
    if folder.is_dir() && folder.join(MANIFEST_FILE).symlink_metadata().is_err() {
        return CheckReport { findings: vec![validate::find_no_manifest(folder)], checked: 1 }.print(out);
    }
    for request in changes.list_requests() {
        let Some(vault) = &wiki.vault else {
            eprintln!("error: --fix and --confirm need a wiki of the vault: nothing was changed");
            return Ok(CommandExit::Usage);
        };
        let is_fix = request == WikiRequest::Fix;
        let output = request_change(&vault.config, &vault.name, request).await?;
        let done = match &output {
            WikiRunOutput::Done { .. } if !is_fix => "the page is confirmed",
            WikiRunOutput::Done { record: None, .. } => "the index shows the pages as they are",
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
    let CheckedWiki { contents, findings, .. } =
        checked.with_context(|| format!("failed to check the folder {}", folder.display()))?;
    CheckReport { findings, checked: contents.pages.len() + 1 }.print(out)
}
