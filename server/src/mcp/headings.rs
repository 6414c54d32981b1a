//! The headings of a Markdown text: lines that begin with `#`, outside of code.
//!
//! A section is read by its heading, and headings are completed. Both find them here.

/// A heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heading<'t> {
    /// Where its line begins, in bytes.
    pub(crate) at: usize,
    /// From 1 to 6.
    pub(crate) level: usize,
    pub(crate) name: &'t str,
}

/// The headings of a text, in their order.
pub(crate) fn list_headings(text: &str) -> Vec<Heading<'_>> {
    let (mut at, mut is_code, mut headings) = (0, false, Vec::new());
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        let words = line.trim_start_matches('#');
        let level = line.len() - words.len();
        if !is_code && (1..=6).contains(&level) && words.starts_with(' ') {
            headings.push(Heading { at, level, name: words.trim() });
        }
        at += line.len();
    }
    headings
}
