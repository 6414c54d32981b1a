//! Renders the pages of a draft: new ones, extended ones, and what follows for their fields and links.
//!
//! A page that stood there keeps every byte but those of its new blocks, its new footnotes and the fields that follow from them.

use super::super::content::WrittenText;
use super::super::patch::patch_text;
use super::super::refusal::DraftRefusal;
use super::RunDraft;
use crate::record::frontmatter::{self, FieldEdit, FrontmatterError};
use crate::record::plain_text::{escape_one_line, to_one_line};
use crate::time::format_seconds;
use crate::wiki::ACCEPTED_FILES;
use crate::wiki::lint::list_dangling_names;
use crate::wiki::merge::SplitBody;
use crate::wiki::names::{find_free_slug, name_folder, name_page, name_summary};
use crate::wiki::page::{MAX_SUMMARY, WikiPage, read_page, shorten};
use crate::wiki::page_text::{AnchoredText, NewPage, SEE_ALSO, append_paragraph, link_page};
use crate::wiki::quote::Anchor;
use serde_json::Value;
use std::collections::BTreeSet;

/// The most tags of a page.
const MAX_TAGS: usize = 5;
/// How sure a page is with one source, with more, and in dispute: from 0 to 1.
const ONE_SOURCE: f64 = 0.7;
const MORE_SOURCES: f64 = 0.9;
const DISPUTED: f64 = 0.5;

