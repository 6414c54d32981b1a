//! The pages that a writer stages: each call of a tool changes them, or is refused with the reason.
//!
//! Every change is judged by the rules of the verifier at once, so that the model can correct it. Replayed on the same wiki,
//! the same calls give the same pages.

mod guardian;
mod pages;
mod relations;
mod signs;

pub use guardian::PageChange;
pub use signs::list_signed_lines;

use super::content::{QuotedSources, anchor_quote, read_content, read_text};
use super::dispute::{NewSide, add_side};
use super::refusal::{DraftFault, DraftRefusal};
use super::tools::{Dispute, NOTE_RELATIONS, NotedRelation, PageContent, WriterCall, read_call};
use crate::record::plain_text::to_one_line;
use crate::steward::conversation::{ToolCall, ToolReply};
use crate::wiki::manifest::EffectiveManifest;
use crate::wiki::merge::SplitBody;
use crate::wiki::names::{name_folder, name_kind, name_summary};
use crate::wiki::page::{LINT_KIND, WikiPage, read_page};
use crate::wiki::page_keys::{NameKey, find_pages, find_position};
use crate::wiki::path::{PagePath, WikiFileKind};
use crate::wiki::plan::RunFile;
use crate::wiki::quote::QuoteFinder;
use crate::wiki::run::WikiRunType;
use crate::wiki::search::{PageFilter, search_pages};
use crate::wiki::verify::{RunFinding, VerifyInput, find_page_fault};
use chrono::{DateTime, Utc};
use serde_json::Value;
use signs::refuse_signs;
use std::collections::{BTreeMap, BTreeSet};

/// The most characters of a reply that holds a page or a list.
const MAX_REPLY: usize = 8_000;
/// The most pages that a search shows.
const MAX_HITS: usize = 10;
/// The most questions of a run.
const MAX_IDEAS: usize = 5;
/// The longest title and reason, in characters.
const MAX_TITLE: usize = 200;
const MAX_REASON: usize = 200;

/// What a writer works on.
pub struct DraftInput<'a> {
    /// The folder of the wiki, relative to the root of the vault.
    pub folder: &'a str,
    pub manifest: &'a EffectiveManifest,
    pub pages: &'a [WikiPage],
    /// The source of which pages are made. A run without one may quote all of its texts.
    pub source: Option<&'a str>,
    /// The texts of the sources that the run may quote.
    pub texts: &'a BTreeMap<String, QuoteFinder<'a>>,
    /// The ids of sources by their paths in the wiki, for footnotes that name a path.
    pub paths: &'a BTreeMap<String, String>,
    /// All files of the wiki. A file of a person is no page that may be made.
    pub files: &'a BTreeSet<String>,
    pub began: DateTime<Utc>,
    /// The type by whose rules each change is judged.
    pub run_type: WikiRunType,
}

/// A related page that needs no change, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnchangedPage {
    pub slug: String,
    pub reason: String,
}

/// A page that a run removes, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedPage {
    pub file: String,
    pub slug: String,
    pub reason: String,
}

/// The staged pages of a writer.
pub struct RunDraft<'a> {
    input: &'a DraftInput<'a>,
    state: DraftState,
    /// Whether changes are judged. What was accepted once is replayed without it.
    judges: bool,
}

/// What a draft came to. It can be kept, and gone on with on the same pages.
#[derive(Clone, Debug)]
pub struct DraftState {
    /// The pages as they would be.
    pages: Vec<WikiPage>,
    /// The files that were changed, in their order.
    changed: Vec<String>,
    /// Those of them to which the source says something else.
    disputed: BTreeSet<String>,
    removed: Vec<RemovedPage>,
    pub ideas: Vec<String>,
    pub unchanged: Vec<UnchangedPage>,
    noted_relations: Vec<NotedRelation>,
}

impl<'a> RunDraft<'a> {
    #[must_use]
    pub fn new(input: &'a DraftInput<'a>) -> Self {
        let state = DraftState {
            pages: input.pages.to_vec(),
            changed: Vec::new(),
            disputed: BTreeSet::new(),
            removed: Vec::new(),
            ideas: Vec::new(),
            unchanged: Vec::new(),
            noted_relations: Vec::new(),
        };
        Self::resume(input, state)
    }

