//! Checks a wiki without a model.
//!
//! The manifest's lints say how old, how sure and how well sourced a page must be. The rest holds for every wiki: links that
//! lead nowhere, pages that nobody reaches, sources that changed, names that two pages share, and an index, a log or a guide
//! that says something else than the files. Nothing is fixed here.

mod guide;
mod links;
mod page_names;
mod see_also;
mod sources;

pub use links::list_dangling_names;
pub(super) use links::{map_missed_pages, modernize_path};
pub(super) use page_names::{LooseNames, PageNames};
pub(super) use see_also::find_unlinked_pairs;
pub use sources::SourceImpact;

use super::finding::{FindingCode, Severity, WikiFinding};
use super::manifest::{EffectiveManifest, LintKind, LintRule};
use super::names::name_kind;
use super::page::{WikiPage, check_placement};
use super::registry::WikiSource;
use super::standard::FieldPath;
use super::{MANIFEST_FILE, index_page, log};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};

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
    /// What rests on the sources that are changed or gone, by their ids.
    pub impacts: &'a BTreeMap<String, SourceImpact>,
    /// All files of the wiki, by their paths.
    pub files: &'a BTreeSet<String>,
    /// Whether the hashes of sources are what a file says of itself, so that they were perhaps never right.
    pub has_registry: bool,
    /// `_index.md`, `_log.md` and `AGENTS.md`; `None` if the file is not there.
    pub index: Option<&'a str>,
    pub log: Option<&'a str>,
    pub guide: Option<&'a str>,
    pub now: DateTime<Utc>,
}

/// The facts, and the manifest's lints by what they look at.
struct LintContext<'a> {
    facts: &'a WikiFacts<'a>,
    rules: &'a [LintRule],
}

impl LintContext<'_> {
    /// The severity that the manifest sets for what it looks for, at a page of a kind.
    fn find_severity(&self, kind: LintKind, page: &WikiPage, default: Severity) -> Severity {
        let fitting = self.rules.iter().filter(|rule| rule.kind == kind && applies_to(rule, page));
        fitting.map(|rule| rule.severity).max().unwrap_or(default)
    }
}

/// Finds everything, sorted by file and line.
#[must_use]
pub fn lint_wiki(facts: &WikiFacts<'_>) -> Vec<WikiFinding> {
    let context = LintContext { facts, rules: &facts.manifest.lints };
    let mut found = Vec::new();
    for page in facts.pages {
        found.extend(check_placement(page, facts.manifest));
        found.extend(check_fields(page, facts.manifest));
        found.extend(check_dispute(page));
    }
    found.extend(find_shared_names(facts.pages));
    found.extend(links::check_links(&context));
    found.extend(see_also::check_see_also(facts.pages));
    found.extend(sources::check_sources(facts));
    found.extend(facts.manifest.lints.iter().flat_map(|rule| check_rule(rule, facts)));
    found.extend(index_page::check_index(facts.manifest, facts.pages, facts.index));
    found.extend(facts.log.map(|text| log::read_log(text).findings).unwrap_or_default());
    found.extend(facts.guide.map(|text| guide::check_guide(text, facts.manifest)).unwrap_or_default());
    found.sort();
    found.dedup();
    found
}

fn applies_to(rule: &LintRule, page: &WikiPage) -> bool {
    rule.page_kind.as_ref().is_none_or(|kind| *kind == page.kind)
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
    WikiFinding::new(code, severity, &page.file, problem, fix).with_field(&page.document, field)
}

/// The fields that the page's type declares.
fn check_fields(page: &WikiPage, manifest: &EffectiveManifest) -> Vec<WikiFinding> {
    let declared = manifest.entity_types.iter().filter(|declared| name_kind(&declared.name) == page.kind);
    let missing = declared.flat_map(|declared| &declared.fields).filter(|name| !page.has_declared_field(name));
    missing
        .map(|name| {
            let problem = format!("a page of the kind `{}` has the field `{name}`", page.kind);
            let fix = format!("write `metadata.fields.{name}`, or remove it from the type in {MANIFEST_FILE}");
            report(page, FindingCode::FieldMissing, Severity::Warn, &FieldPath::from_key("metadata"), &problem, &fix)
        })
        .collect()
}

