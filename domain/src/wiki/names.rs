//! Names in a wiki: slugs, kinds, folders of kinds, and ids of sources.
//!
//! They are made of outside text. What comes out is always ASCII, and never a path or a hidden file.

use super::standard::is_slug;

/// The longest slug that is made here, in characters.
const MAX_SLUG: usize = 96;
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

/// The kind of an entity type, as in `customer-deal` for `CustomerDeal`.
#[must_use]
pub fn kind_of_type(name: &str) -> String {
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
pub fn folder_of_kind(kind: &str) -> String {
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

/// The slug for a title: ASCII, lower case, one hyphen for each run of other characters.
///
/// A leading digit gets the prefix `n-`, and a single letter the suffix `-page`. `None` if nothing is left; then the slug
/// is made of the title's hash by whoever knows one.
#[must_use]
pub fn slug_of_title(title: &str) -> Option<String> {
    let kebab = to_kebab(title);
    let slug = match kebab.chars().next()? {
        digit if digit.is_ascii_digit() => format!("n-{kebab}"),
        _ if kebab.len() == 1 => format!("{kebab}-page"),
        _ => kebab,
    };
    let cut = slug.get(..MAX_SLUG).unwrap_or(&slug).trim_end_matches('-').to_owned();
    is_slug(&cut).then_some(cut)
}

/// The text in ASCII and lower case, with one hyphen for each run of other characters, and none at its ends.
#[must_use]
pub fn to_kebab(text: &str) -> String {
    let ascii = deunicode::deunicode(text).to_ascii_lowercase();
    let words = ascii.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// The id of a source, from the path of its file: the kebab form of its stem. `None` if nothing is left of it.
#[must_use]
pub fn id_of_source(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let id = to_kebab(if stem.is_empty() { name } else { stem });
    let id = id.get(..80).unwrap_or(&id).trim_end_matches('-').to_owned();
    (id.len() >= 2).then_some(id)
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
            assert_eq!(kind_of_type(name), kind);
            assert_eq!(folder_of_kind(kind), folder);
        }
    }

    #[test]
    fn a_title_becomes_a_slug_that_the_standard_takes() {
        for (title, slug) in [
            ("Plot 12", Some("plot-12")),
            ("Ærøskøbing – Größe & Co.", Some("aeroskobing-grosse-co")),
            ("2024 lease", Some("n-2024-lease")),
            ("X", Some("x-page")),
            ("…", None),
            ("", None),
        ] {
            assert_eq!(slug_of_title(title).as_deref(), slug, "{title}");
        }
        let long = slug_of_title(&"a b ".repeat(60)).unwrap();
        assert!(long.len() <= MAX_SLUG && is_slug(&long), "{long}");
    }

    #[test]
    fn a_source_is_named_after_its_file() {
        assert_eq!(id_of_source("sources/2026-11-20 Council letter.pdf").as_deref(), Some("2026-11-20-council-letter"));
        assert_eq!(id_of_source("sources/.md").as_deref(), Some("md"));
        assert_eq!(id_of_source("sources/…").as_deref(), None);
    }
}
