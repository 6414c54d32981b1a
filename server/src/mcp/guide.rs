//! The guide of a wiki: what a model reads before it asks anything, in two texts.
//!
//! The first text holds what is in force and changes only with that, so that clients keep it as a prefix; the second how things stand. Both have
//! a limit of tokens that nothing in a wiki can lift: the first is refused rather than cut, and the second is cut.

mod contract;
mod cut;
mod effort;
mod log;
mod situation;

use super::error::ToolError;
use super::fence::FenceKey;
use super::tokens::count_tokens;
use super::vault::FENCE_KEY;
use crate::access::SecretStore;
use crate::views::wiki::guide::{WikiContract, WikiSituation, read_wiki_contract};
use contract::render_contract;
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use situation::render_situation;
use std::path::Path;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::create::{WIKIS_FOLDER, list_wikis};
use steward_vault::wiki::state::ReadWikiError;

/// The most tokens of the first text: so small that a client may keep it before every request.
pub(crate) const MAX_CONTRACT_TOKENS: usize = 500;
/// The most tokens of the second text.
pub(crate) const MAX_SITUATION_TOKENS: usize = 1_500;
/// The key of the counts in the metadata of the answer.
const META_KEY: &str = "io.steward/guide";

/// A part of a text, and how many tokens it has by itself.
#[derive(Clone, Debug)]
struct GuidePart {
    name: &'static str,
    text: String,
    is_cut: bool,
}

impl GuidePart {
    fn new(name: &'static str, text: String) -> Self {
        Self { name, text, is_cut: false }
    }
}

/// A text of the guide with its parts in their order.
#[derive(Clone, Debug)]
struct GuideBlock {
    text: String,
    parts: Vec<GuidePart>,
}

/// Who reads the guide.
pub(crate) struct GuideReader<'a> {
    /// As it stands in runs.
    pub(crate) name: &'a str,
    /// The tools that they have.
    pub(crate) tools: &'a [&'static str],
}

/// Both texts of a guide, and the counts of them.
pub(crate) struct Guide {
    pub(crate) blocks: Vec<String>,
    pub(crate) meta: JsonObject,
}

/// Renders the guide of a wiki.
///
/// # Errors
/// [`ToolErrorCode::BudgetExceeded`](super::error::ToolErrorCode::BudgetExceeded) if what is in force has too many tokens.
pub(crate) fn render_guide(
    contract: &WikiContract,
    situation: &WikiSituation,
    reader: &GuideReader<'_>,
    fences: &FenceKey,
) -> Result<Guide, ToolError> {
    let first = render_contract(contract, fences)?;
    let second = render_situation(situation, reader, fences);
    let digest: String = Sha256::digest(first.text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let l0 = describe_block(&first, MAX_CONTRACT_TOKENS, Some(digest));
    let l1 = describe_block(&second, MAX_SITUATION_TOKENS, None);
    let meta = [(META_KEY.to_owned(), json!({"l0": l0, "l1": l1}))].into_iter().collect();
    Ok(Guide { blocks: vec![first.text, second.text], meta })
}

/// The wikis of which the guide would be refused, each with what to do.
///
/// # Errors
/// The wikis cannot be listed, or one of them cannot be read.
pub fn list_guide_faults(root: &VaultRoot, state: &Path) -> Result<Vec<String>, ReadWikiError> {
    // Without a key the marks of fences are others, which is a few tokens more or less.
    let key = SecretStore::new(state).read_key(FENCE_KEY).ok().flatten().unwrap_or_default();
    let fences = FenceKey::new(&key);
    let failed = |source| ReadWikiError::Io { path: WIKIS_FOLDER.to_owned(), source };
    let mut faults = Vec::new();
    for (wiki, _) in list_wikis(root).map_err(failed)? {
        if let Err(error) = render_contract(&read_wiki_contract(root, &wiki)?, &fences) {
            faults.push(format!("{wiki}: {}", error.describe_problem()));
        }
    }
    Ok(faults)
}

/// The counts of a text, of its parts, and which of them are cut.
fn describe_block(block: &GuideBlock, limit: usize, sha256: Option<String>) -> Value {
    let parts: JsonObject =
        block.parts.iter().map(|part| (part.name.to_owned(), count_tokens(&part.text).into())).collect();
    let cut: Vec<&str> = block.parts.iter().filter(|part| part.is_cut).map(|part| part.name).collect();
    let mut facts = json!({"tokens": count_tokens(&block.text), "limit": limit, "parts": parts, "cut": cut});
    if let Some(sha256) = sha256 {
        facts["sha256"] = sha256.into();
    }
    facts
}

#[cfg(test)]
mod tests;
