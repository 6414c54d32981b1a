//! Reads a page: wider than the standard, so that a wiki of an earlier draft or of a later version can be used.
//!
//! What is written is always the standard's form. Each deviation is a finding. A file without a page's `schema` is no page
//! and none of a wiki's business; other tools keep files beside ours.

use super::SOURCES_FOLDER;
use super::body::{self, BodyFacts};
use super::finding::{self, FindingCode, Severity, WikiFinding};
use super::manifest::EffectiveManifest;
use super::names::{name_folder, name_source};
use super::page_keys::PageKeys;
use super::standard::{self, Doctype, FieldPath};
use crate::record::frontmatter::{self, Document, RecordFields};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::ops::Deref;
use std::sync::Arc;

pub use super::body::{DisputedBlock, LinkTarget, PageLink};

/// The `schema` of pages in earlier drafts of the standard.
pub(super) const LEGACY_SCHEMA: &str = "knowledge/v1";
/// The folder of pages in some wikis of that time.
const LEGACY_FOLDER: &str = "entries/";
/// The field of `metadata.steward` that says when a person found the page still right.
pub const CONFIRMED_AT: &str = "confirmed_at";
/// The kind of pages that report what is wrong with a wiki.
pub const LINT_KIND: &str = "lint";
/// The kind of pages that show the answer of a day.
pub const ARCHIVE_KIND: &str = "archive";
/// The kinds of pages that report on other pages.
pub const REPORT_KINDS: [&str; 3] = ["overview", LINT_KIND, ARCHIVE_KIND];
/// The fields that list the slugs of other pages.
pub(super) const REFERENCE_LISTS: [&str; 3] = ["supersedes", "contradicts", "links"];
/// The longest summary of a page in the index, in characters.
pub const MAX_SUMMARY: usize = 150;

/// A page that was read. Copies share its content, because ten thousand of them are handed out for one change.
#[derive(Clone, Debug, PartialEq)]
pub struct WikiPage {
    content: Arc<PageContent>,
    pub(super) keys: PageKeys,
}

/// What a page holds.
#[derive(Debug, PartialEq)]
pub struct PageContent {
    /// Its file, relative to the wiki.
    pub file: String,
    pub slug: String,
    pub kind: String,
    pub title: String,
    /// The ids of its sources.
    pub sources: Vec<String>,
    /// From 0 to 1.
    pub confidence: f64,
    pub contradicts: Vec<String>,
    /// Other pages that its frontmatter names, and the field.
    pub references: Vec<(FieldPath, String)>,
    pub tags: Vec<String>,
    pub aliases: Vec<String>,
    /// What the frontmatter says in one sentence, or else the first sentence of the body; at most [`MAX_SUMMARY`].
    pub summary: String,
    pub document: Document,
    pub body: BodyFacts,
}

impl Deref for WikiPage {
    type Target = PageContent;

    fn deref(&self) -> &PageContent {
        &self.content
    }
}

/// What reading a file came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageReading {
    /// `None` if the file is no page, or cannot be used as one.
    pub page: Option<WikiPage>,
    pub findings: Vec<WikiFinding>,
}

impl PageContent {
    /// Its title and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.title).chain(&self.aliases)
    }
}

impl WikiPage {
    /// The line of the file for a line of the body, both from 1.
    #[must_use]
    pub fn line_in_file(&self, line: usize) -> usize {
        self.document.line_in_file(line)
    }

    /// The first tag, or the kind if there is none.
    #[must_use]
    pub fn topic(&self) -> &str {
        self.tags.first().unwrap_or(&self.kind)
    }

    /// Whether it reports on other pages, so that nothing it says is knowledge of its own.
    #[must_use]
    pub fn is_report(&self) -> bool {
        REPORT_KINDS.contains(&self.kind.as_str())
    }

    /// Whether its frontmatter says what it is about.
    #[must_use]
    pub fn has_own_summary(&self) -> bool {
        find_metadata(self.document.fields(), &["steward", "summary"]).is_some_and(Value::is_string)
    }

