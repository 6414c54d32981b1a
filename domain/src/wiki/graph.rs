//! The graph of a wiki, `_graph.md`: which page relates to which other one, and how.
//!
//! A line holds one relation, such as `[[plot-12]] --owned_by--> [[council]]`, and each stands there once. The writer, a model, notes
//! them while it writes; code keeps those between pages that are there. They never hold up a run.

use super::MAX_GENERATED_BYTES;
use super::page::is_digit_slug;
use super::standard::is_slug;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The longest word of a relation, in characters.
const MAX_RELATION: usize = 40;

/// A relation between two pages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageRelation {
    /// The slug of the page that it begins at.
    subject: String,
    relation: String,
    /// The slug of the page that it leads to.
    object: String,
}

/// A line is not a relation between two pages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a relation between two pages: it looks like [[plot-12]] --owned_by--> [[council]]", .0.escape_debug())]
pub struct PageRelationError(String);

impl PageRelation {
    /// The relation between the pages with these slugs. Blanks and hyphens of its word become `_`. `None` if a slug or the word has
    /// another form than lines have, or if both ends are one page.
    #[must_use]
    pub fn new(subject: &str, relation: &str, object: &str) -> Option<Self> {
        let is_separator = |c: char| c.is_whitespace() || c == '-';
        let words = relation.split(is_separator).filter(|word| !word.is_empty());
        let relation = words.collect::<Vec<_>>().join("_").to_lowercase();
        let is_kept = is_end(subject) && is_end(object) && subject != object && is_relation(&relation);
        is_kept.then(|| Self { subject: subject.to_owned(), relation, object: object.to_owned() })
    }

    /// Whether both ends are pages.
    fn joins_pages(&self, is_page: impl Fn(&str) -> bool) -> bool {
        is_page(&self.subject) && is_page(&self.object)
    }
}

/// Whether a text is the slug of a page. Older wikis have slugs that begin with a digit.
fn is_end(text: &str) -> bool {
    is_slug(text) || is_digit_slug(text)
}

fn is_relation(text: &str) -> bool {
    text.len() <= MAX_RELATION
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

impl FromStr for PageRelation {
    type Err = PageRelationError;

    fn from_str(line: &str) -> Result<Self, PageRelationError> {
        let read = || {
            let (subject, rest) = line.strip_prefix("[[")?.split_once("]] --")?;
            let (relation, object) = rest.split_once("--> [[")?;
            Self::new(subject, relation, object.strip_suffix("]]")?)
        };
        // A line in another form would not be found again when it is taken out.
        read().filter(|relation| relation.to_string() == line).ok_or_else(|| PageRelationError(line.to_owned()))
    }
}

impl fmt::Display for PageRelation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[[{}]] --{}--> [[{}]]", self.subject, self.relation, self.object)
    }
}

impl TryFrom<String> for PageRelation {
    type Error = PageRelationError;

    fn try_from(line: String) -> Result<Self, PageRelationError> {
        line.parse()
    }
}

impl From<PageRelation> for String {
    fn from(relation: PageRelation) -> Self {
        relation.to_string()
    }
}

/// The relations of a text, one on a line. Lines with anything else are a person's or a heading.
#[must_use]
pub fn list_relations(text: &str) -> Vec<PageRelation> {
    text.lines().filter_map(|line| line.trim_end().parse().ok()).collect()
}

/// Those of the relations that the file does not have yet and that join two pages, each once. A file that is full or is not text
/// gets none.
#[must_use]
pub fn choose_new_relations(
    relations: &[PageRelation],
    file: Option<&[u8]>,
    is_page: impl Fn(&str) -> bool,
) -> Vec<PageRelation> {
    let Ok(text) = std::str::from_utf8(file.unwrap_or_default()) else { return Vec::new() };
    let mut known: BTreeSet<PageRelation> = list_relations(text).into_iter().collect();
    let mut new: Vec<PageRelation> = Vec::new();
    for relation in relations.iter().filter(|relation| relation.joins_pages(&is_page)) {
        if known.insert(relation.clone()) {
            new.push(relation.clone());
        }
    }
    let added: usize = new.iter().map(|relation| relation.to_string().len() + 1).sum();
    let has_room = text.len().saturating_add(added) < MAX_GENERATED_BYTES;
    if has_room && !text.contains('\0') { new } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(line: &str) -> PageRelation {
        line.parse().unwrap()
    }

    #[test]
    fn a_relation_is_one_line_that_reads_back() {
        let made = PageRelation::new("plot-12", " Owned by ", "council").unwrap();
        assert_eq!(made.to_string(), "[[plot-12]] --owned_by--> [[council]]");
        assert_eq!(made.to_string().parse(), Ok(made.clone()));
        let json = serde_json::to_string(&made).unwrap();
        assert_eq!(json, r#""[[plot-12]] --owned_by--> [[council]]""#);
        assert_eq!(serde_json::from_str::<PageRelation>(&json).unwrap(), made);
        assert_eq!(
            PageRelation::new("12-plots", "lie-in", "n-2").unwrap().to_string(),
            "[[12-plots]] --lie_in--> [[n-2]]"
        );
    }

    #[test]
    fn what_would_not_read_back_is_no_relation() {
        let long = "x".repeat(MAX_RELATION + 1);
        for word in ["", "2nd", "_of", "owns>", "gehört", "a--> [[b]]\n", "a.b", "<b>", &long] {
            assert_eq!(PageRelation::new("plot-12", word, "council"), None, "{word:?}");
        }
        for end in ["", "a b", "Plot", "../a", "a]]", "a|b", "plot-12", "a\nb"] {
            assert_eq!(PageRelation::new("plot-12", "owns", end), None, "{end:?}");
            assert_eq!(PageRelation::new(end, "owns", "plot-12"), None, "{end:?}");
        }
        for line in [
            "- [[aa]] --owns--> [[bb]]",
            "[[aa]] --Owns--> [[bb]]",
            "[[aa]] --owned by--> [[bb]]",
            "[[aa]] --owns--> [[bb]] since 2024",
            "[[aa|Title]] --owns--> [[bb]]",
            "[[aa]] -owns-> [[bb]]",
        ] {
            assert!(line.parse::<PageRelation>().is_err(), "{line}");
        }
    }

    #[test]
    fn new_relations_join_pages_and_stand_in_the_file_once() {
        let lines = ["[[aa]] --owns--> [[bb]]", "[[aa]] --owns--> [[cc]]", "[[aa]] --owns--> [[dd]]"];
        let noted: Vec<PageRelation> = lines.iter().chain(&lines).map(|line| relation(line)).collect();
        let file = "# Graph\r\n\r\n[[aa]] --owns--> [[bb]]\r\nA person's line.\n";
        assert_eq!(list_relations(file), [relation(lines[0])]);
        let choose = |file: Option<&[u8]>| choose_new_relations(&noted, file, |slug| slug != "dd");
        assert_eq!(choose(Some(file.as_bytes())), [relation(lines[1])]);
        assert_eq!(choose(None), [relation(lines[0]), relation(lines[1])]);
        for unusable in [b"\xff".to_vec(), b"a\0".to_vec(), vec![b'x'; MAX_GENERATED_BYTES]] {
            assert_eq!(choose(Some(&unusable)), []);
        }
    }
}
