//! `why`: what stands behind a claim, a page, a tag, a source or words: the quotes, compared at this moment, and the runs.
//!
//! No model is asked. All that fit are returned, up to a limit.

use super::excerpt::shorten_words;
use super::search::read_moment;
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tokens::{MAX_ROW_TOKENS, count_fitting};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value};
use crate::mcp::workspace::Workspace;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::wiki::quote::MAX_QUOTE;
use steward_vault::wiki::quotes::CheckedAnchor;
use steward_vault::wiki::why::{ClaimEvent, ExplainedClaim, Replacement, WhyPages, WhyQuestion, explain_question};
use tokio::runtime::Handle;

/// The most claims that are shown, and of each the most quotes and the newest runs.
const MAX_CLAIMS: usize = 20;
const MAX_QUOTES: usize = 6;
const MAX_RUNS: usize = 12;
/// The most characters of a statement, of a name, and of why a quote is not verified.
const MAX_STATEMENT: usize = 400;
const MAX_NAME: usize = 200;
/// The most of what was replaced that is shown: the newest. And its most tokens.
const MAX_LINKS: usize = 40;
const MAX_CHAIN_TOKENS: usize = 2_500;
/// The most claims that one of them names.
const MAX_NEW: usize = 5;

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
    /// Changed by a run since.
    #[schemars(length(max = 40))]
    since: Option<String>,
    /// As it was then.
    #[schemars(length(max = 40))]
    until: Option<String>,
    /// Also what was replaced.
    #[serde(default)]
    include_history: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WhyResult {
    /// `claim`, `page`, `tag`, `source`, `words` or `none`.
    match_type: String,
    beliefs: Vec<Belief>,
    // How many there are.
    total: u64,
    /// What was replaced, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chain: Vec<ChainLink>,
    // What is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

/// A claim with what it rests on.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Belief {
    /// Outside words: the name of the claim.
    claim: OutsideWords,
    page: String,
    // The line in the file, from 1.
    line: u64,
    /// Outside words: the statement.
    statement: OutsideWords,
    disputed: bool,
    quotes: Vec<QuoteCheck>,
    /// Oldest first; empty for what a person wrote.
    runs: Vec<BeliefRun>,
    #[serde(skip)]
    quotes_left_out: usize,
    #[serde(skip)]
    runs_left_out: usize,
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
    // Whether the words stand in the source now.
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
    // The statement was reworded since.
    reworded: bool,
}

/// A claim or a source in whose place something else stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct ChainLink {
    /// Outside words: the claim, or the id of the source.
    old: OutsideWords,
    /// Outside words: what the claim said.
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<OutsideWords>,
    /// Outside words: what stands there.
    new: Vec<OutsideWords>,
    // The run that replaced a claim; absent for a source.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reverted_by: Option<String>,
}

fn explain_query(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<WhyArguments>()?;
    let question = WhyQuestion {
        what: &arguments.query,
        since: arguments.since.as_deref().map(read_moment).transpose()?,
        until: arguments.until.as_deref().map(read_end).transpose()?,
        include_history: arguments.include_history,
    };
    // The index knows the pages as they are now.
    let indexed = if question.until.is_some() { None } else { find_pages(&workspace, question.what) };
    let records = (workspace.vault.root(), workspace.name.as_str());
    let report = explain_question(&workspace.folder, indexed, Some(records), &question).map_err(ToolError::internal)?;
    let total = report.claims.len();
    let mut chain: Vec<ChainLink> = report.replaced.iter().rev().take(MAX_LINKS).map(show_link).collect();
    chain.truncate(count_fitting(&chain, MAX_CHAIN_TOKENS));
    chain.reverse();
    let links = report.replaced.len() - chain.len();
    let mut beliefs: Vec<Belief> = report.claims.into_iter().take(MAX_CLAIMS).map(show_claim).collect();
    let most = if chain.is_empty() { MAX_ROW_TOKENS } else { MAX_ROW_TOKENS - MAX_CHAIN_TOKENS };
    keep_beliefs(&mut beliefs, most);
    let left_out = LeftOut {
        beliefs: total - beliefs.len(),
        quotes: beliefs.iter().map(|belief| belief.quotes_left_out).sum(),
        runs: beliefs.iter().map(|belief| belief.runs_left_out).sum(),
        links,
    };
    answer_value(&WhyResult {
        match_type: report.match_type.to_string(),
        beliefs,
        total: total as u64,
        chain,
        notice: left_out.describe(),
    })
}

