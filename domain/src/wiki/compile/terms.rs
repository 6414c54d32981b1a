//! Finds what a source speaks of: headings, definitions, and names that occur three times.
//!
//! The best by TF-IDF remain: a term counts more the more often it occurs in the source and the fewer pages hold its rarest
//! word. The same source and wiki always give the same terms.

mod names;

use super::sections::Section;
use crate::wiki::page::WikiPage;
use names::find_names;
use std::collections::{BTreeMap, BTreeSet};

/// The most terms of a source, and those of a long one.
const FEW_TERMS: usize = 5;
const MANY_TERMS: usize = 8;
/// The most pages that are extended because a source names them.
const MAX_KNOWN: usize = 6;
/// From how many characters on a source is long.
const LONG_SOURCE: usize = 8_000;
/// The most candidates that are compared, so that a hostile source costs no more than a long one.
const MAX_CANDIDATES: usize = 500;
/// The most sentences that are looked at for one term.
const MAX_PLACES: usize = 50;
/// The most words and characters of a term.
const MAX_WORDS: usize = 5;
const MAX_CHARS: usize = 60;
/// Headings that say nothing about the contents, in lower case.
const COMMON_HEADINGS: [&str; 35] = [
    "introduction",
    "overview",
    "summary",
    "contents",
    "table of contents",
    "references",
    "conclusion",
    "conclusions",
    "notes",
    "appendix",
    "background",
    "abstract",
    "einleitung",
    "inhalt",
    "zusammenfassung",
    "anhang",
    "see also",
    "links",
    "example",
    "examples",
    "usage",
    "installation",
    "getting started",
    "documentation",
    "changelog",
    "license",
    "licence",
    "contributing",
    "contribution",
    "contributions",
    "acknowledgements",
    "faq",
    "todo",
    "beispiele",
    "lizenz",
];
/// Words that stand where a definition has its term, in lower case.
const PRONOUNS: [&str; 16] = [
    "it", "this", "that", "there", "he", "she", "they", "we", "you", "i", "which", "what", "who", "here", "these",
    "one",
];
/// What follows the term of a definition.
const DEFINERS: [&str; 7] = [" is a ", " is an ", " is the ", " are the ", " means ", " refers to ", " stands for "];

/// How many pages of the wiki hold a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordCounts {
    /// The number of all pages.
    pub pages: usize,
    /// By word, in lower case. A word that no page holds is not there.
    pub by_word: BTreeMap<String, usize>,
}

impl WordCounts {
    /// Counts the pages that hold the words of a text.
    #[must_use]
    pub fn count(pages: &[WikiPage], text: &str) -> Self {
        let wanted: BTreeSet<String> = split_words(&text.to_lowercase()).map(str::to_owned).collect();
        let mut by_word: BTreeMap<String, usize> = BTreeMap::new();
        for page in pages {
            let lower = page.document.as_str().to_lowercase();
            let held: BTreeSet<&str> = split_words(&lower).filter(|word| wanted.contains(*word)).collect();
            for word in held {
                *by_word.entry(word.to_owned()).or_default() += 1;
            }
        }
        Self { pages: pages.len(), by_word }
    }
}

/// The words of a text, as they stand there.
pub(in crate::wiki) fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// What a source speaks of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) name: String,
    /// Its definition, if there is one: the section and the sentence.
    definition: Option<SentencePlace>,
    /// The section that is called so.
    section: Option<usize>,
    /// Where it occurs first, to put equal terms into an order.
    first: usize,
}

/// A sentence by the positions of its section and itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentencePlace {
    pub(super) section: usize,
    pub(super) sentence: usize,
}

/// Finds the names of pages that a source holds, in their order.
pub(super) fn find_known<'n>(sections: &[Section], names: impl Iterator<Item = &'n str>) -> Vec<Term> {
    let text = join_text(sections);
    let words: BTreeSet<&str> = split_words(&text).collect();
    let mut found: Vec<Term> = Vec::new();
    for name in names.filter(|name| is_name(name)) {
        let key = name.to_lowercase();
        let is_new = found.iter().all(|term| term.name.to_lowercase() != key);
        if is_new && split_words(&key).all(|word| words.contains(word)) && count_word(&text, &key) > 0 {
            let section = sections.iter().position(|section| section.heading.to_lowercase() == key);
            found.push(Term { name: name.to_owned(), definition: None, section, first: 0 });
        }
        if found.len() == MAX_KNOWN {
            break;
        }
    }
    found
}

