//! Finds what `steward why` is asked about: a note by its name, path, link or title, or an action by its id.
//!
//! A name comes before an id, and an id before a title. It reads the index alone and guesses nothing: what is only alike is
//! named in the error.

use super::super::names::{find_by_name, find_by_title, is_id};
use crate::cli::output::CommandError;
use anyhow::{Context, bail};
use steward_domain::action::audit::ActionKind;
use steward_server::views::{FactsError, VaultViews};
use steward_vault::index::{ActionRow, Index, SubjectRow};

/// A note, and the action of it that is explained.
pub(super) struct WhyTarget {
    pub(super) subject: SubjectRow,
    /// `None` for the newest decision.
    pub(super) action: Option<ActionRow>,
}

/// Finds the note that a text means. A name comes first, then the id of an action, then a title.
///
/// # Errors
/// Nothing or several things are meant. The message names what is like it.
pub(super) async fn find_target(views: &VaultViews, index: &Index, text: &str) -> anyhow::Result<WhyTarget> {
    if text.trim().is_empty() {
        return Err(CommandError::Usage("name a task, a matter or an action".to_owned()).into());
    }
    let (path, subject) = find_by_name(index, text).await?;
    if let Some(subject) = subject {
        return Ok(WhyTarget { subject, action: None });
    }
    if let Some(exclusion) = index.find_exclusion(&path).await? {
        bail!("{path} is left out: {exclusion}");
    }
    let problems = index.read().list_problems().await?;
    if let Some(problem) = problems.iter().find(|problem| problem.path == path.as_str()) {
        bail!("{path} cannot be read: {}", problem.message);
    }
    if is_id(text) {
        match views.find_action_row(text).await {
            Ok(row) => return find_by_action(index, row).await,
            Err(FactsError::Unknown { .. }) => {}
            Err(e) => return Err(e.into()),
        }
    }
    let path = find_by_title(index, None, text).await?;
    let subject = index.read().find_subject(&path).await?;
    let subject = subject.with_context(|| format!("{path} cannot be read: see `steward status`"))?;
    Ok(WhyTarget { subject, action: None })
}

/// The note of an action. Of the answer to a decision, the decision is explained.
async fn find_by_action(index: &Index, row: ActionRow) -> anyhow::Result<WhyTarget> {
    let subject = index.read().find_subject(&row.target).await?;
    let subject = subject.with_context(|| format!("{}, which the action is about, is not in the vault", row.target))?;
    if row.kind == ActionKind::Action {
        return Ok(WhyTarget { subject, action: Some(row) });
    }
    let all = index.actions().list_actions(None, Some(&row.target), super::MAX_ACTIONS).await?;
    let action = all.into_iter().find(|action| action.resolved_by.as_ref() == Some(&row.id));
    Ok(WhyTarget { subject, action })
}
