//! Corrects links that lead to no page, where only one page can be meant.
//!
//! The words that a reader sees stay: `[[Plot_12]]` becomes `[[plot-12|Plot_12]]`. Every other byte of the page stays, too.

use crate::record::frontmatter::FieldEdit;
use crate::wiki::body::{LinkTarget, PAGE_MARKDOWN, read_target};
use crate::wiki::lint::{LooseNames, PageNames};
use crate::wiki::page::{REFERENCE_LISTS, WikiPage, read_page};
use crate::wiki::standard::is_slug;
use pulldown_cmark::{Event, LinkType, Parser, Tag, TagEnd};
use serde_json::Value;
use std::ops::Range;

/// Finds the pages that links without a page mean.
pub(in crate::wiki) struct LinkCorrector<'p> {
    pages: &'p [WikiPage],
    names: PageNames<'p>,
    loose: LooseNames,
}

/// A text with other links, and the slugs to which they lead now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CorrectedText {
    pub(super) text: String,
    pub(super) slugs: Vec<String>,
}

/// Lists of slugs with other slugs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CorrectedLists {
    pub(super) edits: Vec<FieldEdit>,
    pub(super) slugs: Vec<String>,
}

/// What a link names instead.
struct CorrectTarget<'a> {
    slug: &'a str,
    /// With its `#`; empty without one.
    heading: &'a str,
}

/// A link as it stands in a text.
struct FoundLink {
    name: String,
    range: Range<usize>,
    /// It shows the page itself, as in `![[plot-12]]`.
    is_embedded: bool,
    /// A bar would end a cell.
    is_in_table: bool,
}

impl<'p> LinkCorrector<'p> {
    pub(in crate::wiki) fn new(pages: &'p [WikiPage]) -> Self {
        Self { pages, names: PageNames::new(pages), loose: LooseNames::new(pages) }
    }

    /// The page with the links of its body corrected.
    pub(in crate::wiki) fn correct_page(&self, page: &WikiPage) -> WikiPage {
        let Some(corrected) = self.correct_body(page) else { return page.clone() };
        let text = page.document.as_str();
        let above = &text[..text.len() - page.document.body().len()];
        let read = read_page(&page.file, format!("{above}{}", corrected.text).as_bytes()).page;
        read.unwrap_or_else(|| page.clone())
    }

    /// The body of a page with its links corrected; `None` if none can be.
    pub(super) fn correct_body(&self, page: &WikiPage) -> Option<CorrectedText> {
        let mut links = page.body.links.iter();
        let is_wrong = links.any(|link| matches!(&link.target, LinkTarget::Name(name) if self.find(name).is_some()));
        is_wrong.then(|| self.correct_text(page.document.body())).filter(|corrected| !corrected.slugs.is_empty())
    }

    /// The lists of slugs in the frontmatter that name a page in another way than by its slug.
    pub(super) fn correct_lists(&self, page: &WikiPage) -> CorrectedLists {
        let mut corrected = CorrectedLists::default();
        for name in REFERENCE_LISTS {
            let Some(Value::Array(items)) = page.document.fields().get(name) else { continue };
            let mut kept: Vec<Value> = Vec::new();
            let count = corrected.slugs.len();
            for item in items {
                let target = item.as_str().and_then(|text| self.find(text)).filter(|it| it.heading.is_empty());
                let Some(CorrectTarget { slug, .. }) = target else {
                    kept.push(item.clone());
                    continue;
                };
                corrected.slugs.push(slug.to_owned());
                if !items.iter().chain(&kept).any(|known| known.as_str() == Some(slug)) {
                    kept.push(slug.into());
                }
            }
            if corrected.slugs.len() > count {
                corrected.edits.push(FieldEdit { field: name.to_owned(), value: Some(Value::Array(kept)) });
            }
        }
        corrected
    }

    /// What a name without a page means.
    fn find<'a>(&'a self, name: &'a str) -> Option<CorrectTarget<'a>> {
        if self.names.find(name).is_some() {
            return None;
        }
        let meant = self.loose.find(name)?;
        let slug = self.pages[meant.page].slug.as_str();
        // A slug may be anything that somebody wrote.
        is_slug(slug).then_some(CorrectTarget { slug, heading: meant.heading })
    }

    fn correct_text(&self, text: &str) -> CorrectedText {
        let mut corrected = CorrectedText::default();
        let mut end = 0;
        for link in list_links(text) {
            let raw = text.get(link.range.clone()).unwrap_or_default();
            let Some(target) = self.find(&link.name).filter(|_| link.range.start >= end) else { continue };
            let Some(rewritten) = rewrite_link(raw, &target, &link) else { continue };
            corrected.text.push_str(&text[end..link.range.start]);
            corrected.text.push_str(&rewritten);
            corrected.slugs.push(target.slug.to_owned());
            end = link.range.end;
        }
        corrected.text.push_str(&text[end..]);
        corrected
    }
}

fn list_links(text: &str) -> Vec<FoundLink> {
    let (mut tables, mut found) = (0_usize, Vec::new());
    for (event, range) in Parser::new_ext(text, PAGE_MARKDOWN).into_offset_iter() {
        let (link_type, target, is_embedded) = match event {
            Event::Start(Tag::Link { link_type, dest_url, .. }) => (link_type, dest_url, false),
            Event::Start(Tag::Image { link_type, dest_url, .. }) => (link_type, dest_url, true),
            Event::Start(Tag::Table(_)) => {
                tables += 1;
                continue;
            }
            Event::End(TagEnd::Table) => {
                tables = tables.saturating_sub(1);
                continue;
            }
            _ => continue,
        };
        if let (LinkType::WikiLink { .. }, Some(LinkTarget::Name(name))) = (link_type, read_target(link_type, &target))
        {
            found.push(FoundLink { name, range, is_embedded, is_in_table: tables > 0 });
        }
    }
    found
}

/// The link with another target; `None` if it is not written as expected.
fn rewrite_link(raw: &str, target: &CorrectTarget<'_>, link: &FoundLink) -> Option<String> {
    let sign = if link.is_embedded { "![[" } else { "[[" };
    let inner = raw.strip_prefix(sign)?.strip_suffix("]]")?;
    let CorrectTarget { slug, heading } = target;
    let shown = match inner.find('|') {
        Some(bar) if inner[..bar].ends_with('\\') => &inner[bar - 1..],
        Some(bar) => &inner[bar..],
        None if link.is_embedded => "",
        None => {
            let bar = if link.is_in_table { "\\|" } else { "|" };
            return Some(format!("{sign}{slug}{heading}{bar}{inner}]]"));
        }
    };
    Some(format!("{sign}{slug}{heading}{shown}]]"))
}