/// Finds the terms of a source, best first. `title` is that of the source, which is no term.
pub(super) fn find_terms(sections: &[Section], title: &str, counts: &WordCounts) -> Vec<Term> {
    let mut candidates: BTreeMap<String, Term> = BTreeMap::new();
    let mut add = |term: Term| {
        let key = term.name.to_lowercase();
        if key == title.to_lowercase() {
            return;
        }
        if candidates.len() >= MAX_CANDIDATES && !candidates.contains_key(&key) {
            return;
        }
        let known = candidates.entry(key).or_insert_with(|| term.clone());
        known.definition = known.definition.or(term.definition);
        known.section = known.section.or(term.section);
    };
    find_headings(sections).into_iter().for_each(&mut add);
    find_definitions(sections).into_iter().for_each(&mut add);
    find_names(sections).into_iter().for_each(&mut add);
    let text = join_text(sections);
    let length = text.chars().count();
    let mut scored: Vec<(f64, Term)> = candidates
        .into_iter()
        .map(|(key, term)| (score(&key, count_word(&text, &key), counts), term))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scored.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.first.cmp(&other.first)));
    scored.truncate(if length < LONG_SOURCE { FEW_TERMS } else { MANY_TERMS });
    scored.into_iter().map(|(_, term)| term).collect()
}

