//! The changes that an assistant makes to a draft: it names files, and gives whole pages, replacements and additions.
//!
//! A page gets its fields, labels and footnotes here, as from the writer. Each change is judged at once by the rules of the verifier.

use super::super::content::{WrittenText, list_named_sources, read_content, read_text};
use super::super::refusal::{DraftFault, DraftRefusal};
use super::{DraftState, MAX_REASON, RemovedPage, RunDraft, read_title};
use crate::record::plain_text::to_one_line;
use crate::wiki::claims::read_claims;
use crate::wiki::merge::SplitBody;
use crate::wiki::names::{is_lowercase_of, name_folder, name_kind, name_summary};
use crate::wiki::page::{ARCHIVE_KIND, WikiPage};
use crate::wiki::page_keys::{NameKey, find_page, find_position};
use crate::wiki::run::WikiRunType;
use crate::wiki::standard::is_slug;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The most places of a text that a refusal lists.
const MAX_PLACES: usize = 5;

/// A change of one page, by its file in the wiki.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum PageChange {
    /// A new page: frontmatter with `title` and `kind`, then text with footnotes that quote sources.
    Create {
        file: String,
        content: String,
    },
    /// Another text in the place of one that stands on the page once.
    Replace {
        file: String,
        old: String,
        new: String,
    },
    /// Text at the end of the page, above its footnotes.
    Append {
        file: String,
        content: String,
    },
    Remove {
        file: String,
        reason: String,
    },
    /// A related page that needs no change.
    Keep {
        file: String,
        reason: String,
    },
}

impl PageChange {
    /// The file that is named.
    #[must_use]
    pub fn file(&self) -> &str {
        match self {
            Self::Create { file, .. }
            | Self::Replace { file, .. }
            | Self::Append { file, .. }
            | Self::Remove { file, .. }
            | Self::Keep { file, .. } => file,
        }
    }

    /// The sources that its footnotes name, by id or path.
    #[must_use]
    pub fn list_named_sources(&self) -> BTreeSet<String> {
        match self {
            Self::Create { content, .. } | Self::Append { content, .. } => list_named_sources(content),
            Self::Replace { new, .. } => list_named_sources(new),
            Self::Remove { .. } | Self::Keep { .. } => BTreeSet::new(),
        }
    }
}

impl DraftState {
    /// The sources that a page quotes here and not in the wiki as it is.
    #[must_use]
    pub fn list_added_sources(&self, file: &str, live: &[WikiPage]) -> BTreeSet<String> {
        let read = |page: &WikiPage| read_claims(page.document.body(), &page.body.disputed).anchors;
        let known = find_page(live, file).map(read).unwrap_or_default();
        let anchors = find_page(&self.pages, file).map(read).unwrap_or_default().into_values();
        anchors.filter(|anchor| !known.contains_key(&anchor.label)).map(|anchor| anchor.source).collect()
    }
}

