//! Links: those that lead nowhere, those into `sources/`, and pages that nothing leads to.
//!
//! A link names a slug, a title or alias that one page alone has, or the relative path of a file. The folders of an earlier
//! draft, `wiki/` and `entries/`, count as the wiki's own.

use super::{WikiFacts, find_severity, report};
use crate::wiki::finding::{FindingCode, Severity, WikiFinding};
use crate::wiki::manifest::LintKind;
use crate::wiki::page::{LinkTarget, WikiPage};
use crate::wiki::{INDEX_FILE, SOURCES_FOLDER, index_page};
use std::collections::{BTreeMap, BTreeSet};

/// The pages of a wiki by what a link may call them.
#[derive(Debug, Default)]
pub struct PageNames<'p> {
    slugs: BTreeMap<&'p str, usize>,
    /// Titles and aliases in lower case; `None` if several pages have it.
    titles: BTreeMap<String, Option<usize>>,
    files: BTreeMap<&'p str, usize>,
}

impl<'p> PageNames<'p> {
    #[must_use]
    pub fn new(pages: &'p [WikiPage]) -> Self {
        let mut names = Self::default();
        for (at, page) in pages.iter().enumerate() {
            names.slugs.entry(&page.slug).or_insert(at);
            names.files.insert(&page.file, at);
            for title in std::iter::once(&page.title).chain(&page.aliases) {
                let known = names.titles.entry(title.to_lowercase()).or_insert(Some(at));
                *known = known.filter(|other| *other == at);
            }
        }
        names
    }

    /// The position of the page that a name means: its slug, or else its title, or the last part of a path.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        let last = name.rsplit('/').next().unwrap_or(name);
        let last = last.strip_suffix(".md").unwrap_or(last);
        let by_slug = |name: &str| self.slugs.get(name).copied();
        by_slug(name).or_else(|| self.titles.get(&name.to_lowercase()).copied().flatten()).or_else(|| by_slug(last))
    }

    fn find_file(&self, file: &str) -> Option<usize> {
        self.files.get(file).copied()
    }
}

pub(super) fn check_links(facts: &WikiFacts<'_>) -> Vec<WikiFinding> {
    let names = PageNames::new(facts.pages);
    let (mut found, mut reached) = (Vec::new(), BTreeSet::new());
    for (at, page) in facts.pages.iter().enumerate() {
        let severity = find_severity(facts.manifest, LintKind::BrokenRef, page, Severity::Error);
        for link in &page.body.links {
            let line = Some(page.line_in_file(link.line));
            let (target, shown) = match &link.target {
                LinkTarget::Name(name) => (names.find(name), format!("[[{name}]]")),
                LinkTarget::Path(path) => {
                    let file = resolve_path(&page.file, path);
                    if file.as_deref().is_some_and(is_source) {
                        let problem = format!("a link into {SOURCES_FOLDER}/: {path}");
                        let fix = "cite the source with a footnote and in `sources`";
                        let code = FindingCode::LinkInlineToSource;
                        found.push(WikiFinding::new(code, Severity::Warn, &page.file, &problem, fix).at_line(line));
                        continue;
                    }
                    let by_file = file.as_deref().and_then(|file| names.find_file(file));
                    (by_file.or_else(|| names.find(path)), path.clone())
                }
            };
            match target {
                Some(target) if target != at => drop(reached.insert(target)),
                Some(_) => {}
                None => {
                    let problem = format!("{shown} leads to no page");
                    let fix = "name the slug or the title of one page, or remove the link";
                    let finding = WikiFinding::new(FindingCode::BrokenRef, severity, &page.file, &problem, fix);
                    found.push(finding.at_line(line));
                }
            }
        }
        for (field, slug) in &page.references {
            match names.find(slug) {
                Some(target) if target != at => drop(reached.insert(target)),
                Some(_) => {}
                None => {
                    let problem = format!("there is no page `{slug}`");
                    let fix = "name the slug of a page, or remove it";
                    found.push(report(page, FindingCode::BrokenRef, severity, field, &problem, fix));
                }
            }
        }
    }
    found.extend(find_unreached(facts, &names, &reached));
    found
}

/// Pages that no other page links to: orphans if the index does not list them either.
fn find_unreached(facts: &WikiFacts<'_>, names: &PageNames<'_>, reached: &BTreeSet<usize>) -> Vec<WikiFinding> {
    let listed: BTreeSet<usize> =
        index_page::list_slugs(facts.index.unwrap_or_default()).filter_map(|slug| names.find(slug)).collect();
    let home = facts.manifest.find_text(&["display", "homePage"]);
    let is_entrance = |page: &WikiPage| page.kind == "overview" || home == Some(&page.slug);
    let unreached = facts.pages.iter().enumerate().filter(|(at, page)| !reached.contains(at) && !is_entrance(page));
    unreached
        .map(|(at, page)| {
            if listed.contains(&at) {
                let (problem, fix) = (format!("only {INDEX_FILE} links to it"), "link it from a page that is about it");
                return WikiFinding::new(FindingCode::Unlinked, Severity::Info, &page.file, &problem, fix);
            }
            let severity = find_severity(facts.manifest, LintKind::Orphan, page, Severity::Warn);
            let problem = format!("no page and no line of {INDEX_FILE} links to it");
            let fix = "link it from a page that is about it";
            WikiFinding::new(FindingCode::Orphan, severity, &page.file, &problem, fix)
        })
        .collect()
}

fn is_source(file: &str) -> bool {
    file.split('/').next() == Some(SOURCES_FOLDER)
}

/// The file that a relative path names from a page; `None` if it leads out of the wiki.
fn resolve_path(page: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