    /// Goes on with a draft of the same input.
    #[must_use]
    pub fn resume(input: &'a DraftInput<'a>, state: DraftState) -> Self {
        Self { input, state, judges: true }
    }

    /// What the draft came to.
    #[must_use]
    pub fn into_state(self) -> DraftState {
        self.state
    }

    #[must_use]
    pub fn state(&self) -> &DraftState {
        &self.state
    }

    /// Carries out a call.
    pub fn run_call(&mut self, call: &ToolCall) -> ToolReply {
        match read_call(call).map(|call| self.carry_out(call)) {
            Ok(Ok(text)) => ToolReply::ok(text),
            Ok(Err(refusal)) => ToolReply::error(refusal.to_string()),
            // Relations are no reason to end a run, as errors are.
            Err(reply) if call.name == NOTE_RELATIONS => ToolReply::ok(reply.text),
            Err(reply) => reply,
        }
    }

    /// Carries out a call that was accepted before. With `judge`, it is judged again.
    ///
    /// # Errors
    /// Why it cannot be carried out on the pages as they are now.
    pub fn replay_call(&mut self, call: &ToolCall, judge: bool) -> Result<(), String> {
        self.judges = judge;
        let reply = self.run_call(call);
        self.judges = true;
        if reply.is_error { Err(reply.text) } else { Ok(()) }
    }

    /// The pages as they would be.
    #[must_use]
    pub fn pages(&self) -> &[WikiPage] {
        &self.state.pages
    }

    /// Whether there is a summary of the source.
    #[must_use]
    pub fn has_summary(&self) -> bool {
        let slug = self.input.source.map(name_summary);
        slug.is_some_and(|slug| self.state.pages.iter().any(|page| page.slug == slug))
    }

    /// The files that the run changes.
    #[must_use]
    pub fn list_files(&self) -> Vec<RunFile> {
        let changed = || self.state.changed.iter().map(String::as_str);
        let (before, after) = (find_pages(self.input.pages, changed()), find_pages(&self.state.pages, changed()));
        let render = |page: &&WikiPage| page.document.as_bytes().to_vec();
        let files = changed().filter_map(|file| {
            let path = PagePath::new(self.input.folder, file).ok()?;
            Some(RunFile { path, before: before.get(file).map(render), after: after.get(file).map(render) })
        });
        files.filter(|file| file.before != file.after).collect()
    }

    fn carry_out(&mut self, call: WriterCall) -> Result<String, DraftRefusal> {
        match call {
            WriterCall::WritePage(content) => self.write_page(&content),
            WriterCall::EditPage { slug, old, new } => self.edit_page(&slug, &old, &new),
            WriterCall::MarkDisputed(dispute) => self.mark_disputed(&dispute),
            WriterCall::NoChange { slug, reason } => {
                let slug = self.find_slug(&slug)?.slug.clone();
                self.note_unchanged(slug, &reason);
                Ok("Noted.".to_owned())
            }
            WriterCall::UpdateIdeas { ideas } => {
                let ideas = ideas.iter().map(|idea| to_one_line(idea.trim())).filter(|idea| !idea.is_empty());
                let mut new: Vec<String> = Vec::new();
                for idea in ideas.filter(|idea| !self.state.ideas.contains(idea)) {
                    if !new.contains(&idea) {
                        new.push(idea);
                    }
                }
                let free = MAX_IDEAS.saturating_sub(self.state.ideas.len());
                let added = new.len().min(free);
                self.state.ideas.extend(new.into_iter().take(free));
                Ok(format!("Added {added} ideas"))
            }
            WriterCall::NoteRelations { relations } => Ok(self.note_relations(relations)),
            WriterCall::ReadPage { slug } => {
                let page = self.find_slug(&slug)?;
                if page.kind == LINT_KIND {
                    return Err("error: it is a report about pages, and holds no knowledge".into());
                }
                Ok(page.document.body().chars().take(MAX_REPLY).collect())
            }
            WriterCall::SearchWiki { query } => {
                let hits = search_pages(&self.state.pages, &query, &PageFilter::default(), MAX_HITS);
                let known = hits.iter().filter(|hit| hit.kind != LINT_KIND);
                let lines: String =
                    known.map(|hit| format!("{} ({}): {}\n", hit.slug, hit.title, hit.passage)).collect();
                Ok(if lines.is_empty() {
                    "No page holds these words.".to_owned()
                } else {
                    lines.chars().take(MAX_REPLY).collect()
                })
            }
        }
    }

