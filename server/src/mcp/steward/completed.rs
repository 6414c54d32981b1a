//! The names of matters and the ids of actions, for completion.
//!
//! They come from the index, and only for callers who see the tools that take them. No note is read.

use super::facts::wait_for;
use crate::mcp::error::ToolError;
use crate::mcp::resources::name_matter;
use crate::mcp::vault::McpVault;
use chrono::Utc;
use std::collections::BTreeSet;
use steward_vault::index::{ActionFilter, MatterFilter};

/// The matters among which is searched: the first ones, and the first ones that hold the words.
const MAX_MATTERS: u32 = 500;
/// The newest actions among which is searched.
const MAX_ACTIONS: u32 = 500;

/// The names of matters as addresses of resources have them: first those that hold the words that were typed.
///
/// # Errors
/// There is no index.
pub(crate) fn list_matter_names(vault: &McpVault, typed: &str) -> Result<Vec<String>, ToolError> {
    let views = wait_for(vault.open_views())?;
    let words: String = typed.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let searches = if words.trim().is_empty() { vec![None] } else { vec![Some(words), None] };
    let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
    for text in searches {
        let filter = MatterFilter { text, ..MatterFilter::default() };
        let page = wait_for(views.read().matters_page(&filter, None, MAX_MATTERS, Utc::now()))?;
        let found = page.rows.iter().map(|row| name_matter(row.path.as_str()).to_owned());
        names.extend(found.filter(|name| seen.insert(name.clone())));
    }
    Ok(names)
}

/// The ids of actions, newest first.
///
/// # Errors
/// There is no index.
pub(crate) fn list_action_ids(vault: &McpVault) -> Result<Vec<String>, ToolError> {
    let views = wait_for(vault.open_views())?;
    let page = wait_for(views.actions().actions_page(&ActionFilter::default(), None, MAX_ACTIONS))?;
    Ok(page.rows.iter().map(|row| row.id.to_string()).collect())
}