    /// Whether a person pinned it, so that it is shown first.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        is_pinned(self.document.fields())
    }

    /// When a person found the page still right.
    #[must_use]
    pub fn find_confirmed_at(&self) -> Option<DateTime<Utc>> {
        let text = find_metadata(self.document.fields(), &["steward", CONFIRMED_AT])?.as_str()?;
        DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc())
    }

    /// The fields of `metadata.fields`, which the types of a manifest ask for.
    #[must_use]
    pub fn has_declared_field(&self, name: &str) -> bool {
        find_metadata(self.document.fields(), &["fields", name]).is_some_and(|value| !value.is_null())
    }
}

/// What lists say of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageHead {
    pub kind: String,
    pub title: String,
    /// The first tag, or the kind if there is none.
    pub topic: String,
    /// As the page says.
    pub updated_at: Option<DateTime<Utc>>,
    /// Whether a person pinned it.
    pub is_pinned: bool,
}

/// Reads the frontmatter of a page, and nothing of its body; `None` if [`read_page`] finds no page.
#[must_use]
pub fn read_page_head(bytes: &[u8]) -> Option<PageHead> {
    let document = frontmatter::read_note_fast(bytes).ok()?;
    let fields = document.fields();
    let is_legacy = fields.get("schema").and_then(Value::as_str) == Some(LEGACY_SCHEMA);
    match Doctype::read(fields) {
        Some(Doctype::Page) => {}
        None if is_legacy => {}
        Some(_) | None => return None,
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = text("kind").or_else(|| text("type"))?;
    Some(PageHead {
        title: text("title")?,
        topic: list_texts(fields.get("tags")).next().unwrap_or_else(|| kind.clone()),
        kind,
        updated_at: text("updated_at").and_then(|at| at.parse().ok()),
        is_pinned: is_pinned(fields),
    })
}

fn is_pinned(fields: &RecordFields) -> bool {
    find_metadata(fields, &["steward", "pinned"]) == Some(&Value::Bool(true))
}

/// Reads a file as a page.
#[must_use]
pub fn read_page(file: &str, bytes: &[u8]) -> PageReading {
    let invalid =
        |problem: &str, fix: &str| WikiFinding::new(FindingCode::EntryInvalid, Severity::Error, file, problem, fix);
    let document = match frontmatter::read_note_fast(bytes) {
        Ok(document) => document,
        Err(e) if names_a_page(bytes) => {
            let finding = invalid(&format!("its frontmatter cannot be read: {e}"), "the page is left alone until then");
            return PageReading { page: None, findings: vec![finding] };
        }
        Err(_) => return PageReading::default(),
    };
    let schema = document.fields().get("schema").and_then(Value::as_str);
    let is_legacy = schema == Some(LEGACY_SCHEMA);
    match (schema, Doctype::read(document.fields())) {
        (_, Some(Doctype::Page)) => {}
        (_, None) if is_legacy => {}
        (Some(other), None) if other.to_lowercase().starts_with("knowledge.") => {
            let problem = format!("`{other}` is not a schema that this version knows");
            let finding = WikiFinding::new(
                FindingCode::NewerThanSchema,
                Severity::Warn,
                file,
                &problem,
                "write `schema: knowledge.entry/v1`",
            );
            let finding = finding.with_field(&document, &FieldPath::from_key("schema"));
            return PageReading { page: None, findings: vec![finding] };
        }
        _ => return PageReading::default(),
    }
    let body = body::read_body(document.body());
    let mut reader = PageReader { file, document, findings: Vec::new() };
    reader.check_standard(is_legacy);
    let PageReader { document, findings, .. } = reader;
    PageReading { page: make_page(file, document, body), findings }
}

/// Whether the first lines of a file that cannot be read as a page name the schema of one.
#[must_use]
pub fn names_a_page(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&start[..start.len().min(2_000)]);
    start.lines().any(|line| {
        let line = line.trim().trim_start_matches('{').replace('"', "");
        line.trim().strip_prefix("schema:").is_some_and(|rest| rest.contains("knowledge"))
    })
}

