//! The pages that a source should touch: those that it names or that rest on a source which it replaces, and those that share
//! its rarest words.
//!
//! A model is offered them, so that a source changes what it should. Nothing is changed here.

use crate::wiki::compile::WordCounts;
use crate::wiki::page::WikiPage;
use crate::wiki::search::{list_page_words, split_words};
use std::collections::{BTreeMap, BTreeSet};

/// The most pages that are offered.
pub const MAX_RELATED: usize = 15;
/// How many of the best words count, and how many of them a page must hold.
const BEST_WORDS: usize = 20;
const MIN_SHARED: usize = 2;
/// A word counts if it stands on at most this share of the pages, in percent, or on at most so many of them.
const MAX_PERCENT: usize = 2;
const MAX_PAGES_FEW: usize = 5;
/// The shortest word that counts, in characters.
pub(in crate::wiki) const MIN_WORD: usize = 3;

/// The pages of a wiki as a source concerns them, by their positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelatedPages {
    /// At most [`MAX_RELATED`]: those that the source names or that rest on what it replaces, then those that share its best words.
    pub offered: Vec<usize>,
    /// All others, those that share the most words first.
    pub others: Vec<usize>,
}

/// Finds the pages that a text names or is close to. `replaced` are the ids of the sources that it replaces.
#[must_use]
pub fn find_related(pages: &[WikiPage], text: &str, replaced: &[&str]) -> RelatedPages {
    let counts = WordCounts::count(pages, text);
    let source: Vec<String> = split_words(text).collect();
    let line = format!(" {} ", source.join(" "));
    let is_named = |page: &WikiPage| {
        let names = std::iter::once(&page.title).chain(&page.aliases);
        let is_in_text = names
            .map(|name| split_words(name).collect::<Vec<_>>().join(" "))
            .any(|name| name.chars().count() >= MIN_WORD && line.contains(&format!(" {name} ")));
        is_in_text || page.sources.iter().any(|id| replaced.contains(&id.as_str()))
    };
    let open = || pages.iter().enumerate().filter(|(_, page)| !page.is_report());
    let best = choose_words(&source, &counts);
    let count_shared =
        |page: &WikiPage| list_page_words(page).filter(|word| best.contains(word)).collect::<BTreeSet<String>>().len();
    let (named, other): (Vec<_>, Vec<_>) = open().partition(|(_, page)| is_named(page));
    let mut close: Vec<(usize, usize)> = other.into_iter().map(|(at, page)| (count_shared(page), at)).collect();
    close.sort_by(|(a, one), (b, other)| b.cmp(a).then(one.cmp(other)));
    let is_close = |(shared, _): &(usize, usize)| *shared >= MIN_SHARED;
    let count = named.len() + close.iter().take_while(|page| is_close(page)).count();
    let mut all = named.into_iter().map(|(at, _)| at).chain(close.into_iter().map(|(_, at)| at));
    RelatedPages { offered: all.by_ref().take(count.min(MAX_RELATED)).collect(), others: all.collect() }
}

/// The best words of a text by TF-IDF.
fn choose_words(words: &[String], counts: &WordCounts) -> BTreeSet<String> {
    let mut occurrences: BTreeMap<&str, usize> = BTreeMap::new();
    for word in words.iter().filter(|word| word.chars().count() >= MIN_WORD) {
        *occurrences.entry(word).or_default() += 1;
    }
    let pages = counts.pages.max(1);
    let held = |word: &str| counts.by_word.get(word).copied().unwrap_or(0);
    let weigh = |word: &str, count: usize| count as f64 * ((pages as f64 + 1.0) / (held(word) as f64 + 1.0)).ln_1p();
    // A word that no page holds leads to none.
    let mut ranked: Vec<(f64, &str)> = occurrences
        .into_iter()
        .filter(|(word, _)| held(word) > 0 && is_rare(held(word), pages))
        .map(|(word, count)| (weigh(word, count), word))
        .collect();
    ranked.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.cmp(other)));
    ranked.into_iter().take(BEST_WORDS).map(|(_, word)| word.to_owned()).collect()
}

/// Whether a word that so many of the pages hold is rare.
pub(in crate::wiki) fn is_rare(held: usize, pages: usize) -> bool {
    held <= MAX_PAGES_FEW || held * 100 <= pages * MAX_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::page::read_page;

    fn page(slug: &str, title: &str, kind: &str, body: &str) -> WikiPage {
        let text = format!(
            "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: {kind}\ntitle: {title}\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n{body}\n"
        );
        read_page(&format!("pages/{slug}.md"), text.as_bytes()).page.unwrap()
    }

    #[test]
    fn named_pages_come_first_and_common_words_do_not_count() {
        let mut pages = vec![
            page("overview", "Overview", "overview", "Plot 12 stopcock winter"),
            page("water", "The water", "concept", "A stopcock is closed in winter."),
            page("plot-12", "Plot 12", "entity", "Nothing shared."),
            page("fees", "Fees", "concept", "The stopcock alone is shared."),
        ];
        pages.extend(
            (0..40).map(|n| page(&format!("p-{n}"), &format!("Other {n}"), "concept", "the council letter common")),
        );
        let text = "The council of plot 12 wrote a letter: close the stopcock in winter.";
        let found = find_related(&pages, text, &[]);
        assert_eq!((found.offered, found.others.len(), found.others[0]), (vec![2, 1], 41, 3));
        assert_eq!(find_related(&[], text, &[]), RelatedPages::default());
        pages[10] = page("p-6", "Other 6\nsources: [old-letter]", "concept", "the council letter common");
        assert_eq!(find_related(&pages, text, &["old-letter"]).offered, [2, 10, 1]);
    }
}
