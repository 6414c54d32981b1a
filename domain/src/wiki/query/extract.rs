//! Answers a question by fixed rules: with the claims that hold most of its words.
//!
//! Nothing is understood. A rare word counts more than one that many claims hold.

use crate::wiki::claims::{Claim, MAX_STATEMENT, read_claims};
use crate::wiki::compile::EXTRACT_LINE;
use crate::wiki::page::WikiPage;
use crate::wiki::search::{list_query_words, split_words};
use std::collections::BTreeSet;

/// The most claims of an answer.
const MAX_CLAIMS: usize = 5;

/// A claim of a page, with the words of the question that it holds.
struct FoundClaim<'p> {
    page: &'p WikiPage,
    claim: Claim,
    words: BTreeSet<String>,
}

/// The claims of these pages that answer a question best, as a list of Markdown; `None` if no claim holds one of its words.
#[must_use]
pub fn extract_answer(question: &str, pages: &[WikiPage]) -> Option<String> {
    let asked = list_query_words(question);
    let mut found: Vec<FoundClaim<'_>> = Vec::new();
    let mut count = 0.0;
    for page in pages {
        for claim in read_claims(page.document.body(), &page.body.disputed).claims {
            count += 1.0;
            let words: BTreeSet<String> = split_words(&claim.statement).filter(|word| asked.contains(word)).collect();
            let is_repeated = found.iter().any(|known| known.claim.statement == claim.statement);
            if !words.is_empty() && !is_repeated {
                found.push(FoundClaim { page, claim, words });
            }
        }
    }
    let weigh = |word: &String| {
        let holders = found.iter().filter(|claim| claim.words.contains(word)).count() as f64;
        (1.0 + count / holders.max(1.0)).ln()
    };
    let mut ranked: Vec<(f64, &FoundClaim<'_>)> =
        found.iter().map(|claim| (claim.words.iter().map(weigh).sum(), claim)).collect();
    // The sort is stable: of equal claims, that of the better page comes first.
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    ranked.truncate(MAX_CLAIMS);
    let lines: String = ranked.iter().map(|(_, claim)| render_claim(claim)).collect();
    (!lines.is_empty()).then(|| format!("{EXTRACT_LINE}\n\n{lines}"))
}

fn render_claim(FoundClaim { page, claim, .. }: &FoundClaim<'_>) -> String {
    let disputed = if claim.is_disputed { ", disputed" } else { "" };
    let marks: String = claim.labels.iter().map(|label| format!("[^{label}]")).collect();
    let title: String = page.title.chars().filter(|c| !matches!(c, '[' | ']' | '|')).collect();
    let named = format!("[[{}|{}]]{disputed}: {}", page.slug, title.trim(), claim.statement);
    let shown = if named.chars().count() > MAX_STATEMENT { &claim.statement } else { &named };
    format!("- {shown}{marks}\n")
}
