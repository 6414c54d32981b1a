//! What `steward wiki lint --fix` corrects on pages: links that only one page can be meant by, see-also lines, and the forms of
//! earlier drafts in the frontmatter.
//!
//! No statement changes, and nothing is removed. Pages that report on others show the wiki of their day and stay as they are. The
//! rules judge the result ([`super::verify::verify_fixes`]).

mod forms;
mod links;

use super::body::LinkTarget;
use super::lint::find_unlinked_pairs;
use super::merge::SplitBody;
use super::page::{WikiPage, read_page};
use super::page_text::{SEE_ALSO, append_paragraph, link_page};
use super::registry::WikiSource;
use super::standard::is_slug;
use super::verify::list_code;
use crate::record::frontmatter::{self, FrontmatterError};
use crate::record::plain_text::count_noun;
use forms::{FormEdits, find_form_edits, rename_type};
use links::{CorrectedLists, CorrectedText};
use std::collections::{BTreeMap, BTreeSet};

pub(super) use links::LinkCorrector;

/// Finds what can be corrected on the pages of a wiki.
pub struct FixPlanner<'p> {
    pages: &'p [WikiPage],
    sources: &'p BTreeMap<String, WikiSource>,
    corrector: LinkCorrector<'p>,
    /// For each page, by its position, the pages that its see-also line lacks.
    unlinked: BTreeMap<usize, Vec<usize>>,
}

/// A page with everything corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedPage {
    pub text: String,
    pub changes: PageChanges,
}

/// What was corrected on a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageChanges {
    /// The slugs to which corrected links lead now.
    pub links: Vec<String>,
    /// The slugs that were added to the see-also line.
    pub see_also: Vec<String>,
    /// The fields that are in the written shape now.
    pub fields: Vec<String>,
}

impl PageChanges {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.see_also.is_empty() && self.fields.is_empty()
    }
}

impl std::fmt::Display for PageChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        if !self.links.is_empty() {
            let count = count_noun(self.links.len() as u64, "link");
            parts.push(format!("{count} corrected ({})", self.links.join(", ")));
        }
        if !self.see_also.is_empty() {
            parts.push(format!("see also {}", self.see_also.join(", ")));
        }
        if !self.fields.is_empty() {
            parts.push(format!("{} in the form of today", self.fields.join(", ")));
        }
        f.write_str(&parts.join("; "))
    }
}

impl<'p> FixPlanner<'p> {
    /// Looks at all pages. `sources` is the registry.
    #[must_use]
    pub fn new(pages: &'p [WikiPage], sources: &'p BTreeMap<String, WikiSource>) -> Self {
        let mut unlinked: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for pair in find_unlinked_pairs(pages) {
            for (page, other) in [(pair.first, pair.second), (pair.second, pair.first)] {
                if is_slug(&pages[other].slug) {
                    unlinked.entry(page).or_default().push(other);
                }
            }
        }
        Self { pages, sources, corrector: LinkCorrector::new(pages), unlinked }
    }

    /// The positions of the pages on which something can be corrected.
    #[must_use]
    pub fn list_pages(&self) -> Vec<usize> {
        let is_wrong = |at: &usize| {
            let page = &self.pages[*at];
            let has_form = || !find_form_edits(&page.document, self.sources).is_empty();
            let has_link = || self.corrector.correct_body(page).is_some();
            let has_list = || !self.corrector.correct_lists(page).slugs.is_empty();
            !page.is_report() && (self.unlinked.contains_key(at) || has_form() || has_link() || has_list())
        };
        (0..self.pages.len()).filter(is_wrong).collect()
    }

    /// Corrects the page at a position.
    ///
    /// # Errors
    /// Its frontmatter cannot be edited.
    pub fn fix_page(&self, at: usize) -> Result<FixedPage, FrontmatterError> {
        let page = &self.pages[at];
        let mut changes = PageChanges::default();
        let mut text = self.fix_fields(page, &mut changes)?;
        if let Some(CorrectedText { text: body, slugs }) = self.corrector.correct_body(page) {
            text = format!("{}{body}", &text[..text.len() - page.document.body().len()]);
            changes.links.extend(slugs);
        }
        let others = self.unlinked.get(&at).into_iter().flatten().map(|other| &self.pages[*other]);
        let others: Vec<&WikiPage> = others.collect();
        if let Some(extended) = add_see_also(&page.file, &text, &others)? {
            text = extended;
            changes.see_also.extend(others.iter().map(|other| other.slug.clone()));
        }
        Ok(FixedPage { text, changes })
    }

    /// The page with its frontmatter corrected. The body stays.
    fn fix_fields(&self, page: &WikiPage, changes: &mut PageChanges) -> Result<String, FrontmatterError> {
        let forms = find_form_edits(&page.document, self.sources);
        let CorrectedLists { edits, slugs } = self.corrector.correct_lists(page);
        changes.links.extend(slugs);
        changes.fields.extend(forms.list_fields());
        let FormEdits { edits: written, renames_type } = forms;
        let all: Vec<_> = written.into_iter().chain(edits).collect();
        let edited = frontmatter::edit_fields(page.document.as_bytes(), &all)?;
        let text = frontmatter::read_document(&edited)?.as_str().to_owned();
        if renames_type { rename_type(&text) } else { Ok(text) }
    }
}

/// The page with links to others on its see-also line; `None` if a reader would not see them there.
fn add_see_also(file: &str, text: &str, others: &[&WikiPage]) -> Result<Option<String>, FrontmatterError> {
    let Some(page) = read_page(file, text.as_bytes()).page.filter(|_| !others.is_empty()) else { return Ok(None) };
    let links: Vec<String> = others.iter().map(|other| show_link(other)).collect();
    let extended = match extend_see_also(&page, &links) {
        Some(extended) => extended,
        None => append_paragraph(text, &format!("{SEE_ALSO} {}", links.join(", ")))?,
    };
    let Some(read) = read_page(file, extended.as_bytes()).page else { return Ok(None) };
    let names = |link: &LinkTarget| match link {
        LinkTarget::Name(name) => Some(name.clone()),
        LinkTarget::Path(_) => None,
    };
    let linked: BTreeSet<String> = read.body.links.iter().filter_map(|link| names(&link.target)).collect();
    // Below an open fence or in an open dispute it would be something else.
    let is_seen = others.iter().all(|other| linked.contains(&other.slug)) && read.body.disputed == page.body.disputed;
    Ok(is_seen.then_some(extended))
}

/// The page with links added to the see-also line with which its text ends, if it does.
fn extend_see_also(page: &WikiPage, links: &[String]) -> Option<String> {
    let text = page.document.as_str();
    let begin = text.len() - page.document.body().len();
    let end = begin + SplitBody::new(page.document.body()).text.trim_end().len();
    let (above, line) = text[begin..end].rsplit_once('\n').unwrap_or(("", &text[begin..end]));
    let is_apart = above.rsplit('\n').next().is_none_or(|above| above.trim().is_empty());
    let is_line = line.starts_with(SEE_ALSO) && line.ends_with("]]") && is_apart;
    is_line.then(|| format!("{}, {}{}", &text[..end], links.join(", "), &text[end..]))
}

/// A link that shows the title, unless that holds what must be exact.
fn show_link(page: &WikiPage) -> String {
    if list_code(&page.title).is_empty() { link_page(page) } else { format!("[[{}]]", page.slug) }
}

#[cfg(test)]
mod tests;