struct PageReader<'a> {
    file: &'a str,
    document: Document,
    findings: Vec<WikiFinding>,
}

impl PageReader<'_> {
    fn report(&mut self, code: FindingCode, severity: Severity, path: &FieldPath, problem: &str, fix: &str) {
        let finding = WikiFinding::new(code, severity, self.file, problem, fix);
        self.findings.push(finding.with_field(&self.document, path));
    }

    fn warn(&mut self, code: FindingCode, field: &str, problem: &str, fix: &str) {
        self.report(code, Severity::Warn, &FieldPath::from_key(field), problem, fix);
    }

    /// Where the kind stands in this file: an earlier draft called it `type`.
    fn locate(&self, path: &FieldPath) -> FieldPath {
        let is_old = *path == FieldPath::from_key("kind") && !self.document.fields().contains_key("kind");
        if is_old { FieldPath::from_key("type") } else { path.clone() }
    }

    /// Reports what the standard would refuse, apart from what is read all the same.
    fn check_standard(&mut self, is_legacy: bool) {
        let fields = self.document.fields();
        let has_old_kind = !fields.contains_key("kind") && fields.contains_key("type");
        // The fields of other pages are not copied.
        let modern = (is_legacy || has_old_kind).then(|| modernize_fields(fields.clone(), is_legacy));
        if is_legacy {
            self.warn(
                FindingCode::LegacySchema,
                "schema",
                "an earlier draft's schema",
                "write `schema: knowledge.entry/v1`",
            );
        }
        if has_old_kind {
            self.warn(FindingCode::LegacyType, "type", "`type` is an earlier draft's name", "write `kind` instead");
        }
        for fault in standard::find_faults(modern.as_ref().unwrap_or(self.document.fields())) {
            let fields = modern.as_ref().unwrap_or(self.document.fields());
            let text = fault.path.find_in(fields).and_then(Value::as_str).unwrap_or_default();
            let field = fault.path.steps().first().map(ToString::to_string).unwrap_or_default();
            let (code, severity) = match field.as_str() {
                "sources" if is_source_path(text) => (FindingCode::SourcePath, Severity::Warn),
                "slug" if is_digit_slug(text) => (FindingCode::SlugDigitFirst, Severity::Warn),
                _ => finding::judge_fault(fault.kind, FindingCode::EntryInvalid),
            };
            self.report(code, severity, &self.locate(&fault.path), &fault.problem, &fault.fix);
        }
    }
}

/// The fields of an earlier draft as they are called now.
fn modernize_fields(mut fields: RecordFields, is_legacy: bool) -> RecordFields {
    if is_legacy {
        fields.insert("schema".to_owned(), Doctype::Page.to_string().into());
    }
    if !fields.contains_key("kind")
        && let Some(kind) = fields.shift_remove("type")
    {
        fields.insert("kind".to_owned(), kind);
    }
    fields
}

/// Reads what there is. Without a title, a kind or a slug there is no page; the findings name the missing one.
fn make_page(file: &str, document: Document, body: BodyFacts) -> Option<WikiPage> {
    let fields = document.fields();
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let stem = file.rsplit('/').next()?.strip_suffix(".md")?;
    let (kind, title) = (text("kind").or_else(|| text("type"))?, text("title")?);
    let slug = text("slug").unwrap_or_else(|| stem.to_owned());
    let summary = find_metadata(fields, &["steward", "summary"]).and_then(Value::as_str);
    let summary = shorten(summary.or(body.first_sentence.as_deref()).unwrap_or_default(), MAX_SUMMARY);
    let references = REFERENCE_LISTS.iter().flat_map(|name| {
        let path = FieldPath::from_key(name);
        list_texts(fields.get(*name)).enumerate().map(move |(at, slug)| (path.join_item(at), slug))
    });
    let content = PageContent {
        file: file.to_owned(),
        slug,
        kind,
        title,
        sources: list_texts(fields.get("sources")).map(|source| read_source_id(&source)).collect(),
        confidence: fields.get("confidence").and_then(Value::as_f64).unwrap_or(1.0),
        contradicts: list_texts(fields.get("contradicts")).collect(),
        references: references.collect(),
        tags: list_texts(fields.get("tags")).collect(),
        aliases: list_texts(find_metadata(fields, &["steward", "aliases"])).collect(),
        summary,
        document,
        body,
    };
    Some(WikiPage { keys: PageKeys::new(&content), content: Arc::new(content) })
}