impl RunDraft<'_> {
    /// Makes a change. Without `judge` the rules of the verifier are not asked: the change was accepted before. Returns the file.
    ///
    /// # Errors
    /// [`DraftRefusal`]; the draft is as it was.
    pub fn apply_change(&mut self, change: &PageChange, judge: bool) -> Result<String, DraftRefusal> {
        self.judges = judge;
        let made = match change {
            PageChange::Create { file, content } => self.create_page(file, content),
            PageChange::Replace { file, old, new } => self.replace_text(file, old, new),
            PageChange::Append { file, content } => self.append_text(file, content),
            PageChange::Remove { file, reason } => self.remove_page(file, reason),
            PageChange::Keep { file, reason } => self.keep_page(file, reason),
        };
        self.judges = true;
        made
    }

    /// The pages that the run removes.
    #[must_use]
    pub fn list_removed(&self) -> &[RemovedPage] {
        &self.state.removed
    }

    fn create_page(&mut self, file: &str, content: &str) -> Result<String, DraftRefusal> {
        let (folder, slug) = split_file(file)?;
        let written = read_content(content, self.sources())?;
        let kind = self.read_kind(&written)?;
        let title = read_title(written.fields.get("title").and_then(Value::as_str))?;
        let expected = name_folder(&kind);
        if !folder.is_empty() && folder != expected {
            let text = format!("error: a page of the kind {kind} lies in {expected}/, not in {folder}/");
            return Err(DraftRefusal::new(DraftFault::KindUnknown, text));
        }
        if let Some(summary) = self.input.source.map(name_summary).filter(|it| kind == "summary" && it != slug) {
            let text = format!("error: the summary of this source is {expected}/{summary}.md");
            return Err(DraftRefusal::new(DraftFault::NameCollides, text));
        }
        let file = format!("{expected}/{slug}.md");
        self.check_free(&file, slug, &title)?;
        let text = self.build_page(slug, &kind, &title, "", written);
        self.set_page(&file, text)?;
        Ok(file)
    }

    /// The kind that a new page states.
    fn read_kind(&self, written: &WrittenText) -> Result<String, DraftRefusal> {
        let stated = written.fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        if stated.trim().is_empty() {
            let text = "error: a new page begins with a frontmatter that holds `title` and `kind`";
            return Err(DraftRefusal::new(DraftFault::TemplateMissing, text));
        }
        let kind = name_kind(&stated.trim().replace(' ', "-"));
        let mut kinds = self.input.manifest.list_writable_kinds();
        if self.input.run_type == WikiRunType::Archive {
            kinds.push(ARCHIVE_KIND.to_owned());
        }
        if kinds.contains(&kind) {
            return Ok(kind);
        }
        let text = format!("error: no page of this kind can be made; there are {}", kinds.join(", "));
        Err(DraftRefusal::new(DraftFault::KindUnknown, text))
    }

    /// Checks that no page and no file has this name, also in other letters, and no page this title.
    fn check_free(&self, file: &str, slug: &str, title: &str) -> Result<(), DraftRefusal> {
        let refuse = |text: String| Err(DraftRefusal::new(DraftFault::NameCollides, text));
        if find_position(&self.state.pages, file).is_some() {
            return refuse(format!("error: {file} exists: replace or append text"));
        }
        let key = NameKey::new(slug);
        if let Some(page) = self.state.pages.iter().find(|page| page.has_slug(&key)) {
            return refuse(format!("error: {} has the slug {slug} already", page.file));
        }
        let lower = file.to_lowercase();
        if self.input.files.iter().any(|known| is_lowercase_of(&lower, known)) {
            return refuse(format!("error: a file of a person is called {file}: choose another name"));
        }
        match self.find_called(title) {
            Some(page) => refuse(format!("error: {} is about this already: replace or append text there", page.file)),
            None => Ok(()),
        }
    }

    /// A page that a run may change, by its file.
    fn find_changeable(&self, file: &str) -> Result<WikiPage, DraftRefusal> {
        let page = find_page(&self.state.pages, file).ok_or_else(|| {
            DraftRefusal::new(
                DraftFault::NotFound,
                format!("error: there is no page {file}: make it, or list the pages"),
            )
        })?;
        let is_new = find_page(self.input.pages, file).is_none();
        if page.kind == ARCHIVE_KIND && !is_new {
            return Err(DraftRefusal::new(DraftFault::ArchiveImmutable, "error: an archive is never changed"));
        }
        match page.kind == ARCHIVE_KIND || self.input.manifest.list_writable_kinds().contains(&page.kind) {
            true => Ok(page.clone()),
            false => {
                let text = format!("error: nobody but code and people writes a page of the kind {}", page.kind);
                Err(DraftRefusal::new(DraftFault::ProtectedFile, text))
            }
        }
    }

    fn replace_text(&mut self, file: &str, old: &str, new: &str) -> Result<String, DraftRefusal> {
        let page = self.find_changeable(file)?;
        let body = SplitBody::new(page.document.body());
        if old.trim().is_empty() {
            return Err("error: the text to replace is empty".into());
        }
        let places: Vec<usize> = body.text.match_indices(old).map(|(at, _)| at).collect();
        match places.as_slice() {
            [_] => {}
            [] => {
                let refusal = DraftRefusal::new(DraftFault::NoMatch, "error: this text does not stand on the page");
                let nearest = find_nearest_lines(body.text, old);
                return Err(refusal.with_outside("nearest", "; the nearest lines: ", nearest));
            }
            places => {
                let line_of = |at: &usize| page.line_in_file(body.text[..*at].matches('\n').count() + 1);
                let mut lines: Vec<usize> = places.iter().map(line_of).collect();
                lines.dedup();
                let lines = lines.iter().take(MAX_PLACES).map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let text = format!("error: this text stands on the page {} times, in lines {lines}", places.len());
                return Err(DraftRefusal::new(DraftFault::ManyMatches, text));
            }
        }
        let written = read_text(new, self.sources())?;
        // What follows the text on its line stays there.
        let new_text = if new.ends_with('\n') { written.text.as_str() } else { written.text.trim_end_matches('\n') };
        let text = body.text.replacen(old, new_text, 1);
        let text = self.render_changed(&page, &text, written.anchors.values())?;
        self.set_page(file, text)?;
        Ok(file.to_owned())
    }

    fn append_text(&mut self, file: &str, content: &str) -> Result<String, DraftRefusal> {
        let page = self.find_changeable(file)?;
        let body = SplitBody::new(page.document.body());
        let written = read_text(content, self.sources())?;
        if written.text.trim().is_empty() {
            return Err("error: there is no text to append".into());
        }
        let text = format!("{}\n\n{}", body.text.trim_end_matches('\n'), written.text.trim_matches('\n'));
        let text = self.render_changed(&page, &text, written.anchors.values())?;
        self.set_page(file, text)?;
        Ok(file.to_owned())
    }

    fn remove_page(&mut self, file: &str, reason: &str) -> Result<String, DraftRefusal> {
        let page = self.find_changeable(file)?;
        let is_new = find_page(self.input.pages, file).is_none();
        if self.input.run_type != WikiRunType::Manual && !is_new {
            let text = "error: only a run of the type manual removes a page, and a person commits it";
            return Err(DraftRefusal::new(DraftFault::DropsClaims, text));
        }
        self.state.pages.retain(|known| known.file != file);
        self.state.changed.retain(|known| known != file || !is_new);
        if !is_new {
            if !self.state.changed.iter().any(|known| known == file) {
                self.state.changed.push(file.to_owned());
            }
            let reason = to_one_line(reason).chars().take(MAX_REASON).collect();
            self.state.removed.push(RemovedPage { file: file.to_owned(), slug: page.slug.clone(), reason });
        }
        Ok(file.to_owned())
    }

    fn keep_page(&mut self, file: &str, reason: &str) -> Result<String, DraftRefusal> {
        let Some(page) = find_page(&self.state.pages, file) else {
            return Err(DraftRefusal::new(DraftFault::NotFound, format!("error: there is no page {file}")));
        };
        self.note_unchanged(page.slug.clone(), reason);
        Ok(file.to_owned())
    }
}

