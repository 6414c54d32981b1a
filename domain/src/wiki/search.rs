//! Finds pages by their words, best first.
//!
//! The rank is BM25 as SQLite's FTS5 computes it (k1 1.2, b 0.75, idf ln((N − n + 0.5) / (n + 0.5)), at least 1e-6), over
//! title, tags, summary and body together. The words of a query are joined by OR. Words are compared without case and without
//! marks above and below letters.

use super::page::WikiPage;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// The least weight of a word.
const MIN_IDF: f64 = 1e-6;
/// From how many pages on a word that half of them hold is left out.
const COMMON_FROM: usize = 1_000;
/// The most characters of a passage.
const MAX_PASSAGE: usize = 160;

/// A page that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageHit {
    pub slug: String,
    pub title: String,
    pub kind: String,
    pub file: String,
    /// Higher is better.
    pub score: f64,
    /// The first line that holds a word of the query, or the summary.
    pub passage: String,
}

/// The words of a text, in lower case and without marks.
pub fn split_words(text: &str) -> impl Iterator<Item = String> {
    let plain: String = text.nfd().filter(|c| !is_combining_mark(*c)).collect::<String>().to_lowercase();
    let words: Vec<String> =
        plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    words.into_iter()
}

/// A page with how often it holds each word of a query.
struct RankedPage<'p> {
    page: &'p WikiPage,
    length: usize,
    counts: Vec<usize>,
}

/// Finds the best pages for a query. Pages of the same rank are ordered by slug.
#[must_use]
pub fn search_pages(pages: &[&WikiPage], query: &str, limit: usize) -> Vec<PageHit> {
    let words: Vec<String> = split_words(query).collect::<BTreeSet<_>>().into_iter().collect();
    let place: BTreeMap<&str, usize> = words.iter().enumerate().map(|(at, word)| (word.as_str(), at)).collect();
    let ranked: Vec<RankedPage<'_>> = pages.iter().map(|page| count_words(page, &place)).collect();
    let holders: Vec<usize> =
        (0..words.len()).map(|at| ranked.iter().filter(|page| page.counts[at] > 0).count()).collect();
    let is_common = |count: usize| ranked.len() >= COMMON_FROM && count * 2 >= ranked.len();
    let all_common = holders.iter().all(|count| is_common(*count));
    let used: Vec<usize> = (0..words.len()).filter(|at| all_common || !is_common(holders[*at])).collect();
    let average = ranked.iter().map(|page| page.length).sum::<usize>() as f64 / ranked.len().max(1) as f64;
    let score = |page: &RankedPage<'_>| -> f64 {
        let part = |at: &usize| {
            let (total, holding) = (ranked.len() as f64, holders[*at] as f64);
            let idf = ((total - holding + 0.5) / (holding + 0.5)).ln().max(MIN_IDF);
            let count = page.counts[*at] as f64;
            idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * page.length as f64 / average))
        };
        used.iter().map(part).sum()
    };
    let mut hits: Vec<(f64, &RankedPage<'_>)> = ranked
        .iter()
        .filter(|page| used.iter().any(|at| page.counts[*at] > 0))
        .map(|page| (score(page), page))
        .collect();
    hits.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.page.slug.cmp(&other.page.slug)));
    hits.truncate(limit);
    hits.into_iter().map(|(score, ranked)| to_hit(ranked.page, score, &place)).collect()
}

fn count_words<'p>(page: &'p WikiPage, place: &BTreeMap<&str, usize>) -> RankedPage<'p> {
    let (mut length, mut counts) = (0, vec![0; place.len()]);
    let tags = page.tags.join(" ");
    for text in [page.title.as_str(), &tags, &page.summary, page.document.body()] {
        for word in split_words(text) {
            length += 1;
            if let Some(at) = place.get(word.as_str()) {
                counts[*at] += 1;
            }
        }
    }
    RankedPage { page, length, counts }
}

