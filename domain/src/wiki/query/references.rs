//! The marks and links of an answer: only those stay that the wiki has.
//!
//! A model may invent a label or a page. Such a reference is taken out and reported, and the words around it stay.

use super::Citation;
use crate::record::plain_text::unescape_markdown;
use crate::wiki::claims::{PageClaims, read_claims};
use crate::wiki::page::{WikiPage, may_be_page};
use crate::wiki::quote::is_quote_label;
use std::collections::BTreeSet;

/// An answer whose references are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedText {
    pub text: String,
    /// In the order of their marks.
    pub citations: Vec<Citation>,
    /// What was taken out.
    pub unknown: Vec<String>,
}

/// A mark or a link in a text.
enum Reference<'t> {
    /// As in `[^c6107d23f]`, also without the `^`.
    Mark(&'t str),
    /// As in `[[plot-12|Plot 12]]`.
    Link { slug: &'t str, shown: &'t str },
}

/// Keeps those marks that stand on these pages, and the links to pages among these files.
#[must_use]
pub fn check_references(text: &str, pages: &[WikiPage], files: &BTreeSet<String>) -> CheckedText {
    let claims: Vec<(&WikiPage, PageClaims)> =
        pages.iter().map(|page| (page, read_claims(page.document.body(), &page.body.disputed))).collect();
    let slugs: BTreeSet<&str> =
        files.iter().filter(|file| may_be_page(file)).filter_map(|file| name_stem(file)).collect();
    let mut checked = CheckedText::default();
    // Footnotes are added from the pages; those of the model prove nothing.
    let kept: Vec<&str> = text.lines().filter(|line| !is_footnote(line)).collect();
    let text = kept.join("\n");
    checked.text = replace_references(&text, |reference, whole| match reference {
        Reference::Mark(label) => match find_citation(&claims, label) {
            Some(citation) => {
                let mark = format!("[^{label}]");
                if checked.citations.iter().all(|known| known.anchor.label != label) {
                    checked.citations.push(citation);
                }
                mark
            }
            None => {
                checked.unknown.push(whole.to_owned());
                String::new()
            }
        },
        Reference::Link { slug, shown } => {
            if slugs.contains(slug) || pages.iter().any(|page| page.slug == slug) {
                return whole.to_owned();
            }
            checked.unknown.push(whole.to_owned());
            shown.to_owned()
        }
    })
    .trim()
    .to_owned();
    checked
}

/// The text as it is shown outside of Markdown: its marks as numbers, as in `[1]`, in the order of these labels, the titles of
/// its links, and no backslashes.
#[must_use]
pub fn number_marks(text: &str, citations: &[Citation]) -> String {
    let shown = replace_references(text, |reference, whole| match reference {
        Reference::Mark(label) => match citations.iter().position(|known| known.anchor.label == label) {
            Some(at) => format!(" [{}]", at + 1),
            None => whole.to_owned(),
        },
        Reference::Link { shown, .. } => shown.to_owned(),
    });
    unescape_markdown(&shown)
}

/// The text without its marks; links show their titles.
pub(super) fn strip_references(text: &str) -> String {
    replace_references(text, |reference, _| match reference {
        Reference::Mark(_) => String::new(),
        Reference::Link { shown, .. } => shown.to_owned(),
    })
}

fn find_citation(claims: &[(&WikiPage, PageClaims)], label: &str) -> Option<Citation> {
    let found = claims.iter().filter_map(|(page, claims)| {
        let anchor = claims.anchors.get(label).filter(|anchor| anchor.is_intact())?;
        let mut holders = claims.claims.iter().filter(|claim| claim.labels.iter().any(|known| known == label));
        let is_disputed = holders.any(|claim| claim.is_disputed);
        Some(Citation {
            page: page.slug.clone(),
            anchor: anchor.clone(),
            is_disputed,
            fault: None,
            superseded_by: None,
        })
    });
    // Several pages may have the claim. The one in a dispute says most.
    let mut found: Vec<Citation> = found.collect();
    found.sort_by_key(|citation| !citation.is_disputed);
    found.into_iter().next()
}

fn is_footnote(line: &str) -> bool {
    line.trim_start()
        .strip_prefix("[^")
        .and_then(|rest| rest.split_once(']'))
        .is_some_and(|(_, rest)| rest.starts_with(':'))
}

fn name_stem(file: &str) -> Option<&str> {
    file.rsplit('/').next()?.strip_suffix(".md")
}

/// Replaces every mark and every link. The function gets each with its whole text.
fn replace_references(text: &str, mut replace: impl FnMut(Reference<'_>, &str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        out.push_str(&rest[..at]);
        let after = &rest[at..];
        match read_reference(after) {
            Some((reference, length)) => {
                out.push_str(&replace(reference, &after[..length]));
                rest = &after[length..];
            }
            None => {
                out.push('[');
                rest = &after[1..];
            }
        }
    }
    out + rest
}

/// The reference at the beginning of a text, and its bytes.
fn read_reference(text: &str) -> Option<(Reference<'_>, usize)> {
    if let Some(link) = text.strip_prefix("[[") {
        let inner = &link[..link.find("]]").filter(|end| !link[..*end].contains(['\n', '[']))?];
        let (slug, shown) = inner.split_once('|').unwrap_or((inner, inner));
        let slug = slug.split('#').next().unwrap_or(slug).trim_end_matches('\\').trim();
        return Some((Reference::Link { slug, shown: shown.trim() }, inner.len() + 4));
    }
    let inner = text.strip_prefix('[')?;
    let inner = &inner[..inner.find(']').filter(|end| !inner[..*end].contains(['\n', ' ', '[']))?];
    match inner.strip_prefix('^') {
        Some(label) => Some((Reference::Mark(label), inner.len() + 2)),
        None if is_quote_label(inner) => Some((Reference::Mark(inner), inner.len() + 2)),
        None => None,
    }
}