    /// Notes that a page needs no change. The last reason counts.
    fn note_unchanged(&mut self, slug: String, reason: &str) {
        let reason = to_one_line(reason).chars().take(MAX_REASON).collect();
        self.state.unchanged.retain(|known| known.slug != slug);
        self.state.unchanged.push(UnchangedPage { slug, reason });
    }

    fn sources(&self) -> QuotedSources<'a> {
        QuotedSources { own: self.input.source, texts: self.input.texts, paths: self.input.paths }
    }

    fn find_slug(&self, slug: &str) -> Result<&WikiPage, DraftRefusal> {
        let key = NameKey::new(slug.trim().trim_start_matches("[[").trim_end_matches("]]"));
        let is_named = |page: &&WikiPage| page.has_slug(&key) || page.has_title(&key);
        let found = self.state.pages.iter().find(is_named);
        let text = "error: there is no page of this name: search for it, or write it";
        found.ok_or_else(|| DraftRefusal::new(DraftFault::NotFound, text))
    }

    /// A page that a writer may change.
    fn find_writable(&self, slug: &str) -> Result<WikiPage, DraftRefusal> {
        let page = self.find_slug(slug)?;
        match self.input.manifest.list_writable_kinds().contains(&page.kind) {
            true => Ok(page.clone()),
            false => {
                let text = format!("error: nobody but code and people writes a page of the kind {}", page.kind);
                Err(DraftRefusal::new(DraftFault::ProtectedFile, text))
            }
        }
    }

    /// The page that is called like this, by its title or else by an alias.
    fn find_called(&self, title: &str) -> Option<&WikiPage> {
        let key = NameKey::new(title);
        let by_title = self.state.pages.iter().find(|page| page.has_title(&key));
        by_title.or_else(|| self.state.pages.iter().find(|page| page.has_alias(&key)))
    }

    fn write_page(&mut self, content: &PageContent) -> Result<String, DraftRefusal> {
        let kind = name_kind(&content.page_type.trim().replace(' ', "-"));
        let kinds = self.input.manifest.list_writable_kinds();
        if !kinds.contains(&kind) {
            let text = format!("error: no page_type of this wiki; there are {}", kinds.join(", "));
            return Err(DraftRefusal::new(DraftFault::KindUnknown, text));
        }
        let written = read_content(&content.content, self.sources())?;
        let stated = written.fields.get("title").and_then(Value::as_str);
        let title = read_title(Some(content.title.trim()).filter(|title| !title.is_empty()).or(stated))?;
        let summary_slug = self.input.source.map(name_summary).filter(|_| kind == "summary");
        let existing = match &summary_slug {
            Some(slug) => self.state.pages.iter().find(|page| page.slug == *slug),
            None => self.find_called(&title),
        };
        if let Some(page) = existing.cloned() {
            if !kinds.contains(&page.kind) {
                return Err(
                    format!("error: a page of the kind {} has this title: choose another one", page.kind).into()
                );
            }
            refuse_signs(page.document.body(), &written.text)?;
            let text = self.extend_page(&page, &written)?;
            return self.set_page(&page.file, text);
        }
        refuse_signs("", &written.text)?;
        let slug = summary_slug.unwrap_or_else(|| self.choose_slug(&title, &kind));
        let file = format!("{}/{slug}.md", name_folder(&kind));
        let page = self.build_page(&slug, &kind, &title, &content.summary, written);
        self.set_page(&file, page)
    }

    fn edit_page(&mut self, slug: &str, old: &str, new: &str) -> Result<String, DraftRefusal> {
        let page = self.find_writable(slug)?;
        let body = SplitBody::new(page.document.body());
        let old = old.trim_matches('\n');
        match body.text.matches(old).count() {
            _ if old.trim().is_empty() => return Err("error: `old` is empty".into()),
            0 => return Err(DraftRefusal::new(DraftFault::NoMatch, "error: no match")),
            1 => {}
            count => return Err(DraftRefusal::new(DraftFault::ManyMatches, format!("error: {count} matches"))),
        }
        let written = read_text(new, self.sources())?;
        // Blanks around an edit are those of the text around it.
        let text = body.text.replacen(old, written.text.trim_matches('\n'), 1);
        refuse_signs(body.text, &text)?;
        let text = self.render_changed(&page, &text, written.anchors.values())?;
        self.set_page(&page.file, text)
    }

    fn mark_disputed(&mut self, dispute: &Dispute) -> Result<String, DraftRefusal> {
        let page = self.find_writable(&dispute.slug)?;
        let anchor = anchor_quote(&dispute.quote, None, self.sources())?;
        let side =
            NewSide { source: &anchor.source, statement: &dispute.statement, anchor: &anchor, at: self.input.began };
        let body = SplitBody::new(page.document.body());
        let text = add_side(&page, body.text, dispute.claim.trim().trim_matches(['[', ']', '^']), &side)?;
        let text = self.render_changed(&page, &text, std::iter::once(&anchor))?;
        let reply = self.set_page(&page.file, text)?;
        self.state.disputed.insert(page.file.clone());
        Ok(reply)
    }

    /// Stages a page, if the rules find no fault.
    fn set_page(&mut self, file: &str, text: String) -> Result<String, DraftRefusal> {
        if PagePath::new(self.input.folder, file).map(|path| path.kind()) != Ok(WikiFileKind::Page) {
            return Err(DraftRefusal::new(DraftFault::ProtectedFile, "error: no run writes this page"));
        }
        let reading = read_page(file, text.as_bytes());
        let Some(page) = reading.page else {
            let problem = reading.findings.first().map(|finding| finding.problem.clone()).unwrap_or_default();
            return Err(format!("error: the page would not be valid: {problem}").into());
        };
        let name = page.file.rsplit('/').next().unwrap_or_default().to_owned();
        let position = find_position(&self.state.pages, file);
        let replaced = match position {
            Some(at) => Some(std::mem::replace(&mut self.state.pages[at], page)),
            None => {
                self.state.pages.push(page);
                None
            }
        };
        let is_new_change = !self.state.changed.iter().any(|known| known == file);
        if is_new_change {
            self.state.changed.push(file.to_owned());
        }
        if self.judges
            && let Some(finding) = self.find_fault(file, replaced.as_ref())
        {
            match (position, replaced) {
                (Some(at), Some(page)) => self.state.pages[at] = page,
                _ => drop(self.state.pages.pop()),
            }
            if is_new_change {
                self.state.changed.pop();
            }
            return Err(DraftRefusal::from_finding(&finding));
        }
        Ok(format!("Written: {name}"))
    }

    /// The first fault of a page, or of the run as it is so far.
    fn find_fault(&self, file: &str, replaced: Option<&WikiPage>) -> Option<RunFinding> {
        let files = self.list_files();
        let removed: Vec<String> = self.state.removed.iter().map(|page| page.file.clone()).collect();
        // The summary may still come.
        let input = VerifyInput {
            manifest: self.input.manifest,
            pages: self.input.pages,
            files: &files,
            texts: self.input.texts,
            run_type: self.input.run_type,
            source: None,
            removed: &removed,
        };
        find_page_fault(&input, file, replaced, &self.state.pages)
    }
}

/// Reads the title of a new page.
fn read_title(stated: Option<&str>) -> Result<String, DraftRefusal> {
    let title = to_one_line(stated.unwrap_or_default());
    if title.is_empty() || title.chars().count() > MAX_TITLE || title.contains(['<', '>', '`', '[', ']', '|']) {
        let text = format!("error: a title has 1 to {MAX_TITLE} characters and no `<`, `>`, `[`, `]`, `|` or backtick");
        return Err(DraftRefusal::new(DraftFault::TemplateMissing, text));
    }
    Ok(title)
}

#[cfg(test)]
mod tests;