fn to_hit(page: &WikiPage, score: f64, words: &BTreeMap<&str, usize>) -> PageHit {
    let holds = |line: &&str| split_words(line).any(|word| words.contains_key(word.as_str()));
    let is_text = |line: &&str| !line.starts_with("[^") && !line.starts_with('#');
    let line = page.document.body().lines().filter(is_text).find(holds).unwrap_or(&page.summary);
    PageHit {
        slug: page.slug.clone(),
        title: page.title.clone(),
        kind: page.kind.clone(),
        file: page.file.clone(),
        score,
        passage: super::page::shorten(&strip_marks(line.trim()), MAX_PASSAGE),
    }
}

/// A line of a page without the marks of quotes, and with the shown texts of links.
fn strip_marks(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('[') {
        text.push_str(&rest[..at]);
        let after = &rest[at..];
        let (skipped, shown) = match (after.strip_prefix("[^"), after.strip_prefix("[[")) {
            (Some(mark), _) => (mark.find(']').map(|end| end + 3), ""),
            (_, Some(link)) => match link.find("]]") {
                Some(end) => (Some(end + 4), link[..end].rsplit('|').next().unwrap_or_default()),
                None => (None, ""),
            },
            _ => (None, ""),
        };
        text.push_str(if skipped.is_some() { shown } else { "[" });
        rest = &after[skipped.unwrap_or(1)..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::page::read_page;

    fn page(slug: &str, body: &str) -> WikiPage {
        let text = format!(
            "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {slug}\nupdated_at: \"2026-11-22T09:15:04Z\"\nmetadata: {{steward: {{summary: \"-\"}}}}\n---\n{body}\n"
        );
        read_page(&format!("entities/{slug}.md"), text.as_bytes()).page.unwrap()
    }

    fn search(pages: &[WikiPage], query: &str) -> Vec<(String, f64)> {
        let pages: Vec<&WikiPage> = pages.iter().collect();
        search_pages(&pages, query, 10).into_iter().map(|hit| (hit.slug, hit.score)).collect()
    }

    #[test]
    fn the_rank_is_that_of_bm25() {
        let pages = [
            page("aa", "lease water water"),
            page("bb", "lease of a plot"),
            page("cc", "nothing here"),
            page("dd", "x"),
        ];
        // BM25Okapi(k1=1.2, b=0.75, epsilon=0) of rank_bm25 0.2.2 over [aa lease water water], [bb lease of a plot],
        // [cc nothing here], [dd x], for the query [water].
        let found = search(&pages, "Water");
        assert_eq!(found.len(), 1);
        let idf = ((4.0_f64 - 1.0 + 0.5) / 1.5).ln();
        let expected = idf * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 4.0 / 3.5));
        assert!((found[0].1 - expected).abs() < 1e-12, "{found:?} {expected}");
        assert_eq!(search(&pages, "lease plot").into_iter().map(|(slug, _)| slug).collect::<Vec<_>>(), ["bb", "aa"]);
        assert_eq!(search(&pages, "gone"), []);
        assert_eq!(search(&pages, ""), []);
    }

    #[test]
    fn a_passage_is_plain() {
        assert_eq!(strip_marks("Ends.[^c6107d23f] See [[a|A]], [[b]] [x] [^"), "Ends. See A, b [x] [^");
    }

    #[test]
    fn marks_and_case_do_not_matter() {
        let pages = [page("aa", "Der Käse von Übersee"), page("bb", "other words")];
        assert_eq!(search(&pages, "KASE ubersee")[0].0, "aa");
    }

    #[test]
    fn a_common_word_of_a_large_wiki_is_left_out() {
        let mut pages: Vec<WikiPage> = (0..1_000).map(|n| page(&format!("p-{n:04}"), "lease")).collect();
        pages.push(page("zz", "lease water"));
        assert_eq!(search(&pages, "lease water").len(), 1);
        assert_eq!(search(&pages, "lease").len(), 10, "all words are common");
    }
}
