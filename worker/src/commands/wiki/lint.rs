//! `steward wiki lint`: checks a wiki without a model.
//!
//! Nothing is changed and nothing is logged, unless the index is to be rendered anew first.

use super::requests::{describe_outcome, request_change};
use super::{CheckReport, OpenedWiki, validate};
use crate::cli::output::{CommandExit, CommandOutput};
use anyhow::Context;
use chrono::Utc;
use steward_domain::wiki::MANIFEST_FILE;
use steward_vault::wiki::health::{CheckedWiki, check_wiki};
use steward_workflows::{WikiRequest, WikiRunOutput};

pub(super) async fn run(wiki: &OpenedWiki, fix: bool, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let folder = &wiki.folder;
    if folder.is_dir() && folder.join(MANIFEST_FILE).symlink_metadata().is_err() {
        return CheckReport { findings: vec![validate::find_no_manifest(folder)], checked: 1 }.print(out);
    }
    if fix {
        let Some(vault) = &wiki.vault else {
            eprintln!("error: --fix needs a wiki of the vault: nothing was changed");
            return Ok(CommandExit::Usage);
        };
        let output = request_change(&vault.config, &vault.name, WikiRequest::Fix).await?;
        let done = match &output {
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
