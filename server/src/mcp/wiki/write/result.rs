//! What a change of a page came to: the run, the diff, the quotes that were found, and what comes next.
//!
//! Words of pages and documents are outside words, also those that the caller wrote.

use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::views::wiki::shorten_run;
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::merge::{DiffLine, list_diff_lines};
use steward_vault::wiki::guardian::{GuardianSession, StagedPage};

/// The most characters of a diff.
const MAX_DIFF: usize = 4_000;
/// The most warnings of one kind.
const MAX_WARNINGS: usize = 10;

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::mcp) struct ChangeResult {
    /// The name of the run for later calls: the last 8 digits of its id.
    pub(in crate::mcp::wiki) run: String,
    /// The whole id of the run.
    pub(super) run_id: String,
    /// `open`, `verifying`, `pending` (a person decides), `committed`, `rejected` or `abandoned`.
    pub(in crate::mcp::wiki) state: String,
    /// The action id of a committed run, for `steward_undo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) action: Option<String>,
    /// The page that was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    /// The sha256 of the page as it is staged, for `base_sha256`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) staged_sha256: Option<String>,
    /// Outside words: the lines that the run changes on the page, with `+` and `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<OutsideWords>,
    /// The new footnotes of the page, each found in its source.
    pub(super) quotes: Vec<StagedQuote>,
    /// Outside words: what may be wrong, one line each.
    pub(in crate::mcp::wiki) warnings: Vec<OutsideWords>,
    /// With the first change of an ingest: pages that the document may concern, the best first.
    pub(super) should_touch: Vec<String>,
    /// What comes next.
    pub(in crate::mcp::wiki) next: String,
}

impl ChangeResult {
    /// A run as a whole.
    pub(in crate::mcp::wiki) fn of_run(run: &str, state: &str, next: String) -> Self {
        Self {
            run: shorten_run(run).to_owned(),
            run_id: run.to_owned(),
            state: state.to_owned(),
            action: None,
            path: None,
            staged_sha256: None,
            diff: None,
            quotes: Vec::new(),
            warnings: Vec::new(),
            should_touch: Vec::new(),
            next,
        }
    }
}

/// A footnote whose words stand in their source.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct StagedQuote {
    label: String,
    /// The id of the source.
    source: String,
    /// Outside words: the quote.
    quote: OutsideWords,
}

/// Describes a page of a run that is open.
pub(in crate::mcp::wiki) fn describe_change(
    session: &GuardianSession,
    staged: &StagedPage,
    related: Vec<String>,
) -> ChangeResult {
    let run = session.run().meta.run.to_string();
    let text = staged.after.as_deref().unwrap_or_default();
    let dangling = staged.dangling.iter().take(MAX_WARNINGS);
    let warn = |warning: String| OutsideWords(warning);
    let mut warnings: Vec<OutsideWords> =
        dangling.map(|name| warn(format!("the link [[{name}]] leads to no page"))).collect();
    warnings.extend(
        staged.inbound.iter().take(MAX_WARNINGS).map(|file| warn(format!("{file} links to the page that is removed"))),
    );
    let short = shorten_run(&run);
    let next = format!(
        "Stage more by naming run_id=\"{short}\", or submit the run: write(op=\"append\", path=\"wiki/log.md\", run_id=\"{short}\", …)"
    );
    ChangeResult {
        path: to_path(&staged.file),
        staged_sha256: staged.after.as_ref().map(|_| ContentHash::hash_bytes(text.as_bytes()).as_str().to_owned()),
        diff: Some(OutsideWords(render_diff(staged))),
        quotes: staged
            .quotes
            .iter()
            .map(|anchor| StagedQuote {
                label: anchor.label.clone(),
                source: anchor.source.clone(),
                quote: anchor.quote.as_str().into(),
            })
            .collect(),
        warnings,
        should_touch: related.iter().filter_map(|file| to_path(file)).collect(),
        ..ChangeResult::of_run(&run, "open", next)
    }
}

/// The lines that a page gains and loses.
pub(in crate::mcp::wiki) fn render_diff(staged: &StagedPage) -> String {
    let (before, after) = (staged.before.as_deref().unwrap_or_default(), staged.after.as_deref().unwrap_or_default());
    let mut text = String::new();
    for line in list_diff_lines(before, after) {
        match line {
            DiffLine::Both(_) => {}
            DiffLine::Before(line) => text.push_str(&format!("-{}\n", line.trim_end_matches('\n'))),
            DiffLine::After(line) => text.push_str(&format!("+{}\n", line.trim_end_matches('\n'))),
        }
    }
    match text.char_indices().nth(MAX_DIFF) {
        Some((at, _)) => format!("{}\n… the diff goes on", &text[..at]),
        None => text,
    }
}
