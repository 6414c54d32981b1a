//! `steward wiki lint`: checks a wiki without a model.
//!
//! Nothing is changed and nothing is logged.

use super::{CheckReport, validate};
use crate::cli::output::{CommandExit, CommandOutput};
use anyhow::Context;
use chrono::Utc;
use std::path::Path;
use steward_domain::wiki::MANIFEST_FILE;
use steward_vault::wiki::health::{CheckedWiki, check_wiki};

pub(super) fn run(folder: &Path, out: CommandOutput) -> anyhow::Result<CommandExit> {
    if folder.is_dir() && folder.join(MANIFEST_FILE).symlink_metadata().is_err() {
        return CheckReport { findings: vec![validate::find_no_manifest(folder)], checked: 1 }.print(out);
    }
    let checked = check_wiki(folder, Utc::now());
    let CheckedWiki { contents, findings, .. } =
        checked.with_context(|| format!("failed to check the folder {}", folder.display()))?;
    CheckReport { findings, checked: contents.pages.len() + 1 }.print(out)
}