/// The folder of a page, which may be empty, and its slug.
fn split_file(file: &str) -> Result<(&str, &str), DraftRefusal> {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    if folder.contains('/') {
        let text = "error: a page lies in the folder of its kind, one level deep";
        return Err(DraftRefusal::new(DraftFault::FolderTooDeep, text));
    }
    match name.strip_suffix(".md").filter(|slug| is_slug(slug)) {
        Some(slug) => Ok((folder, slug)),
        None => Err("error: a page is called like token-lifetime.md: a small letter first, then small letters, digits and hyphens".into()),
    }
}

/// The lines that share words with a text, for who looks for it; empty if there are none.
fn find_nearest_lines(body: &str, old: &str) -> String {
    let words = |text: &str| -> BTreeSet<String> { text.split_whitespace().map(str::to_lowercase).collect() };
    let wanted = words(old.lines().find(|line| !line.trim().is_empty()).unwrap_or_default());
    let mut best: Vec<(usize, &str)> = body
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| (words(line).intersection(&wanted).count(), line))
        .filter(|(count, _)| *count * 2 > wanted.len())
        .collect();
    best.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let lines: Vec<String> =
        best.iter().take(2).map(|(_, line)| line.trim().chars().take(160).collect::<String>()).collect();
    lines.join(" | ")
}
