//! Renders `_index.md`, the catalogue of a wiki. Code owns the whole file.
//!
//! The same pages and manifest always give the same bytes.

use super::INDEX_FILE;
use super::finding::{FindingCode, Severity, WikiFinding};
use super::manifest::{EffectiveManifest, IndexGrouping};
use super::names::{name_folder, name_kind};
use super::page::WikiPage;
use crate::record::plain_text::to_one_line;
use std::collections::BTreeMap;

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
    let is_text_same = shown == wanted;
    let problem = match index {
        None => "there is no index",
        Some(_) if is_text_same => "its lines do not end as they should",
        Some(_) => "it does not show the pages as they are",
    };
    let fix = match wanted.get(same) {
        _ if is_text_same => "end every line, also the last one, with a line feed alone".to_owned(),
        Some(line) => format!("write `{line}` here"),
        None => "remove what follows".to_owned(),
    };
    let same = if is_text_same { 0 } else { same };
    let finding = WikiFinding::new(FindingCode::IndexStale, Severity::Warn, INDEX_FILE, problem, &fix);
    Some(finding.with_line(index.map(|_| same + 1)))
}

/// The slugs that an index names.
pub(super) fn list_slugs(index: &str) -> impl Iterator<Item = &str> {
    let links = index.split("[[").skip(1);
    links.filter_map(|rest| rest.split_once("]]")?.0.split('|').next())
}

fn render_line(page: &WikiPage) -> String {
    let summary = escape(&page.summary);
    let dash = if summary.is_empty() { "" } else { " — " };
    let [slug, title, kind] = [&page.slug, &page.title, &page.kind].map(|text| escape(text));
    format!("- [[{slug}|{title}]] `{kind}`{dash}{summary}\n")
}

/// The sections in their order: that of the declared kinds first, then by name. Pages without a source come last.
fn group_pages<'p>(manifest: &EffectiveManifest, pages: &'p [WikiPage]) -> Vec<(String, Vec<&'p WikiPage>)> {
    let grouping = manifest.grouping();
    let mut groups: BTreeMap<String, Vec<&WikiPage>> = BTreeMap::new();
    for page in pages {
        let headings = match grouping {
            IndexGrouping::Kind => vec![head_kind(&page.kind)],
            IndexGrouping::Tag => vec![page.topic().to_owned()],
            IndexGrouping::Source if page.sources.is_empty() => vec![NO_SOURCE.to_owned()],
            IndexGrouping::Source => page.sources.clone(),
        };
        for heading in headings {
            groups.entry(heading).or_default().push(page);
        }
    }
    let declared: Vec<String> = match grouping {
        IndexGrouping::Kind => manifest.entity_types.iter().map(|it| head_kind(&name_kind(&it.name))).collect(),
        IndexGrouping::Tag | IndexGrouping::Source => Vec::new(),
    };
    let last = groups.remove(NO_SOURCE).map(|members| (NO_SOURCE.to_owned(), members));
    let mut sorted: Vec<(String, Vec<&WikiPage>)> =
        declared.into_iter().filter_map(|heading| groups.remove_entry(&heading)).collect();
    sorted.extend(groups);
    sorted.extend(last);
    sorted
}

/// The heading of a kind: the name of its folder, as in `Entities`.
fn head_kind(kind: &str) -> String {
    let folder = name_folder(kind);
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
