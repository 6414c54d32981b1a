//! Writes pages: new ones from typed fields, and sections below what stands on a page.
//!
//! What stood on a page keeps its bytes. A new section goes between the text and the footnotes.

use super::merge::SplitBody;
use super::page::{CONFIRMED_AT, WikiPage};
use super::quote::Anchor;
use crate::record::frontmatter::{self, FieldEdit, FrontmatterError, RecordFields};
use crate::record::plain_text::is_unseen;
use crate::time::format_seconds;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How a line with links to other pages begins.
pub(super) const SEE_ALSO: &str = "See also:";

/// The fields of a new page.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPage {
    pub slug: String,
    pub kind: String,
    pub title: String,
    /// The ids of its sources.
    pub sources: Vec<String>,
    /// From 0 to 1.
    pub confidence: f64,
    pub updated_at: DateTime<Utc>,
    /// One sentence for the index; empty for the first one of the page.
    pub summary: String,
    pub tags: Vec<String>,
    pub aliases: Vec<String>,
}

/// A text with marks, and the anchors of these marks by label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnchoredText {
    pub text: String,
    pub anchors: BTreeMap<String, Anchor>,
}

impl AnchoredText {
    /// Adds a paragraph, with a blank line above it.
    pub fn add_paragraph(&mut self, paragraph: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(paragraph);
        self.text.push('\n');
    }

    /// Adds a statement as a paragraph that ends in the mark of its anchor.
    pub fn add_statement(&mut self, statement: &str, anchor: Anchor) {
        self.add_paragraph(&format!("{statement}[^{}]", anchor.label));
        self.anchors.insert(anchor.label.clone(), anchor);
    }
}

impl NewPage {
    /// The page with this text.
    #[must_use]
    pub fn render(&self, body: &AnchoredText) -> String {
        let mut fields = RecordFields::new();
        let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        set("schema", "knowledge.entry/v1".into());
        set("slug", self.slug.as_str().into());
        set("kind", self.kind.as_str().into());
        set("title", self.title.as_str().into());
        set("sources", json!(self.sources));
        set("confidence", json!(self.confidence));
        set("updated_at", format_seconds(self.updated_at).into());
        if !self.tags.is_empty() {
            set("tags", json!(self.tags));
        }
        let mut own = serde_json::Map::new();
        if !self.summary.is_empty() {
            own.insert("summary".to_owned(), self.summary.as_str().into());
        }
        if !self.aliases.is_empty() {
            own.insert("aliases".to_owned(), json!(self.aliases));
        }
        if !own.is_empty() {
            set("metadata", json!({"steward": own}));
        }
        frontmatter::render_note(&fields, &join_footnotes(&body.text, body.anchors.values()))
    }
}

fn join_footnotes<'a>(text: &str, anchors: impl Iterator<Item = &'a Anchor>) -> String {
    let lines: String = anchors.map(|anchor| format!("{}\n", anchor.render())).collect();
    if lines.is_empty() { text.to_owned() } else { format!("{text}\n{lines}") }
}

/// Adds a section at the end of a page, above its footnotes, and the source to its fields.
///
/// # Errors
/// The frontmatter of the page cannot be edited.
pub fn append_section(
    page: &WikiPage,
    section: &AnchoredText,
    source: &str,
    at: DateTime<Utc>,
) -> Result<String, FrontmatterError> {
    let mut edits = vec![FieldEdit { field: "updated_at".to_owned(), value: Some(format_seconds(at).into()) }];
    if !page.sources.iter().any(|known| known == source) {
        // An older page may name paths, which are read as ids.
        let listed = page.document.fields().get("sources").and_then(Value::as_array).cloned().unwrap_or_default();
        let all: Vec<Value> = listed.into_iter().chain(std::iter::once(Value::from(source))).collect();
        edits.push(FieldEdit { field: "sources".to_owned(), value: Some(Value::Array(all)) });
    }
    let edited = frontmatter::edit_fields(page.document.as_bytes(), &edits)?;
    let edited = frontmatter::read_note(&edited)?;
    let above = edited.as_str().len() - edited.body().len();
    let body = SplitBody::new(edited.body());
    let known = body.list_labels();
    let mut text = format!("{}{}", &edited.as_str()[..above], body.text);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&section.text);
    let (gap, notes) = body.split_below();
    text.push_str(if gap.is_empty() { "\n" } else { gap });
    text.push_str(notes);
    if !notes.is_empty() && !notes.ends_with('\n') {
        text.push('\n');
    }
    for anchor in section.anchors.values().filter(|anchor| !known.contains(&anchor.label.as_str())) {
        text.push_str(&anchor.render());
        text.push('\n');
    }
    Ok(text)
}

/// A page with a paragraph below its text, above its footnotes.
pub(super) fn append_paragraph(page: &str, paragraph: &str) -> Result<String, FrontmatterError> {
    let note = frontmatter::read_note(page.as_bytes())?;
    let body = SplitBody::new(note.body());
    let (gap, notes) = body.split_below();
    let above = &page[..page.len() - note.body().len()];
    let gap = if gap.is_empty() && !notes.is_empty() { "\n" } else { gap };
    Ok(format!("{above}{}\n\n{paragraph}\n{gap}{notes}", body.text.trim_end_matches('\n')))
}

/// A link to a page that shows its title. A title may hold signs that a link cannot show.
pub(super) fn link_page(page: &WikiPage) -> String {
    let has_sign = page.title.contains(['[', ']', '|', '<', '>', '`', '*', '_', '\\', '$', '%']);
    let is_plain = !has_sign && !page.title.chars().any(is_unseen);
    if is_plain { format!("[[{}|{}]]", page.slug, page.title) } else { format!("[[{}]]", page.slug) }
}