/// Reports what the folder and the kind of a page say beside the manifest.
#[must_use]
pub fn check_placement(page: &WikiPage, manifest: &EffectiveManifest) -> Vec<WikiFinding> {
    let warn = |code, field: &str, problem: &str, fix: &str| {
        let finding = WikiFinding::new(code, Severity::Warn, &page.file, problem, fix);
        let field = if page.document.fields().contains_key(field) { field } else { "type" };
        finding.with_field(&page.document, &FieldPath::from_key(field))
    };
    let mut found = Vec::new();
    if !manifest.knows_kind(&page.kind) {
        let problem = format!("the kind `{}` is not declared", page.kind);
        found.push(warn(FindingCode::KindUndeclared, "kind", &problem, "add it to `entityTypes` of KNOWLEDGE.md"));
    }
    let folder = page.file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let expected = name_folder(&page.kind);
    if folder != expected {
        let is_legacy = page.file.starts_with(LEGACY_FOLDER);
        let place = if expected.is_empty() { "the wiki's own folder".to_owned() } else { format!("`{expected}/`") };
        let why = if is_legacy { "pages lay in `entries/` in an earlier draft" } else { "the kind decides" };
        let problem = format!("a page of the kind `{}` belongs in {place}; {why}", page.kind);
        found.push(warn(FindingCode::PathHint, "kind", &problem, "move the file; links name the slug and stay right"));
    }
    found
}

fn find_metadata<'f>(fields: &'f RecordFields, keys: &[&str]) -> Option<&'f Value> {
    keys.iter().try_fold(fields.get("metadata")?, |value, key| value.get(key))
}

fn list_texts(value: Option<&Value>) -> impl Iterator<Item = String> + use<> {
    let items = value.and_then(Value::as_array).cloned().unwrap_or_default();
    items.into_iter().filter_map(|item| item.as_str().map(str::to_owned))
}

/// A source's path, where the standard wants its id.
pub(super) fn is_source_path(text: &str) -> bool {
    text.starts_with("sources/") || text.starts_with("raw/")
}

pub(super) fn is_digit_slug(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && standard::is_slug(&format!("n{text}"))
}

fn read_source_id(text: &str) -> String {
    let id = if is_source_path(text) { name_source(text) } else { None };
    id.unwrap_or_else(|| text.to_owned())
}

/// The text in at most so many characters, cut at a word.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(limit) else { return text.to_owned() };
    let last = text.char_indices().nth(limit - 1).map_or(end, |(at, _)| at);
    let cut = text[..last].rsplit_once(' ').map_or(&text[..last], |(cut, _)| cut);
    format!("{}…", cut.trim_end())
}

/// Whether a file may be a page at all: a Markdown file, and no part of its path begins with a dot or `_`.
#[must_use]
pub fn may_be_page(file: &str) -> bool {
    let is_hidden = file.split('/').any(|part| part.starts_with(['.', '_']));
    let is_source = file.split('/').next() == Some(SOURCES_FOLDER);
    file.ends_with(".md") && !is_hidden && !is_source && !super::ACCEPTED_FILES.contains(&file)
}

#[cfg(test)]
mod tests;