/// The end of a day, or a moment, as the command reads it.
fn read_end(text: &str) -> Result<DateTime<Utc>, ToolError> {
    let begin = read_moment(text)?;
    let is_day = text.parse::<NaiveDate>().is_ok();
    Ok(if is_day { begin + TimeDelta::days(1) - TimeDelta::seconds(1) } else { begin })
}

/// Keeps the first beliefs that fit. Of the very first as many quotes stay as fit.
fn keep_beliefs(beliefs: &mut Vec<Belief>, most: usize) {
    let fitting = count_fitting(beliefs.as_slice(), most);
    beliefs.truncate(fitting.max(1));
    if let (0, Some(first)) = (fitting, beliefs.first_mut()) {
        while !first.quotes.is_empty() && count_fitting(std::slice::from_ref(first), most) == 0 {
            first.quotes.pop();
            first.quotes_left_out += 1;
        }
    }
}

/// How much of an answer has no room in it.
#[derive(Debug)]
struct LeftOut {
    beliefs: usize,
    quotes: usize,
    runs: usize,
    links: usize,
}

impl LeftOut {
    fn describe(&self) -> Option<String> {
        let counts = [
            (self.beliefs, "beliefs"),
            (self.quotes, "quotes"),
            (self.runs, "runs"),
            (self.links, "links of the chain"),
        ];
        let named = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let named = named.collect::<Vec<_>>().join(", ");
        (!named.is_empty()).then(|| format!("cut: not shown are {named}. Ask for one claim, or narrow the time"))
    }
}

/// The pages that the query may mean, by the index; `None` if it cannot be used.
fn find_pages(workspace: &Workspace<'_>, query: &str) -> Option<WhyPages> {
    let vault = workspace.vault;
    Handle::current().block_on(vault.wikis.find_why_pages(vault.root(), &workspace.name, &workspace.folder, query))
}

fn show_claim(claim: ExplainedClaim) -> Belief {
    let quotes_left_out = claim.anchors.len().saturating_sub(MAX_QUOTES);
    let runs_left_out = claim.history.len().saturating_sub(MAX_RUNS);
    Belief {
        claim: shorten_words(&claim.claim, MAX_NAME),
        page: to_path(&claim.file).unwrap_or_default(),
        line: claim.line as u64,
        statement: shorten_words(&claim.statement, MAX_STATEMENT),
        disputed: claim.is_disputed,
        quotes: claim.anchors.into_iter().take(MAX_QUOTES).map(show_quote).collect(),
        runs: claim.history.into_iter().skip(runs_left_out).map(show_run).collect(),
        quotes_left_out,
        runs_left_out,
    }
}

fn show_quote(checked: CheckedAnchor) -> QuoteCheck {
    QuoteCheck {
        label: shorten_words(&checked.anchor.label, MAX_NAME),
        source: shorten_words(&checked.anchor.source, MAX_NAME),
        quote: shorten_words(&checked.anchor.quote, MAX_QUOTE),
        verified: checked.verified_against_source,
        fault: checked.fault.map(|fault| shorten_words(&fault, MAX_NAME)),
        superseded_by: checked.superseded_by.map(|by| shorten_words(&by, MAX_NAME)),
    }
}

fn show_run(event: ClaimEvent) -> BeliefRun {
    BeliefRun {
        run: event.run.short().to_owned(),
        at: steward_domain::time::format_seconds(event.at),
        change: event.change.to_string(),
        reverted_by: event.reverted_by.map(|run| run.short().to_owned()),
        reworded: event.is_reworded,
    }
}

fn show_link(link: &Replacement) -> ChainLink {
    ChainLink {
        old: shorten_words(&link.old, MAX_NAME),
        statement: link.statement.as_ref().map(|said| shorten_words(said, MAX_STATEMENT)),
        new: link.new.iter().take(MAX_NEW).map(|new| shorten_words(new, MAX_NAME)).collect(),
        run: link.run.as_ref().map(|run| run.short().to_owned()),
        at: link.at.map(steward_domain::time::format_seconds),
        reverted_by: link.reverted_by.as_ref().map(|run| run.short().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_with_its_last_second() {
        for (text, end) in [
            ("2026-04-30", "2026-04-30T23:59:59Z"),
            ("2026-04-30T08:00:00", "2026-04-30T08:00:00Z"),
            ("2026-04-30T08:00:00+02:00", "2026-04-30T06:00:00Z"),
        ] {
            assert_eq!(read_end(text).unwrap(), end.parse::<DateTime<Utc>>().unwrap(), "{text}");
        }
        assert!(read_end("yesterday").is_err());
    }
}
