//! Finds pages by their words, best first.
//!
//! The rank is BM25 as SQLite's FTS5 computes it (k1 1.2, b 0.75, idf ln((N − n + 0.5) / (n + 0.5)), at least 1e-6), over
//! title, tags, summary and body together. The words of a query are joined by OR. Words are compared without case and without
//! marks above and below letters. The index of a vault ranks in the same way, on the same words.

use super::overview::OVERVIEW;
use super::page::WikiPage;
use crate::record::frontmatter::Document;
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
/// The most words of a query that are used, in the order of the alphabet.
const MAX_WORDS: usize = 64;

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
    /// The line of the file that the passage is, from 1; `None` for the summary.
    #[serde(skip)]
    pub line: Option<usize>,
    /// The size of the file.
    #[serde(skip)]
    pub bytes: usize,
}

/// Which of the pages that were found are shown. The rank does not depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageFilter {
    pub kind: Option<String>,
    pub tag: Option<String>,
    /// The beginning of the file's path in the wiki.
    pub path: Option<String>,
}

impl PageFilter {
    fn covers(&self, page: &WikiPage) -> bool {
        self.kind.as_ref().is_none_or(|kind| page.kind == *kind)
            && self.tag.as_ref().is_none_or(|tag| page.tags.contains(tag))
            && self.path.as_ref().is_none_or(|path| page.file.starts_with(path.as_str()))
    }
}

/// Whether a page can be found by its words. The overview only repeats what other pages say.
#[must_use]
pub fn is_searchable(page: &WikiPage) -> bool {
    page.kind != OVERVIEW
}

/// The words of a text, in lower case and without marks.
pub fn split_words(text: &str) -> impl Iterator<Item = String> {
    text.split('\n').flat_map(split_line)
}

/// A line in lower case and without marks.
fn fold_line(line: &str) -> String {
    // Most lines have no marks, and looking for them takes longer than splitting.
    match line.is_ascii() {
        true => line.to_ascii_lowercase(),
        false => line.nfd().filter(|c| !is_combining_mark(*c)).collect::<String>().to_lowercase(),
    }
}

/// Whether a line holds one of the words of a query, as [`split_words`] finds them, without splitting it.
fn holds_word(line: &str, words: &BTreeSet<String>) -> bool {
    let plain = fold_line(line);
    let is_whole = |at: usize, word: &str| {
        let (before, after) = (plain[..at].chars().next_back(), plain[at + word.len()..].chars().next());
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    };
    words.iter().any(|word| plain.match_indices(word.as_str()).any(|(at, word)| is_whole(at, word)))
}

fn split_line(line: &str) -> Vec<String> {
    let plain = fold_line(line);
    plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The words of a query, each once.
#[must_use]
pub fn list_query_words(query: &str) -> BTreeSet<String> {
    split_words(query).collect::<BTreeSet<_>>().into_iter().take(MAX_WORDS).collect()
}

/// Which texts a query finds by its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WordMatch {
    /// Those that hold one of them.
    #[default]
    Any,
    /// Those that hold all of them, in any order.
    All,
    /// Those that hold all of them next to each other, in this order.
    Phrase,
}

impl WordMatch {
    /// Whether the words of a text fit a query. A query without words fits none.
    #[must_use]
    pub fn fits(self, text: impl Iterator<Item = String>, query: &str) -> bool {
        let (wanted, text) = (split_words(query).take(MAX_WORDS).collect::<Vec<_>>(), text.collect::<Vec<_>>());
        if wanted.is_empty() {
            return false;
        }
        match self {
            Self::Any => wanted.iter().any(|word| text.contains(word)),
            Self::All => wanted.iter().all(|word| text.contains(word)),
            Self::Phrase => text.windows(wanted.len()).any(|words| words == wanted),
        }
    }
}

/// The words of a page by which it is found.
pub fn list_page_words(page: &WikiPage) -> impl Iterator<Item = String> {
    let tags = page.tags.join(" ");
    let texts = [page.title.as_str(), &tags, &page.summary, page.document.body()];
    texts.map(|text| split_words(text).collect::<Vec<_>>()).into_iter().flatten()
}

/// The words of a query that are weighed, of which each stands on so many of the pages.
///
/// In a large wiki those are left out that half of the pages hold, unless all are such: they weigh nothing.
#[must_use]
pub fn choose_words(holders: &BTreeMap<String, usize>, pages: usize) -> Vec<&str> {
    let is_common = |count: usize| pages >= COMMON_FROM && count * 2 >= pages;
    let all_common = holders.values().all(|count| is_common(*count));
    let used = holders.iter().filter(|(_, count)| all_common || !is_common(**count));
    used.map(|(word, _)| word.as_str()).collect()
}

/// How often a text holds each word of a query.
#[derive(Clone, Debug)]
pub struct WordCounts {
    /// In words.
    length: usize,
    counts: BTreeMap<String, usize>,
}

impl WordCounts {
    /// Counts the words of a query among those of a text.
    #[must_use]
    pub fn new(text: impl Iterator<Item = String>, query: &BTreeSet<String>) -> Self {
        let (mut length, mut counts) = (0, BTreeMap::new());
        for word in text {
            length += 1;
            if query.contains(&word) {
                *counts.entry(word).or_default() += 1;
            }
        }
        Self { length, counts }
    }
}

