//! Turns what a model writes into the text of a page: its quotes are found in the source, and its marks get their labels.
//!
//! A quote that does not stand in the source is refused, with the words of the source that come nearest.

use super::refusal::{DraftFault, DraftRefusal};
use crate::record::frontmatter::{self, RecordFields};
use crate::wiki::quote::{Anchor, QuoteError, QuoteFinder, is_quote_label};
use crate::wiki::registry::to_source_file;
use crate::wiki::search::split_words;
use std::collections::{BTreeMap, BTreeSet};

/// Marks around a quote in a footnote.
const OPENING: [char; 5] = ['"', '“', '„', '«', '”'];
const CLOSING: [char; 4] = ['"', '”', '“', '»'];
/// The longest passage that is shown instead of a quote, in characters.
const MAX_NEAREST: usize = 200;

/// The sources that a run may quote.
#[derive(Clone, Copy)]
pub(super) struct QuotedSources<'a> {
    /// The one of a footnote that names none. If there is one, no other may be quoted.
    pub(super) own: Option<&'a str>,
    /// By id.
    pub(super) texts: &'a BTreeMap<String, QuoteFinder<'a>>,
    /// The ids of sources by their paths in the wiki, for footnotes that name a path.
    pub(super) paths: &'a BTreeMap<String, String>,
}

impl<'a> QuotedSources<'a> {
    /// Whether the wiki has a source of this id or path.
    fn knows(&self, name: &str) -> bool {
        self.paths.contains_key(&to_source_file(name)) || self.paths.values().any(|id| id == name)
    }

    /// The source that a footnote names, or the run's own one.
    fn choose(&self, named: Option<&str>) -> Result<(&'a str, &'a QuoteFinder<'a>), DraftRefusal> {
        let named =
            named.map(|name| self.paths.get(&to_source_file(name)).map_or_else(|| name.to_owned(), String::clone));
        let id = match (named.as_deref(), self.own) {
            (Some(named), Some(own)) if named != own => {
                let text = format!("error: a footnote quotes `{}`; quote {own} alone", shorten(named));
                return Err(DraftRefusal::new(DraftFault::QuoteNotFound, text));
            }
            (Some(named), _) => named,
            (None, Some(own)) => own,
            (None, None) => {
                let text = "error: a footnote names no source: write `[^1]: <source> — \"words of it\"`";
                return Err(DraftRefusal::new(DraftFault::NoCitation, text));
            }
        };
        let missing = || {
            let text = format!("error: there is no text of a source `{}`", shorten(id));
            DraftRefusal::new(DraftFault::QuoteMissing, text)
        };
        self.texts.get_key_value(id).map(|(id, finder)| (id.as_str(), finder)).ok_or_else(missing)
    }
}

/// The sources that the footnotes of a text name, by id or by path, as they name them.
pub(super) fn list_named_sources(content: &str) -> BTreeSet<String> {
    let (_, definitions) = split_footnotes(content);
    definitions.iter().filter_map(|(_, definition)| split_definition(definition).0.map(str::to_owned)).collect()
}

/// A text with the labels of its marks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WrittenText {
    /// What a frontmatter says; empty without one.
    pub(super) fields: RecordFields,
    /// Without footnotes.
    pub(super) text: String,
    /// By label.
    pub(super) anchors: BTreeMap<String, Anchor>,
}

/// Reads the content of a page or of an edit.
///
/// # Errors
/// The reply to the model.
pub(super) fn read_content(content: &str, sources: QuotedSources<'_>) -> Result<WrittenText, DraftRefusal> {
    let content = strip_fence(content.trim());
    let note = frontmatter::read_note(content.as_bytes())
        .map_err(|e| DraftRefusal::new(DraftFault::TemplateMissing, format!("error: the frontmatter: {e}")))?;
    Ok(WrittenText { fields: note.fields().clone(), ..read_text(note.body(), sources)? })
}

/// Reads a text without a frontmatter, such as that of an edit.
///
/// # Errors
/// The reply to the model.
pub(super) fn read_text(text: &str, sources: QuotedSources<'_>) -> Result<WrittenText, DraftRefusal> {
    let (text, definitions) = split_footnotes(text);
    let (mut anchors, mut labels) = (BTreeMap::new(), BTreeMap::new());
    for (mark, definition) in definitions {
        // What stands on the page keeps its footnote.
        if is_quote_label(&mark) {
            continue;
        }
        let anchor = find_anchor(&definition, sources)?;
        labels.insert(mark, anchor.label.clone());
        anchors.insert(anchor.label.clone(), anchor);
    }
    let text = replace_marks(&text, &labels)?;
    Ok(WrittenText { fields: RecordFields::new(), text, anchors })
}

