//! Names in a wiki: kinds, folders of kinds, and ids of sources.
//!
//! They are made of outside text. What comes out is always ASCII, and never a path or a hidden file.

use crate::action::plan::ContentHash;

/// The kinds that are known without being declared.
pub const KNOWN_KINDS: [&str; 11] = [
    "entity",
    "concept",
    "summary",
    "comparison",
    "timeline",
    "connection",
    "insight",
    "qa",
    "archive",
    "lint",
    "overview",
];

/// Whether a text is this one in lower case. Thousands of names are compared for one change, and most differ in their first letter.
#[must_use]
pub fn is_lowercase_of(lower: &str, text: &str) -> bool {
    match text.as_bytes().first() {
        // A plain letter stays one letter.
        Some(first) if first.is_ascii() && lower.as_bytes().first() != Some(&first.to_ascii_lowercase()) => false,
        _ if text.is_ascii() => text.eq_ignore_ascii_case(lower),
        _ => text.to_lowercase() == lower,
    }
}

/// The kind of an entity type, as in `customer-deal` for `CustomerDeal`.
#[must_use]
pub fn name_kind(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut kind = String::with_capacity(name.len() + 4);
    for (at, c) in chars.iter().enumerate() {
        let follows_lower = at > 0 && !chars[at - 1].is_ascii_uppercase();
        let begins_word = at > 0 && chars.get(at + 1).is_some_and(char::is_ascii_lowercase);
        if c.is_ascii_uppercase() && (follows_lower || begins_word) {
            kind.push('-');
        }
        kind.push(c.to_ascii_lowercase());
    }
    kind
}

/// The folder of the pages of a kind, relative to the wiki; empty for the overview, which lies at its root.
#[must_use]
pub fn name_folder(kind: &str) -> String {
    match kind {
        "overview" => String::new(),
        // No plural.
        "qa" | "lint" => kind.to_owned(),
        _ => match kind.strip_suffix('y') {
            Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
            _ if kind.ends_with(['s', 'x']) || kind.ends_with("ch") || kind.ends_with("sh") => format!("{kind}es"),
            _ => format!("{kind}s"),
        },
    }
}

/// The text in ASCII and lower case, with one hyphen for each run of other characters, and none at its ends.
fn to_kebab(text: &str) -> String {
    let ascii = deunicode::deunicode(text).to_ascii_lowercase();
    let words = ascii.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// The id of a source, from the path of its file: the kebab form of its stem. `None` if nothing is left of it.
#[must_use]
pub fn name_source(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let id = to_kebab(if stem.is_empty() { name } else { stem });
    let id = id.get(..80).unwrap_or(&id).trim_end_matches('-').to_owned();
    (id.len() >= 2).then_some(id)
}

/// The id of a source whose name holds too few letters and digits.
#[must_use]
pub fn name_unnamed_source(path: &str) -> String {
    format!("source-{}", hash_short(path))
}

/// The slug of a page with this title.
#[must_use]
pub fn name_page(title: &str) -> String {
    let kebab = to_kebab(title);
    let slug = match kebab.as_str() {
        "" => format!("page-{}", hash_short(title)),
        _ if kebab.starts_with(|first: char| first.is_ascii_digit()) => format!("n-{kebab}"),
        letter if letter.len() == 1 => format!("{letter}-page"),
        _ => kebab,
    };
    slug.get(..MAX_SLUG).unwrap_or(&slug).trim_end_matches('-').to_owned()
}

/// The first of a slug and the same slug with a number, from 2 on, that is free.
pub fn find_free_slug(slug: String, mut is_free: impl FnMut(&String) -> bool) -> String {
    let stem = slug.get(..MAX_NUMBERED).unwrap_or(&slug).trim_end_matches('-').to_owned();
    let numbered = (2..).map(|n| format!("{stem}-{n}"));
    std::iter::once(slug.clone()).chain(numbered).find(|slug| is_free(slug)).unwrap_or(slug)
}

/// The slug of the summary of a source.
#[must_use]
pub fn name_summary(source: &str) -> String {
    let cut = source.char_indices().nth(MAX_SOURCE_IN_SLUG).map(|(at, _)| &source[..at]);
    match cut.or_else(|| source.ends_with('-').then_some(source)) {
        Some(part) => format!("summary-{}-{}", part.trim_end_matches('-'), hash_short(source)),
        None => format!("summary-{source}"),
    }
}

/// The longest slug, and the most characters of a source's id in one.
const MAX_SLUG: usize = 96;
/// The most characters of a slug before a number.
const MAX_NUMBERED: usize = 90;
const MAX_SOURCE_IN_SLUG: usize = 79;

/// The first 8 hex digits of the hash of a text.
fn hash_short(text: &str) -> String {
    ContentHash::hash_bytes(text.as_bytes()).as_str()[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_becomes_a_kind_and_a_folder() {
        for (name, kind, folder) in [
            ("Entity", "entity", "entities"),
            ("CustomerDeal", "customer-deal", "customer-deals"),
            ("HTTPServer", "http-server", "http-servers"),
            ("Qa", "qa", "qa"),
            ("Process", "process", "processes"),
            ("Key", "key", "keys"),
            ("Summary", "summary", "summaries"),
            ("Overview", "overview", ""),
            ("Q3Plan", "q3-plan", "q3-plans"),
        ] {
            assert_eq!(name_kind(name), kind);
            assert_eq!(name_folder(kind), folder);
        }
    }

    #[test]
    fn a_page_is_named_after_its_title() {
        for (title, slug) in [
            ("Plot 12", "plot-12"),
            ("12 plots", "n-12-plots"),
            ("X", "x-page"),
            ("7", "n-7"),
            ("Über Käse", "uber-kase"),
        ] {
            assert_eq!(name_page(title), slug);
        }
        assert_eq!(name_page("…").len(), "page-12345678".len());
        assert!(super::super::standard::is_slug(&name_page(&"long ".repeat(50))));
    }

    #[test]
    fn a_summary_is_named_after_its_source() {
        assert_eq!(name_summary("2026-11-20-letter"), "summary-2026-11-20-letter");
        let long = name_summary(&"a".repeat(96));
        assert!(long.starts_with(&format!("summary-{}-", "a".repeat(79))) && long.len() == 96, "{long}");
        assert!(super::super::standard::is_slug(&name_summary("letter-")));
    }

    #[test]
    fn a_source_is_named_after_its_file() {
        assert_eq!(name_source("sources/2026-11-20 Council letter.pdf").as_deref(), Some("2026-11-20-council-letter"));
        assert_eq!(name_source("sources/.md").as_deref(), Some("md"));
        assert_eq!(name_source("sources/…").as_deref(), None);
    }
}