/// Ranks texts for the words of a query, in their order; `None` for a text without a word that weighs.
#[must_use]
pub fn rank_texts(texts: &[WordCounts], query: &BTreeSet<String>) -> Vec<Option<f64>> {
    let count_holders = |word: &String| texts.iter().filter(|text| text.counts.contains_key(word)).count();
    let holders: BTreeMap<String, usize> = query.iter().map(|word| (word.clone(), count_holders(word))).collect();
    let used = choose_words(&holders, texts.len());
    let total = texts.len() as f64;
    let average = texts.iter().map(|text| text.length).sum::<usize>() as f64 / total.max(1.0);
    let rank = |text: &WordCounts| -> Option<f64> {
        let weigh = |word: &&str| {
            let (Some(count), Some(holding)) = (text.counts.get(*word), holders.get(*word)) else { return 0.0 };
            let (count, holding) = (*count as f64, *holding as f64);
            let idf = ((total - holding + 0.5) / (holding + 0.5)).ln();
            let idf = if idf <= 0.0 { MIN_IDF } else { idf };
            idf * ((count * (K1 + 1.0)) / (count + K1 * (1.0 - B + B * text.length as f64 / average)))
        };
        let holds_one = used.iter().any(|word| text.counts.contains_key(*word));
        holds_one.then(|| used.iter().map(weigh).sum())
    };
    texts.iter().map(rank).collect()
}

/// Finds the best pages for a query. Pages of the same rank are ordered by slug.
#[must_use]
pub fn search_pages(pages: &[WikiPage], query: &str, filter: &PageFilter, limit: usize) -> Vec<PageHit> {
    let words = list_query_words(query);
    let searched: Vec<&WikiPage> = pages.iter().filter(|page| is_searchable(page)).collect();
    let counted: Vec<WordCounts> = searched.iter().map(|page| WordCounts::new(list_page_words(page), &words)).collect();
    let ranked = searched.into_iter().zip(rank_texts(&counted, &words));
    let shown = ranked.filter(|(page, _)| filter.covers(page));
    let mut hits: Vec<(f64, &WikiPage)> = shown.filter_map(|(page, score)| Some((score?, page))).collect();
    hits.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.slug.cmp(&other.slug)));
    hits.truncate(limit);
    let to_hit = |(score, page): (f64, &WikiPage)| {
        let passage = find_passage(&page.document, &page.summary, &words);
        PageHit {
            slug: page.slug.clone(),
            title: page.title.clone(),
            kind: page.kind.clone(),
            file: page.file.clone(),
            score,
            passage: passage.text,
            line: passage.line,
            bytes: page.document.as_bytes().len(),
        }
    };
    hits.into_iter().map(to_hit).collect()
}

/// The first line of a text that holds one of the words, shortened; empty if none does.
#[must_use]
pub fn find_line(text: &str, words: &BTreeSet<String>) -> String {
    let line = text.lines().find(|line| holds_word(line, words));
    super::page::shorten(line.unwrap_or_default().trim(), MAX_PASSAGE)
}

/// What is shown of a page that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    pub text: String,
    /// The line of the file that it is, from 1; `None` for the summary.
    pub line: Option<usize>,
}

/// The first line of a page's body that holds one of the words, or else the summary of the page.
#[must_use]
pub fn find_passage(page: &Document, summary: &str, words: &BTreeSet<String>) -> Passage {
    let is_text = |line: &str| !line.starts_with("[^") && !line.starts_with('#');
    let found = page.body().lines().enumerate().find(|(_, line)| is_text(line) && holds_word(line, words));
    let shown = found.map_or(summary, |(_, line)| line);
    Passage {
        text: super::page::shorten(&strip_marks(shown.trim()), MAX_PASSAGE),
        line: found.map(|(at, _)| page.line_in_file(at + 1)),
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
        search_pages(pages, query, &PageFilter::default(), 10).into_iter().map(|hit| (hit.slug, hit.score)).collect()
    }

    #[test]
    fn a_query_is_met_by_one_word_by_all_or_by_all_in_their_order() {
        let fits = |how: WordMatch, query: &str| how.fits(split_words("The Léase of\nplot 12 ends."), query);
        let fits = |query: &str| [WordMatch::Any, WordMatch::All, WordMatch::Phrase].map(|how| fits(how, query));
        assert_eq!(fits("lease rent"), [true, false, false]);
        assert_eq!(fits("plot lease"), [true, true, false]);
        assert_eq!(fits("OF plot, 12"), [true, true, true]);
        assert_eq!(fits("rent"), [false; 3]);
        assert_eq!(fits(" ,"), [false; 3]);
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
    fn a_line_holds_the_words_that_it_is_split_into() {
        let words: BTreeSet<String> = ["aa", "kase", "1a", "ss"].map(str::to_owned).into();
        for line in [
            "aaa aa",
            "aaa",
            "aa",
            "x-aa",
            "Käse",
            "KÄSES",
            "a1a",
            "1a,",
            "ß",
            "groß ss",
            "aa\u{301}",
            "",
            "éaa",
            "aa_b",
        ] {
            let is_split = split_words(line).any(|word| words.contains(&word));
            assert_eq!(holds_word(line, &words), is_split, "{line}");
        }
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
