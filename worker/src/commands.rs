//! One file a command.
//!
//! A command reads what it needs, asks the server or the vault, and hands one value to [`crate::out`],
//! which shows it to a person or a program. Decisions are taken elsewhere; here are only words and
//! exit codes. What several commands look up is below.

pub(crate) mod answer;
pub(crate) mod audit;
pub(crate) mod brake;
pub(crate) mod doctor;
pub(crate) mod example;
pub(crate) mod index;
pub(crate) mod replay;
pub(crate) mod schedules;
pub(crate) mod status;
pub(crate) mod tick;
pub(crate) mod up;

use crate::config::Config;
use anyhow::{Context, bail};
use chrono::Utc;
use steward_domain::path::{RecordKind, RecordPath, parse_link};
use steward_vault::index::{Found, Index};
use steward_vault::keeper::Keeper;
use steward_vault::root::Root;

/// Opens a vault to look at it: brings the index up to date unless a worker is doing that, which
/// must see for itself what is new: it wakes matters and registers schedules by it.
pub(crate) async fn look(config: &Config) -> anyhow::Result<(Root, Index)> {
    let root = Root::open(config.vault()?)?;
    let state = config.state_dir()?;
    let index = Index::open(&state).await?;
    if !Keeper::is_held(&root) {
        index.sync_all(&root, Utc::now()).await?;
    }
    Ok((root, index))
}

/// The audit record that the first digits of an id name.
pub(crate) async fn find(index: &Index, action: &str) -> anyhow::Result<RecordPath> {
    match index.find_action(action).await? {
        Found::One(path) => Ok(path),
        Found::None => bail!("no action has the id {action}: list them with `steward audit list`"),
        Found::Many(paths) => bail!("{} actions begin with {action}: give more digits", paths.len()),
    }
}

/// A matter as a person names it: its path, its link or its slug.
pub(crate) fn matter(text: &str) -> anyhow::Result<RecordPath> {
    parse_link(RecordKind::Matter, text)
        .with_context(|| format!("failed to read `{}` as a matter", text.escape_debug()))
}
