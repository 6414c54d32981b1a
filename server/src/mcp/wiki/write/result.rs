//! What a change of a page came to: the run, the diff, the quotes that were found, and what comes next.
//!
//! Words of pages and documents are outside words, also those that the caller wrote.

use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::tokens::{count_fitting, cut_to_tokens};
use crate::mcp::wiki::excerpt::shorten_words;
use crate::views::wiki::shorten_run;
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::merge::{DiffLine, list_diff_lines};
use steward_domain::wiki::quote::{Anchor, MAX_QUOTE};
use steward_vault::wiki::guardian::{GuardianSession, StagedPage};

/// The most characters of a diff, and its most tokens.
const MAX_DIFF: usize = 4_000;
const MAX_DIFF_TOKENS: usize = 3_000;
/// The most quotes that are shown, and their most tokens together.
const MAX_QUOTES: usize = 40;
const MAX_QUOTES_TOKENS: usize = 3_000;
/// The most warnings of one kind, and their most characters.
const MAX_WARNINGS: usize = 10;
pub(super) const MAX_WARNING: usize = 300;

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::mcp) struct ChangeResult {
    /// For later calls: the last 8 digits of its id.
    pub(in crate::mcp::wiki) run: String,
    // The whole id of the run.
    pub(super) run_id: String,
    /// `open`, `verifying`, `pending` (a person decides), `committed`, `rejected` or `abandoned`.
    pub(in crate::mcp::wiki) state: String,
    /// For `steward_undo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) action: Option<String>,
    /// Where a person decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) card: Option<String>,
    // The page that was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    /// For `base_sha256`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) staged_sha256: Option<String>,
    /// Outside words: the lines that change, with `+` and `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<OutsideWords>,
    // The new footnotes, each found in its source.
    pub(super) quotes: Vec<StagedQuote>,
    /// Outside words: what may be wrong, one line each.
    pub(in crate::mcp::wiki) warnings: Vec<OutsideWords>,
    /// Pages that the document may concern, the best first.
    pub(super) should_touch: Vec<String>,
    // What comes next.
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
            card: None,
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
    // The id of the source.
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
    let warn = |warning: String| shorten_words(&warning, MAX_WARNING);
    let mut warnings: Vec<OutsideWords> =
        dangling.map(|name| warn(format!("the link [[{name}]] leads to no page"))).collect();
    warnings.extend(
        staged.inbound.iter().take(MAX_WARNINGS).map(|file| warn(format!("{file} links to the page that is removed"))),
    );
    let (quotes, left_out) = show_quotes(&staged.quotes);
    if left_out > 0 {
        warnings.push(warn(format!("{left_out} more new quotes are not shown: `read` shows the page with `run_id`")));
    }
    let short = shorten_run(&run);
    let next = format!(
        "Stage more by naming run_id=\"{short}\", or submit the run: write(op=\"append\", path=\"wiki/log.md\", run_id=\"{short}\", …)"
    );
    ChangeResult {
        path: to_path(&staged.file),
        staged_sha256: staged.after.as_ref().map(|_| ContentHash::hash_bytes(text.as_bytes()).as_str().to_owned()),
        diff: Some(OutsideWords(render_diff(staged))),
        quotes,
        warnings,
        should_touch: related.iter().filter_map(|file| to_path(file)).collect(),
        ..ChangeResult::of_run(&run, "open", next)
    }
}

/// The quotes that an answer has room for, and how many it has no room for.
fn show_quotes(anchors: &[Anchor]) -> (Vec<StagedQuote>, usize) {
    let show = |anchor: &Anchor| StagedQuote {
        label: anchor.label.clone(),
        source: anchor.source.clone(),
        quote: shorten_words(&anchor.quote, MAX_QUOTE),
    };
    let mut quotes: Vec<StagedQuote> = anchors.iter().take(MAX_QUOTES).map(show).collect();
    quotes.truncate(count_fitting(&quotes, MAX_QUOTES_TOKENS));
    let left_out = anchors.len() - quotes.len();
    (quotes, left_out)
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
    let end = text.char_indices().nth(MAX_DIFF).map_or(text.len(), |(at, _)| at);
    let shown = cut_to_tokens(&text[..end], MAX_DIFF_TOKENS);
    if shown.len() < text.len() { format!("{}\n… the diff goes on", shown.trim_end_matches('\n')) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tokens::count_tokens;

    fn anchor(number: usize, quote: &str) -> Anchor {
        Anchor { label: format!("c{number:08x}"), source: "lease".to_owned(), quote: quote.to_owned() }
    }

    #[test]
    fn many_and_long_quotes_leave_room_for_the_rest_of_an_answer() {
        for (quote, count) in
            [("The lease ends.", 200), ("ꙮ".repeat(400).as_str(), 20), ("x ".repeat(5_000).as_str(), 20)]
        {
            let anchors: Vec<Anchor> = (0..count).map(|number| anchor(number, quote)).collect();
            let (shown, left_out) = show_quotes(&anchors);
            let tokens = count_tokens(&serde_json::to_string(&shown).unwrap());
            assert!(!shown.is_empty() && tokens <= MAX_QUOTES_TOKENS, "{tokens}");
            assert!(left_out > 0 && shown.len() + left_out == count, "{} {left_out}", shown.len());
            assert!(shown.iter().all(|it| it.quote.0.chars().count() <= MAX_QUOTE + 1));
        }
        let (shown, left_out) = show_quotes(&[anchor(1, "The lease ends.")]);
        assert_eq!((shown.len(), left_out, shown[0].quote.0.as_str()), (1, 0, "The lease ends."));
    }

    #[test]
    fn a_long_diff_is_cut_by_its_tokens() {
        let page = |after: String| StagedPage {
            file: "concepts/lease.md".to_owned(),
            before: None,
            after: Some(after),
            quotes: Vec::new(),
            dangling: Vec::new(),
            inbound: Vec::new(),
            lost_claims: Vec::new(),
        };
        assert_eq!(render_diff(&page("It ends.\n".to_owned())), "+It ends.\n");
        for text in ["ꙮ".repeat(4_000), "It ends.\n".repeat(1_000)] {
            let diff = render_diff(&page(text));
            assert!(diff.ends_with("\n… the diff goes on") && count_tokens(&diff) <= MAX_DIFF_TOKENS + 20, "{diff}");
        }
    }
}
