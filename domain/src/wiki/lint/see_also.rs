//! Pairs of pages that share a tag and rare words, and of which neither links the other.
//!
//! Nothing is understood: the words are counted. A word counts if few pages hold it, and a tag if not too many have it, so a wiki of
//! 10,000 pages costs one pass over its words.

use super::page_names::{LooseNames, PageNames};
use crate::wiki::compile::{EXTRACT_LINE, split_words};
use crate::wiki::finding::{FindingCode, Severity, WikiFinding};
use crate::wiki::merge::SplitBody;
use crate::wiki::page::WikiPage;
use crate::wiki::page_text::SEE_ALSO;
use crate::wiki::query::is_common_word;
use crate::wiki::quote::is_quote_label;
use crate::wiki::writer::related::{MIN_WORD, is_rare};
use std::collections::{BTreeMap, BTreeSet};

/// The most links on the see-also lines of a page.
const MAX_LINKS: usize = 3;
/// How many rare words two pages share at least.
const MIN_TERMS: usize = 3;
/// The most pairs that are found at once: those that share the most words.
const MAX_PAIRS: usize = 50;
/// A tag that more pages have, and a word that more pages hold, says too little.
const MAX_TAGGED: usize = 500;
const MAX_HOLDERS: usize = 20;

/// Two pages that should link each other, by their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::wiki) struct UnlinkedPair {
    pub(in crate::wiki) first: usize,
    pub(in crate::wiki) second: usize,
    /// The first tag that both have.
    tag: String,
    /// Some of the words that both hold.
    terms: Vec<String>,
}

pub(super) fn check_see_also(pages: &[WikiPage]) -> Vec<WikiFinding> {
    let report = |pair: UnlinkedPair| {
        let (page, other) = (&pages[pair.first], &pages[pair.second]);
        let terms = pair.terms.join(", ");
        let problem = format!(
            "`{}` has the tag `{}` and the words {terms}, too, and neither page links the other",
            other.slug, pair.tag
        );
        let fix = "link it; `steward wiki lint <wiki> --fix` adds see-also lines";
        WikiFinding::new(FindingCode::SeeAlso, Severity::Info, &page.file, &problem, fix)
    };
    find_unlinked_pairs(pages).into_iter().map(report).collect()
}

/// Finds the pairs, those that share the most words first. No page is in more of them than its see-also lines have room for.
pub(in crate::wiki) fn find_unlinked_pairs(pages: &[WikiPage]) -> Vec<UnlinkedPair> {
    let tags = list_shared_tags(pages);
    if tags.iter().all(BTreeSet::is_empty) {
        return Vec::new();
    }
    let (names, loose) = (PageNames::new(pages), LooseNames::new(pages));
    let mut rooms: BTreeMap<usize, usize> = BTreeMap::new();
    let mut linked: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut found = Vec::new();
    for pair in list_alike(pages, &tags) {
        let ends = [pair.first, pair.second];
        if ends.iter().any(|at| *rooms.entry(*at).or_insert_with(|| count_room(&pages[*at])) == 0) {
            continue;
        }
        let mut links = |from: usize, to: usize| {
            linked.entry(from).or_insert_with(|| names.list_linked(&loose, &pages[from])).contains(&to)
        };
        if links(pair.first, pair.second) || links(pair.second, pair.first) {
            continue;
        }
        for at in ends {
            rooms.entry(at).and_modify(|room| *room -= 1);
        }
        found.push(pair);
        if found.len() == MAX_PAIRS {
            break;
        }
    }
    found
}

/// How many links the see-also lines of a page have room for.
fn count_room(page: &WikiPage) -> usize {
    let lines = page.document.body().lines().filter(|line| line.starts_with(SEE_ALSO));
    MAX_LINKS.saturating_sub(lines.map(|line| line.matches("[[").count()).sum())
}

/// The tags of each page that some others have, too. A page that reports on others has none.
fn list_shared_tags<'p>(pages: &'p [WikiPage]) -> Vec<BTreeSet<&'p str>> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for page in pages.iter().filter(|page| !page.is_report()) {
        for tag in page.tags.iter().map(String::as_str).collect::<BTreeSet<_>>() {
            *counts.entry(tag).or_default() += 1;
        }
    }
    let is_shared = |tag: &&str| counts.get(*tag).is_some_and(|count| (2..=MAX_TAGGED).contains(count));
    let list = |page: &'p WikiPage| match page.is_report() {
        true => BTreeSet::new(),
        false => page.tags.iter().map(String::as_str).filter(is_shared).collect(),
    };
    pages.iter().map(list).collect()
}

/// The pairs that share a tag and enough words, whether they link each other or not.
fn list_alike(pages: &[WikiPage], tags: &[BTreeSet<&str>]) -> Vec<UnlinkedPair> {
    let terms = list_rare_terms(pages);
    let mut shared: BTreeMap<[usize; 2], Vec<&str>> = BTreeMap::new();
    for (term, holders) in &terms {
        for (at, first) in holders.iter().enumerate() {
            for second in holders[at + 1..].iter().filter(|second| !tags[*first].is_disjoint(&tags[**second])) {
                shared.entry([*first, *second]).or_default().push(term);
            }
        }
    }
    let mut counted: Vec<CountedPair> = shared
        .into_iter()
        .filter_map(|([first, second], mut terms)| {
            let common: Vec<&str> = tags[first].intersection(&tags[second]).copied().collect();
            let named: BTreeSet<String> =
                common.iter().flat_map(|tag| split_words(tag).map(str::to_lowercase).collect::<Vec<_>>()).collect();
            terms.retain(|term| !named.contains(*term));
            let shown = terms.iter().take(MIN_TERMS).map(|term| (*term).to_owned()).collect();
            let tag = (*common.first()?).to_owned();
            let pair = UnlinkedPair { first, second, tag, terms: shown };
            (terms.len() >= MIN_TERMS).then_some(CountedPair { count: terms.len(), pair })
        })
        .collect();
    counted.sort_by_key(|it| (std::cmp::Reverse(it.count), it.pair.first, it.pair.second));
    counted.into_iter().map(|it| it.pair).collect()
}

