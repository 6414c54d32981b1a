//! Merges the footnotes below the body of a page, by label.
//!
//! A footnote that a person edited or removed stays so. What is below a footnote up to the next one belongs to it.

use std::collections::BTreeMap;

/// A body: its text, the blank lines below it, and the footnotes at its end.
pub(in crate::wiki) struct SplitBody<'a> {
    pub(in crate::wiki) text: &'a str,
    gap: &'a str,
    /// All of the body below the gap.
    notes: &'a str,
    /// In their order.
    footnotes: Vec<Footnote<'a>>,
}

/// A footnote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Footnote<'a> {
    label: &'a str,
    line: &'a str,
    /// The line with its line break and the blank lines below it.
    whole: &'a str,
}

impl<'a> SplitBody<'a> {
    /// Splits a body. Footnotes that stand elsewhere belong to the text.
    pub(in crate::wiki) fn new(body: &'a str) -> Self {
        let (mut begin, mut end, mut footnotes) = (body.len(), body.len(), Vec::new());
        while let Some(line) = body[..begin].split_inclusive('\n').next_back() {
            begin -= line.len();
            match read_label(line.trim_end()) {
                Some(label) => {
                    footnotes.push(Footnote { label, line: line.trim_end(), whole: &body[begin..end] });
                    end = begin;
                }
                None if line.trim().is_empty() => {}
                None => {
                    begin += line.len();
                    break;
                }
            }
        }
        footnotes.reverse();
        Self { text: &body[..begin], gap: &body[begin..end], notes: &body[end..], footnotes }
    }

    /// The blank lines below the text, and everything below them.
    pub(in crate::wiki) fn split_below(&self) -> (&'a str, &'a str) {
        (self.gap, self.notes)
    }

    /// The footnotes whose labels are kept.
    pub(in crate::wiki) fn render_notes(&self, is_kept: impl Fn(&str) -> bool) -> String {
        self.footnotes.iter().filter(|footnote| is_kept(footnote.label)).map(|footnote| footnote.whole).collect()
    }

    /// The line of a footnote.
    pub(in crate::wiki) fn find_line(&self, label: &str) -> Option<&'a str> {
        self.footnotes.iter().find(|footnote| footnote.label == label).map(|footnote| footnote.line)
    }

    /// The labels of the footnotes.
    pub(in crate::wiki) fn list_labels(&self) -> Vec<&'a str> {
        self.footnotes.iter().map(|footnote| footnote.label).collect()
    }

    fn by_label(&self) -> BTreeMap<&'a str, Footnote<'a>> {
        self.footnotes.iter().map(|footnote| (footnote.label, *footnote)).collect()
    }
}

fn read_label(line: &str) -> Option<&str> {
    let (label, _) = line.strip_prefix("[^")?.split_once("]:")?;
    let is_label = !label.is_empty() && !label.contains(['[', ']', ' ']);
    is_label.then_some(label)
}

/// Puts the merged footnotes below a merged text: those that stand there now, without what the run removed and with what it
/// added or changed.
///
/// # Errors
/// A label that both sides gave to different footnotes.
pub(super) fn join(
    mut text: String,
    base: &SplitBody<'_>,
    ours: &SplitBody<'_>,
    theirs: &SplitBody<'_>,
) -> Result<String, String> {
    let (old, new, now) = (base.by_label(), ours.by_label(), theirs.by_label());
    let is_claimed_twice = |footnote: &&Footnote<'_>| {
        !old.contains_key(footnote.label) && now.get(footnote.label).is_some_and(|now| now.line != footnote.line)
    };
    if let Some(footnote) = ours.footnotes.iter().find(is_claimed_twice) {
        return Err(footnote.label.to_owned());
    }
    let is_untouched = |footnote: &Footnote<'_>| old.get(footnote.label).is_some_and(|old| old.line == footnote.line);
    let kept = theirs.footnotes.iter().filter_map(|footnote| {
        if !is_untouched(footnote) {
            return Some(*footnote);
        }
        match new.get(footnote.label) {
            Some(new) if new.line != footnote.line => Some(*new),
            // A later statement may rest on the same words of the source.
            None if !cites(&text, footnote.label) => None,
            Some(_) | None => Some(*footnote),
        }
    });
    let is_new = |footnote: &&Footnote<'_>| !now.contains_key(footnote.label) && !old.contains_key(footnote.label);
    let added = ours.footnotes.iter().filter(is_new).copied();
    let footnotes: Vec<Footnote<'_>> = kept.chain(added).collect();
    let gap = if theirs.gap == base.gap { ours.gap } else { theirs.gap };
    if !footnotes.is_empty() && !text.is_empty() {
        end_line(&mut text);
        text.push_str(if gap.is_empty() { "\n" } else { gap });
    } else {
        text.push_str(gap);
    }
    for footnote in footnotes {
        end_line(&mut text);
        text.push_str(footnote.whole);
    }
    Ok(text)
}

/// Whether a text has the mark of a footnote.
fn cites(text: &str, label: &str) -> bool {
    text.contains(&format!("[^{label}]"))
}

/// The ids of the sources that the footnotes at the end of a body name.
pub(in crate::wiki) fn list_sources(body: &str) -> Vec<&str> {
    let footnotes = SplitBody::new(body).footnotes;
    footnotes.into_iter().filter_map(|footnote| footnote.line.split_once("]: ")?.1.split_whitespace().next()).collect()
}

/// Adds the line break that is missing at the end.
fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}
