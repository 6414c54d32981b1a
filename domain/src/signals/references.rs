//! Finds the references in the words of an event: `#123`, and the last part of each URL.
//!
//! They are outside words. By them the events about one ticket, order or page are found, whichever stream they came by. Nothing is
//! fetched, and a reference that looks like another one is not told apart.

use std::collections::BTreeSet;

/// The most references of one event: a mail with more is a list of links.
pub const MAX_REFERENCES: usize = 20;
/// The longest reference, in characters. Longer last parts of URLs are keys of trackers.
const MAX_CHARS: usize = 64;

/// Lists the references of a text in their order, each once, at most [`MAX_REFERENCES`].
#[must_use]
pub fn list_references(text: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '(' | ')' | '[' | ']' | ','));
    let found = words.filter_map(|word| find_url_reference(word).or_else(|| find_number_reference(word)));
    found.filter(|reference| seen.insert(reference.clone())).take(MAX_REFERENCES).collect()
}

/// The last part of a URL's path, without query and fragment, as `123` in `https://git.example/issues/123?tab=1`.
fn find_url_reference(word: &str) -> Option<String> {
    let at = word.find("https://").or_else(|| word.find("http://"))?;
    let rest = word[at..].split_once("://")?.1;
    let rest = rest.split(['?', '#']).next()?.trim_end_matches(['/', '.', ';', ':', '!', '\'']);
    let (_, last) = rest.split_once('/').map(|(_, path)| path.rsplit_once('/').unwrap_or(("", path)))?;
    Some(last.to_owned()).filter(|last| !last.is_empty() && last.chars().count() <= MAX_CHARS)
}

/// `#123`, also before a sign of punctuation. A word in front, as in `C#7`, makes it none.
fn find_number_reference(word: &str) -> Option<String> {
    let rest = word.trim_start_matches(|c: char| c != '#' && !c.is_alphanumeric()).strip_prefix('#')?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let ends_well = rest.chars().nth(digits.len()).is_none_or(|c| !c.is_alphanumeric());
    (ends_well && (1..=MAX_CHARS).contains(&digits.len())).then(|| format!("#{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_last_parts_of_urls_are_references() {
        let text = "Re: #123, (#45). See <https://git.example/acme/issues/77?tab=1#top> and http://a.example/RFC-34/, again #123.";
        assert_eq!(list_references(text), ["#123", "#45", "77", "RFC-34"]);
    }

    #[test]
    fn other_words_are_none() {
        let key = "k".repeat(MAX_CHARS + 1);
        for text in [
            "C#7",
            "#12a",
            "#",
            "# 12",
            "https://a.example",
            "https://a.example/",
            "ftp://a/b",
            &format!("https://a/{key}"),
        ] {
            assert_eq!(list_references(text), Vec::<String>::new(), "{text}");
        }
        let many: String = (0..100).map(|number| format!("#{number} ")).collect();
        assert_eq!(list_references(&many).len(), MAX_REFERENCES);
    }
}