impl RunDraft<'_> {
    /// A new page with what the model wrote.
    pub(super) fn build_page(
        &self,
        slug: &str,
        kind: &str,
        title: &str,
        summary: &str,
        written: WrittenText,
    ) -> String {
        let list = |name: &str| -> Vec<String> {
            let items = written.fields.get(name).and_then(Value::as_array).into_iter().flatten();
            items
                .filter_map(Value::as_str)
                .map(|text| to_one_line(text.trim()))
                .filter(|text| !text.is_empty())
                .collect()
        };
        let is_tag = |tag: &String| tag.starts_with(|c: char| c.is_ascii_lowercase()) && name_page(tag) == *tag;
        let known: BTreeSet<&String> = self.input.pages.iter().flat_map(|page| &page.tags).collect();
        let (mut tags, new): (Vec<String>, Vec<String>) =
            list("tags").into_iter().filter(is_tag).partition(|tag| known.contains(tag));
        tags.extend(new);
        tags.truncate(MAX_TAGS);
        let has_heading = written.text.lines().any(|line| line.starts_with("# "));
        let heading = if has_heading { String::new() } else { format!("# {}\n\n", escape_one_line(title)) };
        let stated = written.fields.get("summary").and_then(Value::as_str).unwrap_or_default();
        let summary = if summary.trim().is_empty() { stated } else { summary };
        let page = NewPage {
            slug: slug.to_owned(),
            kind: kind.to_owned(),
            title: title.to_owned(),
            sources: self.list_quoted(written.anchors.values()),
            confidence: lower_confidence(&written, ONE_SOURCE),
            updated_at: self.input.began,
            summary: shorten(&to_one_line(summary.trim()), MAX_SUMMARY),
            tags,
            aliases: list("aliases").into_iter().filter(|alias| self.find_called(alias).is_none()).collect(),
        };
        page.render(&AnchoredText { text: format!("{heading}{}", written.text.trim_start()), anchors: written.anchors })
    }

    /// The page with what the model wrote in the place of its text. What stands in both keeps its bytes.
    pub(super) fn extend_page(&self, page: &WikiPage, written: &WrittenText) -> Result<String, DraftRefusal> {
        let body = SplitBody::new(page.document.body());
        let text = patch_text(body.text, &written.text);
        self.render_changed(page, &text, written.anchors.values())
    }

    /// The page with another text above its footnotes, the new footnotes, and its fields as they follow.
    pub(super) fn render_changed<'n>(
        &self,
        page: &WikiPage,
        text: &str,
        anchors: impl Iterator<Item = &'n Anchor> + Clone,
    ) -> Result<String, DraftRefusal> {
        let body = SplitBody::new(page.document.body());
        let known = body.list_labels();
        let quoted = self.list_quoted(anchors.clone());
        let added: String = anchors
            .filter(|anchor| !known.contains(&anchor.label.as_str()))
            .map(|anchor| format!("{}\n", anchor.render()))
            .collect();
        let (gap, notes) = body.split_below();
        let (gap, line) = (
            if gap.is_empty() { "\n" } else { gap },
            if notes.is_empty() || notes.ends_with('\n') { "" } else { "\n" },
        );
        let above = &page.document.as_str()[..page.document.as_str().len() - page.document.body().len()];
        let text = format!("{above}{}\n{gap}{notes}{line}{added}", text.trim_end_matches('\n'));
        self.set_fields(page, &text, &quoted).map_err(|e| format!("error: {e}").into())
    }

    /// Completes the pages when everything is written: what they contradict and, with `links`, the links between the pages of
    /// the run and its summary.
    ///
    /// # Errors
    /// A page cannot be edited.
    pub fn finish(&mut self, links: bool) -> Result<(), String> {
        let Some(slug) = self.input.source.map(name_summary) else { return Ok(()) };
        let Some(summary) = self.state.pages.iter().find(|page| page.slug == slug).cloned() else { return Ok(()) };
        let changed: Vec<WikiPage> = self
            .state
            .changed
            .iter()
            .filter_map(|file| self.state.pages.iter().find(|page| page.file == *file))
            .cloned()
            .collect();
        for page in &changed {
            let mut text = self.unlink_missing(page);
            if self.state.disputed.contains(&page.file) && page.slug != slug && !page.contradicts.contains(&slug) {
                let listed =
                    page.contradicts.iter().map(String::as_str).chain([slug.as_str()]).map(Value::from).collect();
                let edit = FieldEdit { field: "contradicts".to_owned(), value: Some(Value::Array(listed)) };
                let edited = frontmatter::edit_fields(text.as_bytes(), &[edit]).map_err(|e| e.to_string())?;
                text = String::from_utf8_lossy(&edited).into_owned();
            }
            let others = changed.iter().filter(|other| other.slug != slug);
            let wanted: Vec<String> = match page.slug == slug {
                true => others.filter(|other| !holds_link(page, &other.slug)).map(link_page).collect(),
                false => Some(&summary)
                    .filter(|summary| !holds_link(page, &summary.slug))
                    .map(link_page)
                    .into_iter()
                    .collect(),
            };
            if links && !wanted.is_empty() {
                text =
                    append_paragraph(&text, &format!("{SEE_ALSO} {}", wanted.join(", "))).map_err(|e| e.to_string())?;
            }
            self.judges = false;
            let set = self.set_page(&page.file, text);
            self.judges = true;
            set.map_err(|refusal| refusal.text)?;
        }
        Ok(())
    }

    /// The text of a page, without links of this run that lead to no page: their words stay.
    fn unlink_missing(&self, page: &WikiPage) -> String {
        let before = self.input.pages.iter().find(|known| known.file == page.file);
        let old: BTreeSet<&str> = before.iter().flat_map(|known| known.document.body().lines()).collect();
        let body = page.document.body();
        let mut lines: Vec<String> = body.split('\n').map(str::to_owned).collect();
        for (number, name) in list_dangling_names(page, &self.state.pages) {
            let Some(line) = lines
                .get_mut(number - 1)
                .filter(|line| !old.contains(line.trim_end_matches('\r')) && !line.contains('`'))
            else {
                continue;
            };
            *line = unlink_name(line, &name);
        }
        let text = page.document.as_str();
        format!("{}{}", &text[..text.len() - body.len()], lines.join("\n"))
    }

    /// Sets the fields that follow from the text: the sources, the time and how sure it is.
    fn set_fields(&self, page: &WikiPage, text: &str, quoted: &[String]) -> Result<String, FrontmatterError> {
        let set = |field: &str, value: Value| FieldEdit { field: field.to_owned(), value: Some(value) };
        let mut edits = vec![set("updated_at", format_seconds(self.input.began).into())];
        let new: Vec<&String> = quoted.iter().filter(|source| !page.sources.contains(source)).collect();
        if !new.is_empty() {
            let listed = page.document.fields().get("sources").and_then(Value::as_array).cloned().unwrap_or_default();
            let listed = listed.into_iter().chain(new.into_iter().map(|source| Value::from(source.as_str())));
            edits.push(set("sources", Value::Array(listed.collect())));
        }
        let read = read_page(&page.file, text.as_bytes()).page;
        let is_disputed = read.as_ref().is_some_and(|read| !read.body.disputed.is_empty());
        let sources = page.sources.iter().chain(quoted).collect::<BTreeSet<_>>().len();
        let most = match sources {
            _ if is_disputed => DISPUTED,
            0 | 1 => ONE_SOURCE,
            _ => MORE_SOURCES,
        };
        // It is only ever lowered: nobody can tell here why it is low.
        if most < page.confidence {
            edits.push(set("confidence", most.into()));
        }
        let edited = frontmatter::edit_fields(text.as_bytes(), &edits)?;
        Ok(String::from_utf8_lossy(&edited).into_owned())
    }

    /// The sources that a change rests on: that of the run, or those of its quotes.
    fn list_quoted<'n>(&self, anchors: impl Iterator<Item = &'n Anchor>) -> Vec<String> {
        let quoted: BTreeSet<String> = match self.input.source {
            Some(source) => std::iter::once(source.to_owned()).collect(),
            None => anchors.map(|anchor| anchor.source.clone()).collect(),
        };
        quoted.into_iter().collect()
    }

    /// A slug that no other page has, and no file of a person.
    pub(super) fn choose_slug(&self, title: &str, kind: &str) -> String {
        let named = name_page(title);
        let is_reserved = ACCEPTED_FILES.iter().any(|file| file.eq_ignore_ascii_case(&format!("{named}.md")))
            || named == "overview"
            || named.starts_with("summary-");
        let slug = if is_reserved { format!("{named}-page") } else { named };
        let folder = name_folder(kind);
        let is_file = |slug: &String| {
            let path = format!("{folder}/{slug}.md");
            self.input.files.iter().any(|file| file.eq_ignore_ascii_case(&path))
        };
        find_free_slug(slug, |slug| self.state.pages.iter().all(|page| page.slug != *slug) && !is_file(slug))
    }
}

fn holds_link(page: &WikiPage, slug: &str) -> bool {
    let body = page.document.body();
    body.contains(&format!("[[{slug}]]")) || body.contains(&format!("[[{slug}|"))
}

/// How sure the model says that it is, if that is less.
fn lower_confidence(written: &WrittenText, most: f64) -> f64 {
    let stated = written.fields.get("confidence").and_then(Value::as_f64).filter(|value| (0.0..=1.0).contains(value));
    stated.map_or(most, |stated| stated.min(most))
}

/// A line in which the links with this name are their words alone.
fn unlink_name(line: &str, name: &str) -> String {
    let (mut text, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once("[[") {
        let Some((inner, left)) = after.split_once("]]") else { break };
        let (target, shown) = inner.split_once('|').unwrap_or((inner, inner));
        text.push_str(before);
        // In a table the bar has a backslash.
        match target.trim_end_matches('\\').trim() == name.trim() {
            true => text.push_str(shown),
            false => text.push_str(&format!("[[{inner}]]")),
        }
        rest = left;
    }
    text + rest
}
