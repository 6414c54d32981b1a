//! Renders `_index.md`, the catalogue of a wiki. Code owns the whole file.
//!
//! The same pages and manifest always give the same bytes.

use super::INDEX_FILE;
use super::finding::{FindingCode, Severity, WikiFinding};
use super::manifest::{EffectiveManifest, IndexGrouping};
use super::names::{folder_of_kind, kind_of_type};
use super::page::WikiPage;
use crate::record::plain_text::to_one_line;

/// The section of pages without a source, if the index is grouped by source.
const NO_SOURCE: &str = "No source";

/// Renders the index of these pages.
#[must_use]
pub fn render_index(manifest: &EffectiveManifest, pages: &[WikiPage]) -> String {
    let title = manifest.find_text(&["title"]).unwrap_or("Wiki");
    let mut text = format!("# Index: {}\n", escape(title));
    for (heading, mut members) in group_pages(manifest, pages) {
        members.sort_by_cached_key(|page| (page.title.to_lowercase(), page.slug.clone()));
        text.push_str(&format!("## {}\n", escape(&heading)));
        for page in members {
            text.push_str(&render_line(page));
        }
    }
    text
}

/// Compares the index with the pages.
#[must_use]
pub fn check_index(manifest: &EffectiveManifest, pages: &[WikiPage], index: Option<&str>) -> Option<WikiFinding> {
    let expected = render_index(manifest, pages);
    let found = index.unwrap_or_default();
    if found == expected {
        return None;
    }
    let (shown, wanted): (Vec<&str>, Vec<&str>) = (found.lines().collect(), expected.lines().collect());
    let same = shown.iter().zip(&wanted).take_while(|(shown, wanted)| shown == wanted).count();
    let problem = match index {
        None => "there is no index".to_owned(),
        Some(_) => "it does not show the pages as they are".to_owned(),
    };
    let fix = match wanted.get(same) {
        Some(line) => format!("write `{line}` here"),
        None => "remove what follows".to_owned(),
    };
    let finding = WikiFinding::new(FindingCode::IndexStale, Severity::Warn, INDEX_FILE, &problem, &fix);
    Some(finding.at_line(index.map(|_| same + 1)))
}

/// The slugs that an index names.
pub(super) fn list_slugs(index: &str) -> impl Iterator<Item = &str> {
    let links = index.split("[[").skip(1);
    links.filter_map(|rest| rest.split_once("]]")?.0.split('|').next())
}

fn render_line(page: &WikiPage) -> String {
    let summary = escape(&page.summary);
    let dash = if summary.is_empty() { "" } else { " — " };
    format!("- [[{}|{}]] `{}`{dash}{summary}\n", page.slug, escape(&page.title), page.kind)
}

/// The sections in their order: that of the declared kinds first, then by name.
fn group_pages<'p>(manifest: &EffectiveManifest, pages: &'p [WikiPage]) -> Vec<(String, Vec<&'p WikiPage>)> {
    let grouping = manifest.grouping();
    let mut groups: Vec<(String, Vec<&WikiPage>)> = match grouping {
        IndexGrouping::Kind => {
            let declared = manifest.entity_types();
            declared.iter().map(|declared| (head_kind(&kind_of_type(&declared.name)), Vec::new())).collect()
        }
        IndexGrouping::Tag | IndexGrouping::Source => Vec::new(),
    };
    let declared = groups.len();
    for page in pages {
        let headings = match grouping {
            IndexGrouping::Kind => vec![head_kind(&page.kind)],
            IndexGrouping::Tag => vec![page.topic().to_owned()],
            IndexGrouping::Source if page.sources.is_empty() => vec![NO_SOURCE.to_owned()],
            IndexGrouping::Source => page.sources.clone(),
        };
        for heading in headings {
            match groups.iter_mut().find(|(known, _)| *known == heading) {
                Some((_, members)) => members.push(page),
                None => groups.push((heading, vec![page])),
            }
        }
    }
    groups[declared..].sort_by(|(a, _), (b, _)| (a == NO_SOURCE, a).cmp(&(b == NO_SOURCE, b)));
    groups.retain(|(_, members)| !members.is_empty());
    groups
}

/// The heading of a kind: the name of its folder, as in `Entities`.
fn head_kind(kind: &str) -> String {
    let folder = folder_of_kind(kind);
    let name = if folder.is_empty() { kind } else { &folder };
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Outside text on one line of the index, so that no link, table or footnote begins in it.
pub(super) fn escape(text: &str) -> String {
    let line = to_one_line(text);
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if matches!(c, '|' | '[' | ']' | '\\' | '`' | '<' | '>') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests;
