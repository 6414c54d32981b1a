//! What is wrong with a wiki, found without a model.
//!
//! The manifest's lints say how old, how sure and how well sourced a page must be. The rest holds for every wiki: links that
//! lead nowhere, pages that nobody reaches, sources that changed, names that two pages share, and an index, a log or a guide
//! that says something else than the files. Nothing is fixed here.

mod guide;
mod links;
mod sources;

use super::finding::{FindingCode, Severity, WikiFinding};
use super::manifest::{EffectiveManifest, LintKind};
use super::names::kind_of_type;
use super::page::{WikiPage, check_placement};
use super::registry::WikiSource;
use super::standard::FieldPath;
use super::{MANIFEST_FILE, index_page, log};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

pub use links::PageNames;

/// What the lint of a wiki looks at.
#[derive(Clone, Debug)]
pub struct WikiFacts<'a> {
    pub manifest: &'a EffectiveManifest,
    /// The pages that could be read, by file.
    pub pages: &'a [WikiPage],
    /// The registered sources by id.
    pub sources: &'a BTreeMap<String, WikiSource>,
    /// The present hash of each registered source, by its path and in the form of the registry; `None` if the file is not
    /// there. A source whose hash cannot be made here is missing.
    pub source_hashes: &'a BTreeMap<String, Option<String>>,
    /// Whether the hashes of sources are what a file says of itself, so that they were perhaps never right.
    pub has_registry: bool,
    /// `_index.md`, `_log.md` and `AGENTS.md`; `None` if the file is not there.
    pub index: Option<&'a str>,
    pub log: Option<&'a str>,
    pub guide: Option<&'a str>,
    pub now: DateTime<Utc>,
}

/// Finds what is wrong, sorted by file and line.
#[must_use]
pub fn lint_wiki(facts: &WikiFacts<'_>) -> Vec<WikiFinding> {
    let mut found = Vec::new();
    for page in facts.pages {
        found.extend(check_placement(page, facts.manifest));
        found.extend(check_fields(page, facts.manifest));
        found.extend(check_dispute(page));
    }
    found.extend(find_shared_names(facts.pages));
    found.extend(links::check_links(facts));
    found.extend(sources::check_sources(facts));
    found.extend(check_rules(facts));
    found.extend(index_page::check_index(facts.manifest, facts.pages, facts.index));
    found.extend(facts.log.map(|text| log::read_log(text).findings).unwrap_or_default());
    found.extend(facts.guide.map(|text| guide::check_guide(text, facts.manifest)).unwrap_or_default());
    found.sort();
    found.dedup();
    found
}

/// The severity that the manifest sets for what it looks for, at a page of a kind.
fn find_severity(manifest: &EffectiveManifest, kind: LintKind, page: &WikiPage, default: Severity) -> Severity {
    let rules = manifest.lints();
    let fitting = rules.iter().filter(|rule| rule.kind == kind && fits(rule.page_kind.as_deref(), page));
    fitting.map(|rule| rule.severity).max().unwrap_or(default)
}

fn fits(kind: Option<&str>, page: &WikiPage) -> bool {
    kind.is_none_or(|kind| kind == page.kind)
}

/// A finding about a field of a page.
fn report(
    page: &WikiPage,
    code: FindingCode,
    severity: Severity,
    field: &FieldPath,
    problem: &str,
    fix: &str,
) -> WikiFinding {
    WikiFinding::new(code, severity, &page.file, problem, fix).at_field(&page.document, field)
}

/// The fields that the page's type declares.
fn check_fields(page: &WikiPage, manifest: &EffectiveManifest) -> Vec<WikiFinding> {
    let types = manifest.entity_types();
    let declared = types.iter().filter(|declared| kind_of_type(&declared.name) == page.kind);
    let missing = declared.flat_map(|declared| &declared.fields).filter(|name| !page.has_declared_field(name));
    missing
        .map(|name| {
            let problem = format!("a page of the kind `{}` has the field `{name}`", page.kind);
            let fix = format!("write `metadata.fields.{name}`, or remove it from the type in {MANIFEST_FILE}");
            report(page, FindingCode::FieldMissing, Severity::Warn, &FieldPath::of_field("metadata"), &problem, &fix)
        })
        .collect()
}

