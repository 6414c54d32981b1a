//! Finds names in sentences: capitalised words in a row, with numbers after them.
//!
//! A sentence begins with a capital, and so may what follows a colon. A single word that also stands in lower case is no name. What a name
//! means is not known here.

use super::super::sections::Section;
use super::{Term, is_name, split_words};
use std::collections::BTreeMap;

/// How often a name occurs at least.
const MIN_OCCURRENCES: usize = 3;
/// Capitalised words that name nothing of their own, in lower case.
const COMMON_NAMES: [&str; 24] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "dear",
    "i",
    "the",
    "a",
    "an",
];

/// A name in a sentence.
struct FoundName {
    text: String,
    /// It begins the sentence, where every word is capitalised.
    is_first: bool,
}

/// How often a name occurs, how often of that within a sentence, and where it does first.
#[derive(Default)]
struct NameCount {
    count: usize,
    within: usize,
    first: usize,
}

/// Capitalised words in a row, with numbers after them, that stand within a sentence.
pub(super) fn find_names(sections: &[Section]) -> Vec<Term> {
    let mut counts: BTreeMap<String, NameCount> = BTreeMap::new();
    for (at, section) in sections.iter().enumerate() {
        for name in section.sentences.iter().flat_map(|sentence| list_names(&sentence.text)) {
            let count = counts.entry(name.text).or_insert_with(|| NameCount { first: at, ..NameCount::default() });
            count.count += 1;
            count.within += usize::from(!name.is_first);
        }
    }
    let ordinary = count_ordinary(sections);
    // A single word that also stands in lower case, or hardly ever within a sentence, is an ordinary one.
    let is_ordinary = |name: &str, count: &NameCount| {
        let is_single = !name.contains(' ');
        is_single && (count.within < 2 || ordinary.get(&name.to_lowercase()).is_some_and(|seen| *seen >= count.within))
    };
    let is_term = |name: &str, count: &NameCount| {
        count.count >= MIN_OCCURRENCES && count.within > 0 && is_name(name) && !is_ordinary(name, count)
    };
    let named = counts.into_iter().filter(|(name, count)| is_term(name, count));
    named.map(|(name, count)| Term { name, definition: None, section: None, first: count.first }).collect()
}

/// How often words stand in lower case.
fn count_ordinary(sections: &[Section]) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let words = sections.iter().flat_map(|section| &section.sentences).flat_map(|sentence| split_words(&sentence.text));
    for word in words.filter(|word| word.starts_with(char::is_lowercase)) {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}

fn list_names(sentence: &str) -> Vec<FoundName> {
    let mut names: Vec<FoundName> = Vec::new();
    let mut open: Option<FoundName> = None;
    let mut is_start = true;
    for word in sentence.split_whitespace() {
        let plain = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_capital = plain.chars().next().is_some_and(char::is_uppercase);
        let is_common = COMMON_NAMES.contains(&plain.to_lowercase().as_str());
        let is_number = open.is_some() && !plain.is_empty() && plain.bytes().all(|b| b.is_ascii_digit());
        match open.as_mut() {
            _ if is_common || !(is_capital || is_number) => names.extend(open.take()),
            Some(name) => {
                name.text.push(' ');
                name.text.push_str(plain);
            }
            None => open = Some(FoundName { text: plain.to_owned(), is_first: is_start }),
        }
        // After these another sentence may begin.
        is_start = plain.is_empty() || word.ends_with([':', '.', '!', '?', ';']);
        // A comma or a full stop ends a name.
        if !word.ends_with(plain) {
            names.extend(open.take());
        }
    }
    names.extend(open);
    // The first word of a sentence is capitalised in any case, so what follows it may be the name.
    let rest = |name: &FoundName| name.text.split_once(' ').filter(|_| name.is_first).map(|(_, rest)| rest.to_owned());
    let rests: Vec<String> = names.iter().filter_map(rest).collect();
    names.extend(rests.into_iter().map(|text| FoundName { text, is_first: false }));
    names
}