/// Two sides of a contradiction stand in a `::: disputed` block with a callout, and `contradicts` names the other page.
fn check_dispute(page: &WikiPage) -> Vec<WikiFinding> {
    let mut found = Vec::new();
    let field = FieldPath::from_key("contradicts");
    if !page.contradicts.is_empty() {
        let problem = format!("it contradicts {}", page.contradicts.join(", "));
        let fix = "`steward wiki settle` keeps one side; or edit the text, and remove the page from `contradicts`";
        found.push(report(page, FindingCode::UnresolvedContradiction, Severity::Warn, &field, &problem, fix));
    }
    let is_marked = |line: &usize| page.body.disputed.iter().any(|block| (block.first..=block.last).contains(line));
    let is_named = !page.contradicts.is_empty();
    let lone = page.body.callouts.iter().find(|line| !is_marked(line) || !is_named);
    let silent = page.body.disputed.iter().map(|block| (block, (block.first..=block.last)));
    let silent = silent.filter(|(_, lines)| !page.body.callouts.iter().any(|line| lines.contains(line)));
    let line = lone.copied().or_else(|| silent.map(|(block, _)| block.first).next());
    let is_unmarked = is_named && page.body.disputed.is_empty();
    if line.is_some() || is_unmarked {
        let problem = "a contradiction is marked in part";
        let fix = "put both sides into a `::: disputed` block with a callout, and name in `contradicts` the page of the other side, such as the summary of its source";
        let finding = WikiFinding::new(FindingCode::HedgeIncomplete, Severity::Warn, &page.file, problem, fix);
        found.push(match line {
            Some(line) => finding.with_line(Some(page.line_in_file(line))),
            None => finding.with_field(&page.document, &field),
        });
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
            let field = FieldPath::from_key("slug");
            let fix = "give one of them another slug";
            found.push(report(page, FindingCode::DuplicateId, Severity::Error, &field, &problem, fix));
        }
        for name in std::iter::once(&page.title).chain(&page.aliases) {
            match titles.insert(name.to_lowercase(), &page.file) {
                Some(other) if *other != page.file => {
                    let problem = format!("{other} is called `{name}` too, so a link by title is ambiguous");
                    let field = FieldPath::from_key("title");
                    let fix = "give one of them another title, or merge the two";
                    found.push(report(page, FindingCode::DuplicateTitle, Severity::Warn, &field, &problem, fix));
                }
                Some(_) | None => {}
            }
        }
    }
    found
}

/// What a lint of the manifest finds at single pages, or why it cannot find anything.
fn check_rule(rule: &LintRule, facts: &WikiFacts<'_>) -> Vec<WikiFinding> {
    let limit = match rule.kind {
        LintKind::MaxAge => rule.find_number("days"),
        LintKind::MinConfidence => rule.find_number("min"),
        LintKind::RequireSource | LintKind::BrokenRef | LintKind::Orphan | LintKind::Custom => Some(0.0),
    };
    let kind = rule.page_kind.as_deref().filter(|kind| !facts.manifest.knows_kind(kind));
    let why = match (rule.kind, limit, kind) {
        (LintKind::Custom, _, _) => Some("is of a kind that this version cannot check".to_owned()),
        (LintKind::MaxAge, None, _) => Some("has no number in `params.days`".to_owned()),
        (_, None, _) => Some("has no number in `params.min`".to_owned()),
        (_, _, Some(kind)) => Some(format!("is for the kind `{kind}`, which is not declared")),
        (_, Some(_), None) => None,
    };
    if let Some(why) = why {
        let problem = format!("the lint `{}` {why}", rule.id);
        return vec![WikiFinding::new(
            FindingCode::LintUnknown,
            Severity::Info,
            MANIFEST_FILE,
            &problem,
            "correct or remove it",
        )];
    }
    let pages = facts.pages.iter().filter(|page| applies_to(rule, page));
    pages.filter_map(|page| check_page(rule, limit.unwrap_or_default(), page, facts)).collect()
}

fn check_page(rule: &LintRule, limit: f64, page: &WikiPage, facts: &WikiFacts<'_>) -> Option<WikiFinding> {
    let (code, field, problem, fix) = match rule.kind {
        LintKind::RequireSource if page.sources.is_empty() && !page.is_report() => {
            let fix = "cite a source, or take the kind out of the lint";
            (FindingCode::RequireSource, "sources", "it cites no source".to_owned(), fix)
        }
        LintKind::MinConfidence if page.confidence < limit => {
            let problem = format!("its confidence is {}, and {limit} is wanted", page.confidence);
            (FindingCode::MinConfidence, "confidence", problem, "find another source for it, or correct it")
        }
        LintKind::MaxAge => {
            let problem =
                format!("its newest source or confirmation is {} days old", sources::find_age(page, facts, limit)?);
            let fix = "add a newer source, or read it and run `steward wiki lint <wiki> --confirm <page>`";
            (FindingCode::Stale, "sources", problem, fix)
        }
        _ => return None,
    };
    let problem = format!("{problem} (lint `{}`)", rule.id);
    Some(report(page, code, rule.severity, &FieldPath::from_key(field), &problem, fix))
}

#[cfg(test)]
mod tests;