/// The anchor of a quote.
///
/// # Errors
/// The reply to the model.
pub(super) fn anchor_quote(
    quote: &str,
    named: Option<&str>,
    sources: QuotedSources<'_>,
) -> Result<Anchor, DraftRefusal> {
    let (id, finder) = sources.choose(named)?;
    let slice = finder.find_quote(quote).and_then(|slice| finder.read_slice(slice).ok_or(QuoteError::Absent));
    match slice {
        Ok(words) => Ok(Anchor::new(id, words)),
        Err(QuoteError::Absent) => {
            let nearest = find_nearest(quote, finder.text()).unwrap_or_default();
            let text = format!("error: quote not in source: {}", shorten(quote));
            Err(DraftRefusal::new(DraftFault::QuoteNotFound, text).with_outside("nearest", "; nearest: ", nearest))
        }
        Err(e @ (QuoteError::Length(_) | QuoteError::Unseen)) => {
            let text = format!("error: {e}: {}", shorten(quote));
            Err(DraftRefusal::new(DraftFault::QuoteMissing, text))
        }
    }
}

/// A text that is one fence as a whole is what stands in it.
fn strip_fence(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inside = inside.and_then(|rest| rest.split_once('\n')).filter(|(info, _)| {
        let info = info.trim();
        info.is_empty() || info == "markdown" || info == "md"
    });
    // Another fence within would end the first one.
    inside.map(|(_, body)| body).filter(|body| !body.contains("```")).unwrap_or(text)
}

/// The text without its footnotes, and the footnotes in their order.
fn split_footnotes(body: &str) -> (String, Vec<(String, String)>) {
    let (mut text, mut notes, mut is_code) = (String::new(), Vec::<(String, String)>::new(), false);
    let mut is_in_note = false;
    for line in body.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        let definition = line.trim_start().strip_prefix("[^").and_then(|rest| rest.split_once("]:"));
        match definition.filter(|_| !is_code) {
            Some((mark, rest)) => {
                notes.push((mark.trim().to_owned(), rest.trim().to_owned()));
                is_in_note = true;
            }
            // A footnote goes on in indented lines.
            None if is_in_note && line.starts_with([' ', '\t']) && !line.trim().is_empty() => {
                if let Some((_, note)) = notes.last_mut() {
                    note.push(' ');
                    note.push_str(line.trim());
                }
            }
            None => {
                is_in_note = false;
                text.push_str(line);
            }
        }
    }
    (text.trim_end().to_owned() + "\n", notes)
}

/// The source that a footnote names, if it names one, and its quote.
fn split_definition(definition: &str) -> (Option<&str>, &str) {
    match (definition.find(OPENING), definition.rfind(CLOSING)) {
        (Some(first), Some(last)) if first < last => {
            let begin = first + definition[first..].chars().next().map_or(1, char::len_utf8);
            (find_name(&definition[..first]), &definition[begin..last])
        }
        _ => (None, definition),
    }
}

/// The id or the path of a source, as a footnote may have it before its quote.
fn find_name(text: &str) -> Option<&str> {
    let named = text.trim().trim_end_matches(['—', '–', '-', ':', ',']).trim().trim_matches(['`', '[', ']']);
    let is_id = named.len() >= 2 && named.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let is_path = named.starts_with("raw/") || named.starts_with("sources/");
    Some(named).filter(|_| is_id || is_path)
}

/// The quote in a footnote, which may name its source before it.
fn find_anchor(definition: &str, sources: QuotedSources<'_>) -> Result<Anchor, DraftRefusal> {
    let (named, quote) = split_definition(definition);
    if named.is_none()
        && let Some(name) = find_name(quote).filter(|name| sources.knows(name))
    {
        let text = format!("error: a footnote names `{}` and quotes no words of it", shorten(name));
        return Err(DraftRefusal::new(DraftFault::QuoteMissing, text));
    }
    anchor_quote(&quote.replace("\\\"", "\""), named, sources)
}

/// Puts the labels in the place of the marks.
fn replace_marks(text: &str, labels: &BTreeMap<String, String>) -> Result<String, DraftRefusal> {
    let (mut replaced, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("[^") {
        replaced.push_str(before);
        let Some((mark, behind)) = after.split_once(']') else {
            rest = after;
            replaced.push_str("[^");
            continue;
        };
        match labels.get(mark.trim()) {
            Some(label) => replaced.push_str(&format!("[^{label}]")),
            None if is_quote_label(mark) => replaced.push_str(&format!("[^{mark}]")),
            None => {
                let mark = shorten(mark);
                let text =
                    format!("error: the mark [^{mark}] has no footnote: add `[^{mark}]: \"words of the source\"`");
                return Err(DraftRefusal::new(DraftFault::QuoteMissing, text));
            }
        }
        rest = behind;
    }
    replaced.push_str(rest);
    Ok(replaced)
}

/// The sentence of the source that shares the most words with a quote.
fn find_nearest(quote: &str, text: &str) -> Option<String> {
    let wanted: BTreeSet<String> = split_words(quote).collect();
    let mut best: Option<(usize, &str)> = None;
    let paragraphs = text.split("\n\n");
    for sentence in paragraphs.flat_map(|text| text.split_inclusive(['.', '!', '?'])) {
        let held: BTreeSet<String> = split_words(sentence).collect();
        let count = wanted.intersection(&held).count();
        if count * 2 > wanted.len() && best.is_none_or(|(most, _)| count > most) {
            best = Some((count, sentence));
        }
    }
    best.map(|(_, sentence)| {
        sentence.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_NEAREST).collect()
    })
}

fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "The lease of plot 12\nends on 31 March 2027. \"Pay now\", it says. A stopcock is a valve.\n";

    fn read(content: &str) -> Result<WrittenText, String> {
        let texts = BTreeMap::from([("lease".to_owned(), QuoteFinder::new(SOURCE))]);
        let sources = QuotedSources { own: Some("lease"), texts: &texts, paths: &BTreeMap::new() };
        read_content(content, sources).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_footnote_may_choose_among_sources_by_id_or_path() {
        let texts = BTreeMap::from([
            ("lease".to_owned(), QuoteFinder::new(SOURCE)),
            ("letter".to_owned(), QuoteFinder::new("The fee is 40 pounds.\n")),
        ]);
        let paths = BTreeMap::from([("sources/2026/letter.md".to_owned(), "letter".to_owned())]);
        let sources = QuotedSources { own: None, texts: &texts, paths: &paths };
        for name in ["letter", "raw/2026/letter.md", "sources/2026/letter.md"] {
            let content = format!("It costs.[^1]\n\n[^1]: {name} — \"The fee is 40 pounds.\"\n");
            let read = read_text(&content, sources).unwrap();
            assert_eq!(read.anchors.values().next().unwrap().source, "letter", "{name}");
            assert_eq!(list_named_sources(&content), BTreeSet::from([name.to_owned()]));
        }
        for (name, fault) in [
            ("lease — ", DraftFault::QuoteNotFound),
            ("nobody — ", DraftFault::QuoteMissing),
            ("", DraftFault::NoCitation),
        ] {
            let content = format!("It costs.[^1]\n\n[^1]: {name}\"The fee is 40 pounds.\"\n");
            assert_eq!(read_text(&content, sources).unwrap_err().fault, fault, "{name}");
        }
        for footnote in ["letter", "letter —", "raw/2026/letter.md"] {
            let refusal = read_text(&format!("It costs.[^1]\n\n[^1]: {footnote}\n"), sources).unwrap_err();
            assert_eq!(refusal.fault, DraftFault::QuoteMissing, "{footnote}: {refusal}");
        }
    }

    #[test]
    fn marks_get_the_labels_of_their_quotes() {
        let label = &Anchor::new("lease", "The lease of plot 12\nends on 31 March 2027.").label;
        for footnote in [
            "[^1]: \"The lease of plot 12 ends on 31 March 2027.\"",
            "[^1]: lease — \"The lease of plot 12 ends on 31 March 2027.\"",
            "[^1]: [lease], “The lease of plot 12\n  ends on 31 March 2027.”",
            "[^1]: The lease of plot 12 ends on 31 March 2027.",
        ] {
            let read = read(&format!("# Plot 12\n\nIt ends.[^1]\n\n{footnote}\n")).unwrap();
            assert_eq!(read.text, format!("# Plot 12\n\nIt ends.[^{label}]\n"), "{footnote}");
            assert_eq!(read.anchors.keys().collect::<Vec<_>>(), [label]);
        }
        let inner = read("It says so.[^q]\n\n[^q]: lease: \"\\\"Pay now\\\", it says.\"\n").unwrap();
        assert_eq!(inner.anchors.values().next().unwrap().quote, "\"Pay now\", it says.");
    }

    #[test]
    fn a_frontmatter_is_read_and_a_fence_around_everything_is_not_part_of_it() {
        let read = read("```markdown\n---\ntags: [a]\n---\nIt is.[^c6107d23f]\n```").unwrap();
        assert_eq!((read.text.as_str(), read.fields["tags"][0].as_str()), ("It is.[^c6107d23f]\n", Some("a")));
    }

    #[test]
    fn what_does_not_stand_in_the_source_is_refused() {
        for (content, part) in [
            (
                "It ends.[^1]\n\n[^1]: \"The lease of plot 12 ends on 31 March 2029.\"",
                "quote not in source: The lease of plot 12 ends on 31 March 2029.; nearest: ",
            ),
            ("It ends.[^1]\n\n[^1]: \"short\"", "8 to 400 characters"),
            (
                "It ends.[^1]\n\n[^1]: letter — \"The lease of plot 12\"",
                "a footnote quotes `letter`; quote lease alone",
            ),
            ("It ends.[^2]", "the mark [^2] has no footnote"),
            ("---\ntitle: [x\n---\n", "the frontmatter"),
        ] {
            let refused = read(content).unwrap_err();
            assert!(refused.starts_with("error: ") && refused.contains(part), "{refused}");
        }
        let texts = BTreeMap::from([("lease".to_owned(), QuoteFinder::new(SOURCE))]);
        let sources = QuotedSources { own: Some("lease"), texts: &texts, paths: &BTreeMap::new() };
        let refusal = anchor_quote("The lease of plot 12 ends on 31 March 2029.", None, sources).unwrap_err();
        assert_eq!(refusal.text, "error: quote not in source: The lease of plot 12 ends on 31 March 2029.");
        assert_eq!(refusal.outside.unwrap().words, "The lease of plot 12 ends on 31 March 2027.");
    }
}