/// Two sides of a contradiction stand in a `::: disputed` block with a callout, and `contradicts` names the other page.
fn check_dispute(page: &WikiPage) -> Vec<WikiFinding> {
    let mut found = Vec::new();
    let field = FieldPath::of_field("contradicts");
    if !page.contradicts.is_empty() {
        let problem = format!("it contradicts {}", page.contradicts.join(", "));
        let fix = "settle it in the text, and remove the page from `contradicts`";
        found.push(report(page, FindingCode::UnresolvedContradiction, Severity::Warn, &field, &problem, fix));
    }
    let is_whole = !page.body.disputed.is_empty() && !page.contradicts.is_empty();
    if let (Some(line), false) = (page.body.callouts.first(), is_whole) {
        let problem = "a contradiction is marked by its callout alone";
        let fix = "put both sides into a `::: disputed` block, and name the other page in `contradicts`";
        let finding = WikiFinding::new(FindingCode::HedgeIncomplete, Severity::Warn, &page.file, problem, fix);
        found.push(finding.at_line(Some(page.line_in_file(*line))));
    }
    found
}

/// Slugs, titles and aliases that more than one page has.
fn find_shared_names(pages: &[WikiPage]) -> Vec<WikiFinding> {
    let (mut slugs, mut titles) = (BTreeMap::new(), BTreeMap::new());
    let mut found = Vec::new();
    for page in pages {
        if let Some(other) = slugs.insert(page.slug.to_lowercase(), &page.file) {
            let problem = format!("{other} has the slug `{}` too", page.slug);
            let field = FieldPath::of_field("slug");
            let fix = "give one of them another slug";
            found.push(report(page, FindingCode::DuplicateId, Severity::Error, &field, &problem, fix));
        }
        for name in std::iter::once(&page.title).chain(&page.aliases) {
            match titles.insert(name.to_lowercase(), &page.file) {
                Some(other) if *other != page.file => {
                    let problem = format!("{other} is called `{name}` too, so a link by title is ambiguous");
                    let field = FieldPath::of_field("title");
                    let fix = "give one of them another title, or merge the two";
                    found.push(report(page, FindingCode::DuplicateTitle, Severity::Warn, &field, &problem, fix));
                }
                Some(_) | None => {}
            }
        }
    }
    found
}

/// The lints of the manifest that look at a page alone.
fn check_rules(facts: &WikiFacts<'_>) -> Vec<WikiFinding> {
    let mut found = Vec::new();
    for rule in facts.manifest.lints() {
        let number = |name: &str| rule.params.get(name).and_then(serde_json::Value::as_f64);
        for page in facts.pages.iter().filter(|page| fits(rule.page_kind.as_deref(), page)) {
            let finding = match rule.kind {
                LintKind::RequireSource if page.sources.is_empty() && page.kind != "overview" => {
                    let fix = "cite a source, or take the kind out of the lint";
                    Some((FindingCode::RequireSource, "sources", "it cites no source".to_owned(), fix))
                }
                LintKind::MinConfidence => number("min").filter(|min| page.confidence < *min).map(|min| {
                    let problem = format!("its confidence is {}, and {min} is wanted", page.confidence);
                    (FindingCode::MinConfidence, "confidence", problem, "find another source for it, or correct it")
                }),
                LintKind::MaxAge => number("days").and_then(|days| sources::find_age(page, facts, days)).map(|age| {
                    let problem = format!("its newest source is {age} days old");
                    (FindingCode::Stale, "sources", problem, "ingest a newer source that confirms or replaces it")
                }),
                LintKind::RequireSource | LintKind::BrokenRef | LintKind::Orphan | LintKind::Custom => None,
            };
            if let Some((code, field, problem, fix)) = finding {
                let problem = format!("{problem} (lint `{}`)", rule.id);
                found.push(report(page, code, rule.severity, &FieldPath::of_field(field), &problem, fix));
            }
        }
        if rule.kind == LintKind::Custom {
            let problem = format!("nobody here knows how to check the lint `{}`", rule.id);
            let fix = "check it by hand, or remove it";
            found.push(WikiFinding::new(FindingCode::LintUnknown, Severity::Info, MANIFEST_FILE, &problem, fix));
        }
    }
    found
}

#[cfg(test)]
mod tests;