/// The page with a note that a person found it still right at a moment.
///
/// # Errors
/// The frontmatter of the page cannot be edited.
pub fn confirm_page(page: &WikiPage, at: DateTime<Utc>) -> Result<String, FrontmatterError> {
    let metadata = page.document.fields().get("metadata").and_then(Value::as_object).cloned();
    let mut metadata = Value::Object(metadata.unwrap_or_default());
    if !metadata["steward"].is_object() {
        metadata["steward"] = json!({});
    }
    metadata["steward"][CONFIRMED_AT] = format_seconds(at).into();
    let edit = FieldEdit { field: "metadata".to_owned(), value: Some(metadata) };
    let edited = frontmatter::edit_fields(page.document.as_bytes(), &[edit])?;
    Ok(frontmatter::read_note(&edited)?.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::claims::read_claims;
    use crate::wiki::page::read_page;
    use crate::wiki::standard::find_faults;

    fn page(body: &AnchoredText) -> String {
        let page = NewPage {
            slug: "plot-12".into(),
            kind: "entity".into(),
            title: "12:30:45".into(),
            sources: vec!["lease".into()],
            confidence: 0.5,
            updated_at: "2026-11-22T09:15:04.123Z".parse().unwrap(),
            summary: "Plot 12: \"its\" lease | and when".into(),
            tags: Vec::new(),
            aliases: Vec::new(),
        };
        page.render(body)
    }

    fn text(source: &str, statement: &str) -> AnchoredText {
        let mut text = AnchoredText::default();
        text.add_paragraph("# Plot 12");
        text.add_statement(statement, Anchor::new(source, statement));
        text
    }

    #[test]
    fn a_new_page_is_valid_and_reads_back() {
        let text = page(&text("lease", "The lease ends in March."));
        let read = read_page("entities/plot-12.md", text.as_bytes());
        assert_eq!(read.findings, []);
        let read = read.page.unwrap();
        assert_eq!(find_faults(read.document.fields()), []);
        assert_eq!(read.title, "12:30:45");
        assert_eq!(read.document.fields()["updated_at"], "2026-11-22T09:15:04Z");
        assert!(text.contains("updated_at: \"2026-11-22T09:15:04Z\"\n"), "{text}");
        let claims = read_claims(read.document.body(), &[]);
        assert_eq!((claims.claims.len(), claims.anchors.len()), (1, 1));
    }

    #[test]
    fn a_confirmation_is_one_field_and_everything_else_stays() {
        let before = page(&text("lease", "The lease ends in March."));
        let bare: String =
            before.lines().filter(|line| !line.contains("summary")).map(|line| format!("{line}\n")).collect();
        let bare = bare.replace("  steward:\n", "  theirs: 1\n");
        assert!(bare.contains("theirs: 1"), "{bare}");
        for before in [before, bare] {
            let read = read_page("entities/plot-12.md", before.as_bytes()).page.unwrap();
            assert_eq!(read.find_confirmed_at(), None);
            let at = "2026-11-23T09:15:04Z".parse().unwrap();
            let text = confirm_page(&read, at).unwrap();
            let after = read_page("entities/plot-12.md", text.as_bytes());
            assert_eq!(after.findings, []);
            let after = after.page.unwrap();
            assert_eq!((after.find_confirmed_at(), &after.summary), (Some(at), &read.summary));
            assert_eq!(after.document.body(), read.document.body());
            let theirs = |page: &WikiPage| page.document.fields().get("metadata").unwrap().get("theirs").cloned();
            assert_eq!(theirs(&after), theirs(&read));
        }
    }

    #[test]
    fn a_section_goes_above_the_footnotes_and_changes_nothing_else() {
        let before = page(&text("lease", "The lease ends in March."));
        let read = read_page("entities/plot-12.md", before.as_bytes()).page.unwrap();
        let mut section = AnchoredText::default();
        section.add_paragraph("## From the letter");
        section.add_statement("It ends in May, too.", Anchor::new("letter", "It ends in May, too."));
        section.add_statement("The lease ends in March.", Anchor::new("lease", "The lease ends in March."));
        let after = append_section(&read, &section, "letter", "2026-11-23T09:15:04Z".parse().unwrap()).unwrap();
        let read = read_page("entities/plot-12.md", after.as_bytes()).page.unwrap();
        assert_eq!(read.sources, ["lease", "letter"]);
        let claims = read_claims(read.document.body(), &[]);
        assert_eq!((claims.claims.len(), claims.anchors.len()), (3, 2), "{after}");
        let kept = before.lines().filter(|line| !line.contains("updated_at") && !line.starts_with("sources"));
        assert!(kept.clone().all(|line| after.lines().any(|other| other == line)), "{after}");
        assert!(after.find("\n## From").unwrap() < after.find("\n[^c").unwrap(), "{after}");
        let pinned = before.replace("  steward:\n", "  steward:\n    pinned: true\n");
        let pinned = read_page("entities/plot-12.md", pinned.as_bytes()).page.unwrap();
        let after = append_section(&pinned, &section, "letter", "2026-11-23T09:15:04Z".parse().unwrap()).unwrap();
        let after = read_page("entities/plot-12.md", after.as_bytes()).page.unwrap();
        assert!(pinned.is_pinned() && after.is_pinned(), "{}", after.document.as_str());
        // A page without a line break at its end, and without footnotes.
        let bare = "---\nschema: knowledge.entry/v1\nslug: a-page\nkind: entity\ntitle: A\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\nWords";
        let read = read_page("entities/a-page.md", bare.as_bytes()).page.unwrap();
        let after = append_section(&read, &section, "letter", "2026-11-23T09:15:04Z".parse().unwrap()).unwrap();
        assert!(after.contains("\nWords\n\n## From the letter\n\nIt ends") && after.contains("\n\n[^c"), "{after}");
    }
}