/// The places of the sentences that speak of a term: its definition first, then those that name it, then those below its
/// heading.
pub(super) fn list_sentences(term: &Term, sections: &[Section]) -> Vec<SentencePlace> {
    let key = term.name.to_lowercase();
    let all = sections
        .iter()
        .enumerate()
        .flat_map(|(section, it)| (0..it.sentences.len()).map(move |sentence| SentencePlace { section, sentence }));
    let names_it = |place: &SentencePlace| {
        count_word(&sections[place.section].sentences[place.sentence].text.to_lowercase(), &key) > 0
    };
    let below = |place: &SentencePlace| Some(place.section) == term.section;
    let mut places: Vec<SentencePlace> = term.definition.into_iter().collect();
    for place in all.clone().filter(names_it).chain(all.filter(below)).take(MAX_PLACES) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn score(key: &str, occurrences: usize, counts: &WordCounts) -> f64 {
    let words = split_words(key);
    // The rarest word of a term says how common it is at most.
    let pages = words.map(|word| counts.by_word.get(word).copied().unwrap_or_default()).min();
    let rarity = ((counts.pages as f64 + 1.0) / (pages.unwrap_or_default() as f64 + 1.0)).ln() + 1.0;
    occurrences as f64 * rarity
}

fn find_headings(sections: &[Section]) -> Vec<Term> {
    let named = sections.iter().enumerate().filter(|(_, section)| !section.sentences.is_empty());
    named
        .filter_map(|(at, section)| {
            let numbered = |c: char| c.is_ascii_digit() || matches!(c, '.' | ')' | ' ');
            let stripped = section.heading.trim_start_matches(numbered).trim_end_matches([':', '.', '?', '!']);
            let name = stripped.trim();
            let is_common = COMMON_HEADINGS.contains(&name.to_lowercase().as_str());
            (is_name(name) && !is_common).then(|| Term {
                name: name.to_owned(),
                definition: None,
                section: Some(at),
                first: at,
            })
        })
        .collect()
}

fn find_definitions(sections: &[Section]) -> Vec<Term> {
    let mut found = Vec::new();
    for (section, it) in sections.iter().enumerate() {
        for (sentence, words) in it.sentences.iter().enumerate() {
            let begins = DEFINERS.iter().filter_map(|definer| words.text.find(definer)).min();
            let Some(before) = begins.and_then(|at| words.text.get(..at)) else { continue };
            let name = strip_article(before.trim().trim_matches(['"', '“', '”', '\'']));
            let is_pronoun = PRONOUNS.contains(&name.to_lowercase().as_str());
            if is_name(name) && !is_pronoun && name.split_whitespace().count() <= 3 {
                let definition = Some(SentencePlace { section, sentence });
                found.push(Term { name: capitalise(name), definition, section: None, first: section });
            }
        }
    }
    found
}

fn strip_article(text: &str) -> &str {
    let stripped = ["The ", "A ", "An ", "the ", "a ", "an "].iter().find_map(|article| text.strip_prefix(article));
    stripped.unwrap_or(text).trim()
}

fn capitalise(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn is_name(text: &str) -> bool {
    let count = text.chars().count();
    let words = text.split_whitespace().count();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '\'' | '’' | '/' | '&' | '.' | '+' | '#');
    (3..=MAX_CHARS).contains(&count)
        && (1..=MAX_WORDS).contains(&words)
        && text.chars().any(char::is_alphabetic)
        && text.chars().all(is_plain)
}

fn join_text(sections: &[Section]) -> String {
    let texts = sections.iter().flat_map(|section| {
        std::iter::once(section.heading.as_str()).chain(section.sentences.iter().map(|one| one.text.as_str()))
    });
    texts.collect::<Vec<_>>().join("\n").to_lowercase()
}

/// How often a word or several in a row stand in a text. Both are in lower case.
fn count_word(text: &str, word: &str) -> usize {
    let is_apart = |at: usize| {
        let before = text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        before && text[at + word.len()..].chars().next().is_none_or(|c| !c.is_alphanumeric())
    };
    text.match_indices(word).filter(|(at, _)| is_apart(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::super::sections::split_sections;
    use super::*;
    use crate::wiki::source_text::SourceText;

    fn sections(text: &str) -> Vec<Section> {
        split_sections(&SourceText::from_text(text, true))
    }

    const TEXT: &str = "# The allotment\n\nPlot 12 lies by the river. In May the lease of Plot 12 ends. A stopcock is a valve \
        that shuts off the water. The council wrote to Ann Bell. Later Ann Bell paid, and the council thanked Ann Bell.\n\n\
        ## 2. Water supply\n\nIt is shut off in winter. Nobody but Plot 12 complained.\n\n## Notes\n\nNothing.\n";

    fn names(counts: &WordCounts) -> Vec<String> {
        find_terms(&sections(TEXT), "The allotment", counts).into_iter().map(|term| term.name).collect()
    }

    #[test]
    fn headings_definitions_and_repeated_names_are_terms() {
        let found = names(&WordCounts::default());
        assert_eq!(found, ["Ann Bell", "Plot 12", "Stopcock", "Water supply"]);
    }

    #[test]
    fn ordinary_words_are_no_names() {
        let text = "# Notes\n\nThis helps. Use This or this. Enable: Enable it. We enable Enable. Rust is fast. We like Rust, and Rust \
            likes us. Files in Files. Many files and other files.\n\n## License\n\nMIT it is.\n";
        let found: Vec<String> =
            find_terms(&sections(text), "Notes", &WordCounts::default()).into_iter().map(|term| term.name).collect();
        assert_eq!(found, ["Rust"]);
    }

    #[test]
    fn what_stands_on_many_pages_comes_later() {
        let by_word = [("ann".to_owned(), 90), ("bell".to_owned(), 80)].into_iter().collect();
        assert_eq!(names(&WordCounts { pages: 100, by_word })[0], "Plot 12");
    }

    #[test]
    fn a_term_has_its_definition_first_and_a_heading_what_stands_below() {
        let sections = sections(TEXT);
        let terms = find_terms(&sections, "The allotment", &WordCounts::default());
        let texts = |name: &str| {
            let term = terms.iter().find(|term| term.name == name).unwrap();
            let places = list_sentences(term, &sections);
            places.iter().map(|it| sections[it.section].sentences[it.sentence].text.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(texts("Stopcock"), ["A stopcock is a valve that shuts off the water."]);
        assert_eq!(texts("Water supply"), ["It is shut off in winter.", "Nobody but Plot 12 complained."]);
        assert_eq!(texts("Plot 12").len(), 3);
    }
}