/// A pair with the number of words that both pages hold.
struct CountedPair {
    count: usize,
    pair: UnlinkedPair,
}

/// The words that some and not many pages hold, with the positions of these pages.
fn list_rare_terms(pages: &[WikiPage]) -> BTreeMap<String, Vec<usize>> {
    let mut holders: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut count = 0;
    for (at, page) in pages.iter().enumerate().filter(|(_, page)| !page.is_report()) {
        count += 1;
        let lower = read_text(page).to_lowercase();
        let is_term = |word: &&str| word.chars().any(char::is_alphabetic) && word.chars().nth(MIN_WORD - 1).is_some();
        for word in split_words(&lower).filter(is_term) {
            match holders.get_mut(word) {
                // Those of a common word are not needed.
                Some(known) if known.last() == Some(&at) || known.len() > MAX_HOLDERS => {}
                Some(known) => known.push(at),
                None => drop(holders.insert(word.to_owned(), vec![at])),
            }
        }
    }
    let is_kept = |holders: usize| (2..=MAX_HOLDERS).contains(&holders) && is_rare(holders, count);
    let rare = holders
        .into_iter()
        .filter(|(word, holders)| is_kept(holders.len()) && !is_common_word(word) && !is_quote_label(word));
    rare.collect()
}

/// The title and the text of a page above its footnotes, without what code writes on many pages.
fn read_text(page: &WikiPage) -> String {
    let body = SplitBody::new(page.document.body());
    let lines = body.text.lines().filter(|line| *line != EXTRACT_LINE && !line.starts_with(SEE_ALSO));
    std::iter::once(page.title.as_str()).chain(lines).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::page::read_page;

    fn page(slug: &str, kind: &str, tags: &str, body: &str) -> WikiPage {
        let text = format!(
            "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: {kind}\ntitle: Of {slug}\ntags: [{tags}]\n---\n{body}\n"
        );
        read_page(&format!("pages/{slug}.md"), text.as_bytes()).page.unwrap()
    }

    fn pairs(pages: &[WikiPage]) -> Vec<[&str; 2]> {
        find_unlinked_pairs(pages)
            .iter()
            .map(|pair| [pair.first, pair.second].map(|at| pages[at].slug.as_str()))
            .collect()
    }

    const WORDS: &str = "The stopcock shuts the valve in winter.";

    #[test]
    fn pages_with_a_common_tag_and_three_common_words_should_link_each_other() {
        let both = |tags: &str, body: &str| [page("aa", "concept", "water", WORDS), page("bb", "concept", tags, body)];
        let alike = both("garden, water", "In winter the valve of a stopcock is shut.");
        assert_eq!(pairs(&alike), [["aa", "bb"]]);
        let finding = &check_see_also(&alike)[0];
        assert_eq!((finding.file.as_str(), finding.severity), ("pages/aa.md", Severity::Info));
        assert!(
            finding.problem.contains("`bb` has the tag `water` and the words stopcock, valve, winter"),
            "{finding}"
        );
        for (tags, body) in [
            ("garden", "In winter the valve of a stopcock is shut."),
            ("water", "In winter the valve is shut."),
            ("water", "In winter the valve of a stopcock is shut. See [[aa]]."),
            // A link that can only mean the other page is one.
            ("water", "In winter the valve of a stopcock is shut. See [[Of_aa]]."),
            ("water", "In winter the valve is for the water.\n\n[^c6107d23f]: lease — \"A stopcock.\""),
            ("water", "In winter the valve of a stopcock is shut.\n\nSee also: [[x]], [[y]], [[z]]"),
        ] {
            assert_eq!(pairs(&both(tags, body)), Vec::<[&str; 2]>::new(), "{tags}: {body}");
        }
        let named = [page("aa", "concept", "winter", WORDS), page("bb", "concept", "winter", WORDS)];
        assert_eq!(check_see_also(&named)[0].problem.matches("winter").count(), 1, "the tag is no word");
        let report = [page("aa", "archive", "water", WORDS), page("bb", "lint", "water", WORDS)];
        assert_eq!(pairs(&report), Vec::<[&str; 2]>::new());
    }

    #[test]
    fn a_page_is_in_three_pairs_at_most_and_words_of_many_pages_do_not_count() {
        let many: Vec<WikiPage> = (0..5).map(|n| page(&format!("p-{n}"), "concept", "water", WORDS)).collect();
        let found = pairs(&many);
        for page in &many {
            let count = found.iter().flatten().filter(|slug| **slug == page.slug).count();
            assert!(count <= MAX_LINKS, "{found:?}");
        }
        assert_eq!(found.len(), 6);
        let common: Vec<WikiPage> = (0..8).map(|n| page(&format!("p-{n}"), "concept", "water", WORDS)).collect();
        assert_eq!(pairs(&common), Vec::<[&str; 2]>::new());
    }
}
