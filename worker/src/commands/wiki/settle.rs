//! `steward wiki settle`: one side of a dispute stays.
//!
//! The command is its own confirmation. The process that holds the vault carries it out.

use super::requests::{print_outcome, request_change};
use super::{OpenedWikis, open_vault};
use crate::cli::output::{CommandError, CommandExit, CommandOutput, escape_text};
use anyhow::bail;
use std::path::Path;
use steward_vault::wiki::state::find_wiki_folder;
use steward_workflows::WikiRequest;

pub(super) async fn run(
    vault: Option<&Path>,
    wiki: &str,
    claim: &str,
    keep: &str,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    find_wiki_folder(&root, wiki)?;
    let Some((page, claim)) = claim.split_once('#') else {
        bail!(CommandError::Usage(format!(
            "`{}` is not the name of a claim: it looks like plot-12#c6107d23f",
            escape_text(claim)
        )));
    };
    // The other claim may be named with its page, too.
    let keep = keep.rsplit('#').next().unwrap_or(keep);
    let request = WikiRequest::Settle { page: page.to_owned(), claim: claim.to_owned(), keep: keep.to_owned() };
    let output = request_change(&config, wiki, request).await?;
    print_outcome(&output, &format!("{} is settled: {} stays", escape_text(page), escape_text(keep)), out)
}
