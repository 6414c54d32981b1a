//! Answers a question by fixed rules: with the claims that hold most of its words.
//!
//! Nothing is understood. A rare word counts more than one that many claims hold, and a plural counts as its singular. Words such as
//! "the" and "does" count only if the question has no other.

use crate::wiki::claims::{Claim, MAX_STATEMENT, read_claims};
use crate::wiki::compile::EXTRACT_LINE;
use crate::wiki::page::{DisputedBlock, WikiPage};
use crate::wiki::search::split_words;
use crate::wiki::settle::strip_date;
use std::collections::BTreeSet;

/// The most claims of an answer.
const MAX_CLAIMS: usize = 5;

/// A claim that weighs less than this share of the best one is left out: it holds common words alone.
const LEAST_SHARE: f64 = 0.5;

/// Words that say nothing about what is asked.
const COMMON_WORDS: [&str; 55] = [
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "did", "do", "does", "for",
    "from", "had", "has", "have", "how", "i", "if", "in", "is", "it", "its", "many", "may", "me", "much", "my", "no",
    "not", "of", "on", "or", "our", "that", "the", "there", "they", "this", "to", "was", "we", "were", "what", "when",
    "where", "which", "who", "why", "with",
];

/// Whether a word says nothing by itself.
#[must_use]
pub fn is_common_word(word: &str) -> bool {
    COMMON_WORDS.contains(&word)
}

/// The words of a question that are looked for in claims: without those that say nothing, if others are left.
#[must_use]
pub fn list_content_words(question: &str) -> BTreeSet<String> {
    let all: Vec<String> = split_words(question).collect();
    let content: Vec<&String> = all.iter().filter(|word| !is_common_word(word)).collect();
    let chosen = if content.is_empty() { all.iter().collect() } else { content };
    chosen.into_iter().map(|word| fold_plural(word)).collect()
}

/// A word without the `s` of a plural or of a verb, as in `ends`.
#[must_use]
pub fn fold_plural(word: &str) -> String {
    let is_plural = word.chars().count() > 3 && word.ends_with('s') && !word.ends_with("ss");
    if is_plural { word[..word.len() - 1].to_owned() } else { word.to_owned() }
}

/// A claim of a page, with the words of the question that it holds.
struct FoundClaim<'p> {
    page: &'p WikiPage,
    claim: Claim,
    words: BTreeSet<String>,
}

/// The claims of these pages that answer a question best, as a list of Markdown; `None` if no claim holds one of its words.
/// If one stands in a dispute, the other side follows it.
#[must_use]
pub fn extract_answer(question: &str, pages: &[WikiPage]) -> Option<String> {
    let asked = list_content_words(question);
    let claims = list_claims(pages, &asked);
    let weigh = |word: &String| {
        let holders = claims.iter().filter(|claim| claim.words.contains(word)).count() as f64;
        (1.0 + claims.len() as f64 / holders.max(1.0)).ln()
    };
    let score = |claim: &FoundClaim<'_>| claim.words.iter().map(weigh).sum::<f64>();
    let mut ranked: Vec<(f64, &FoundClaim<'_>)> = claims.iter().map(|claim| (score(claim), claim)).collect();
    // The sort is stable: of equal claims, that of the better page comes first.
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let best = ranked.first().map_or(0.0, |(score, _)| *score);
    ranked.retain(|(score, _)| *score > 0.0 && *score >= best * LEAST_SHARE);
    let mut chosen: Vec<&FoundClaim<'_>> = Vec::new();
    for (_, claim) in ranked {
        let others = claims.iter().filter(|other| is_other_side(claim, other));
        for claim in std::iter::once(claim).chain(others) {
            let is_same = |known: &&FoundClaim<'_>| {
                known.claim.statement == claim.claim.statement || known.claim.labels == claim.claim.labels
            };
            if !chosen.iter().any(is_same) {
                chosen.push(claim);
            }
        }
    }
    chosen.truncate(MAX_CLAIMS);
    let lines: String = chosen.into_iter().map(render_claim).collect();
    (!lines.is_empty()).then(|| format!("{EXTRACT_LINE}\n\n{lines}"))
}

/// All claims of the pages, those in a dispute first: it must not be missed because another page has one of its sides. Earlier
/// answers come last, as they only repeat what other pages say.
fn list_claims<'p>(pages: &'p [WikiPage], asked: &BTreeSet<String>) -> Vec<FoundClaim<'p>> {
    let mut claims: Vec<FoundClaim<'_>> = Vec::new();
    for page in pages {
        for claim in read_claims(page.document.body(), &page.body.disputed).claims {
            let words = split_words(&claim.statement).map(|word| fold_plural(&word));
            let words = words.filter(|word| asked.contains(word)).collect();
            claims.push(FoundClaim { page, claim, words });
        }
    }
    let is_answer = |page: &WikiPage| ["qa", "insight"].contains(&page.kind.as_str());
    claims.sort_by_key(|found| (!found.claim.is_disputed, is_answer(found.page)));
    claims
}

/// Whether two claims stand in one dispute.
fn is_other_side(claim: &FoundClaim<'_>, other: &FoundClaim<'_>) -> bool {
    let holds = |block: &DisputedBlock, line: usize| (block.first..=block.last).contains(&line);
    let shares = |block: &DisputedBlock| holds(block, claim.claim.line) && holds(block, other.claim.line);
    claim.page.file == other.page.file && claim.page.body.disputed.iter().any(shares)
}

fn render_claim(FoundClaim { page, claim, .. }: &FoundClaim<'_>) -> String {
    let disputed = if claim.is_disputed { ", disputed" } else { "" };
    let marks: String = claim.labels.iter().map(|label| format!("[^{label}]")).collect();
    let title: String = page.title.chars().filter(|c| !matches!(c, '[' | ']' | '|')).collect();
    let statement = strip_date(&claim.statement);
    let named = format!("[[{}|{}]]{disputed}: {statement}", page.slug, title.trim());
    let shown = if named.chars().count() > MAX_STATEMENT { statement } else { &named };
    format!("- {shown}{marks}\n")
}
