//! `why`: what stands behind a claim, a page, a tag, a source or words: the quotes, compared at this moment, and the runs.
//!
//! No model is asked. All that fit are returned, up to a limit.

use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value};
use crate::mcp::workspace::Workspace;
use crate::views::wiki::shorten_run;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_vault::wiki::quotes::CheckedAnchor;
use steward_vault::wiki::why::{ClaimEvent, ExplainedClaim, WhyPages, explain};
use tokio::runtime::Handle;

/// The most claims that are shown.
const MAX_CLAIMS: usize = 20;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "why",
    title: "Why",
    description: "Says what stands behind a claim (`plot-12#c6107d23f`), a page, a tag, a source or words: the quotes, compared with their documents now, and the runs that made them. \
        Example: why(query=\"token lifetime\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<WhyArguments>,
    result: Some(describe_result::<WhyResult>),
    run: explain_query,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhyArguments {
    #[schemars(length(min = 1, max = 500))]
    query: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WhyResult {
    /// How the query was understood: `claim`, `page`, `tag`, `source`, `words` or `none`.
    match_type: String,
    beliefs: Vec<Belief>,
    /// How many there are.
    total: u64,
}

/// A claim with what it rests on.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Belief {
    /// Outside words: the name of the claim.
    claim: OutsideWords,
    page: String,
    /// The line in the file, from 1.
    line: u64,
    /// Outside words: the statement.
    statement: OutsideWords,
    disputed: bool,
    quotes: Vec<QuoteCheck>,
    /// The runs that made it, oldest first; empty for what a person wrote.
    runs: Vec<BeliefRun>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct QuoteCheck {
    /// Outside words: the label of the footnote.
    label: OutsideWords,
    /// Outside words: the id of the source.
    source: OutsideWords,
    /// Outside words: the quote.
    quote: OutsideWords,
    /// Whether the words stand in the source now.
    verified: bool,
    /// Outside words: why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<OutsideWords>,
    /// Outside words: the id of the source that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<OutsideWords>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct BeliefRun {
    run: String,
    at: String,
    change: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reverted_by: Option<String>,
    /// The statement was reworded since.
    reworded: bool,
}

fn explain_query(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, WhyArguments { query }) = call.open::<WhyArguments>()?;
    let pages = find_pages(&workspace, &query).unwrap_or_else(|| WhyPages::read_all(&workspace.folder, &query));
    let records = (workspace.vault.root(), workspace.name.as_str());
    let report = explain(&workspace.folder, &pages, Some(records), &query);
    let total = report.claims.len() as u64;
    let beliefs = report.claims.into_iter().take(MAX_CLAIMS).map(show_claim).collect();
    answer_value(&WhyResult { match_type: report.match_type.to_string(), beliefs, total })
}

/// The pages that the query may mean, by the index; `None` if it cannot be used.
fn find_pages(workspace: &Workspace<'_>, query: &str) -> Option<WhyPages> {
    let vault = workspace.vault;
    Handle::current().block_on(vault.wikis.find_why_pages(vault.root(), &workspace.name, &workspace.folder, query))
}

fn show_claim(claim: ExplainedClaim) -> Belief {
    let show_quote = |checked: CheckedAnchor| QuoteCheck {
        label: checked.anchor.label.into(),
        source: checked.anchor.source.into(),
        quote: checked.anchor.quote.into(),
        verified: checked.verified_against_source,
        fault: checked.fault.map(Into::into),
        superseded_by: checked.superseded_by.map(Into::into),
    };
    let show_run = |event: ClaimEvent| BeliefRun {
        run: shorten_run(event.run.as_str()).to_owned(),
        at: steward_domain::time::format_seconds(event.at),
        change: event.change.to_string(),
        reverted_by: event.reverted_by.map(|run| shorten_run(run.as_str()).to_owned()),
        reworded: event.is_reworded,
    };
    Belief {
        claim: claim.claim.into(),
        page: to_path(&claim.file).unwrap_or_default(),
        line: claim.line as u64,
        statement: claim.statement.into(),
        disputed: claim.is_disputed,
        quotes: claim.anchors.into_iter().map(show_quote).collect(),
        runs: claim.history.into_iter().map(show_run).collect(),
    }
}
