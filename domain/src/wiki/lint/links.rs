//! Links: those that lead nowhere, those into `sources/`, and pages that nothing leads to.
//!
//! A link names a slug, a title or alias that one page alone has, or the path of a file. The folders of an earlier draft, `wiki/`
//! and `entries/`, count as the wiki's own, and `raw/` as `sources/`.

use super::page_names::PageNames;
use super::{LintContext, report};
use crate::wiki::finding::{FindingCode, Severity, WikiFinding};
use crate::wiki::manifest::LintKind;
use crate::wiki::page::{LINT_KIND, LinkTarget, PageLink, WikiPage};
use crate::wiki::registry::to_source_file;
use crate::wiki::{INDEX_FILE, SOURCES_FOLDER, index_page};
use std::collections::{BTreeMap, BTreeSet};

/// What a link leads to.
enum LinkEnd {
    Page(usize),
    /// A file that is there and is not a page.
    OtherFile,
    Source,
    Nothing,
}

pub(super) fn check_links(context: &LintContext<'_>) -> Vec<WikiFinding> {
    let (pages, names) = (context.facts.pages, PageNames::new(context.facts.pages));
    let (mut found, mut reached) = (Vec::new(), BTreeSet::new());
    for (at, page) in pages.iter().enumerate() {
        // A report shows the wiki of its day, and what it names is not in use because of that.
        let is_report = page.kind == LINT_KIND;
        let severity = context.find_severity(LintKind::BrokenRef, page, Severity::Error);
        let severity = if is_report { Severity::Info } else { severity };
        for link in &page.body.links {
            match find_end(context, &names, page, link) {
                LinkEnd::Page(_) if is_report => {}
                LinkEnd::Page(target) if target != at => drop(reached.insert(target)),
                LinkEnd::Page(_) | LinkEnd::OtherFile => {}
                LinkEnd::Source => {
                    let fix = "cite the source with a footnote and in `sources`";
                    found.push(report_link(
                        page,
                        link,
                        FindingCode::LinkInlineToSource,
                        Severity::Warn,
                        "leads into sources/",
                        fix,
                    ));
                }
                LinkEnd::Nothing => {
                    let fix = "name the slug or the title of one page, or a file that is there";
                    found.push(report_link(page, link, FindingCode::BrokenRef, severity, "leads to nothing", fix));
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
    found.extend(find_unreached(context, &names, &reached));
    found
}

/// The lines of a page's body, from 1, with the names of links on them that no page has.
#[must_use]
pub fn list_dangling_names(page: &WikiPage, pages: &[WikiPage]) -> Vec<(usize, String)> {
    let links = page.body.links.iter().filter_map(|link| match &link.target {
        LinkTarget::Name(name) => Some((link.line, name)),
        LinkTarget::Path(_) => None,
    });
    let links: Vec<(usize, &String)> = links.collect();
    let wanted: Vec<&str> = links.iter().map(|(_, name)| name.as_str()).collect();
    let names = PageNames::choose(pages, &wanted);
    let dangling = links.into_iter().filter(|(_, name)| names.find(name).is_none());
    dangling.map(|(line, name)| (line, name.clone())).collect()
}

/// For each page of `now` that would be missed: the file of a page that names it. A page is missed if a page of `after` names
/// it and no page of `after` has that name.
pub(in crate::wiki) fn map_missed_pages(now: &[WikiPage], after: &[WikiPage]) -> BTreeMap<String, String> {
    let (names_now, names_after) = (PageNames::new(now), PageNames::new(after));
    let find_name = |name: &str| if names_after.find(name).is_none() { names_now.find(name) } else { None };
    let find_file = |page: &WikiPage, path: &str| {
        let file = modernize_path(&resolve_path(&page.file, path)?);
        names_now.find_file(&file).filter(|_| names_after.find_file(&file).is_none())
    };
    let mut missed = BTreeMap::new();
    for page in after.iter().filter(|page| page.kind != LINT_KIND) {
        let rendered = list_rendered_lines(page);
        let by_link = page.body.links.iter().filter(|link| !rendered.contains(&link.line));
        let by_link = by_link.filter_map(|link| match &link.target {
            LinkTarget::Name(name) => find_name(name),
            LinkTarget::Path(path) => find_file(page, path),
        });
        let by_field = page.references.iter().filter_map(|(_, slug)| find_name(slug));
        for at in by_link.chain(by_field) {
            missed.entry(now[at].file.clone()).or_insert_with(|| page.file.clone());
        }
    }
    missed
}

/// The lines of a body that code renders, between its marks.
fn list_rendered_lines(page: &WikiPage) -> BTreeSet<usize> {
    let mut is_rendered = false;
    let lines = page.document.body().lines().enumerate();
    let rendered = lines.filter(|(_, line)| {
        let was_rendered = is_rendered;
        match line.trim() {
            "<!-- steward -->" => is_rendered = true,
            "<!-- /steward -->" => is_rendered = false,
            _ => {}
        }
        was_rendered
    });
    rendered.map(|(at, _)| at + 1).collect()
}

/// The path of a file of an earlier draft as it is called now.
pub(in crate::wiki) fn modernize_path(file: &str) -> String {
    to_source_file(["wiki/", "entries/"].iter().find_map(|old| file.strip_prefix(old)).unwrap_or(file))
}

fn report_link(
    page: &WikiPage,
    link: &PageLink,
    code: FindingCode,
    severity: Severity,
    problem: &str,
    fix: &str,
) -> WikiFinding {
    let shown = match &link.target {
        LinkTarget::Name(name) => format!("[[{name}]]"),
        LinkTarget::Path(path) => path.clone(),
    };
    let finding = WikiFinding::new(code, severity, &page.file, &format!("{shown} {problem}"), fix);
    finding.with_line(Some(page.line_in_file(link.line)))
}

fn find_end(context: &LintContext<'_>, names: &PageNames<'_>, page: &WikiPage, link: &PageLink) -> LinkEnd {
    let path = match &link.target {
        LinkTarget::Name(name) => return names.find(name).map_or(LinkEnd::Nothing, LinkEnd::Page),
        LinkTarget::Path(path) => path,
    };
    // What leads out of the wiki is not its business, and may be there.
    let Some(file) = resolve_path(&page.file, path) else { return LinkEnd::OtherFile };
    let file = modernize_path(&file);
    if file.split('/').next() == Some(SOURCES_FOLDER) {
        return LinkEnd::Source;
    }
    match names.find_file(&file) {
        Some(target) => LinkEnd::Page(target),
        // Pictures and other files are not listed.
        None if context.facts.files.contains(&file) || !file.to_ascii_lowercase().ends_with(".md") => {
            LinkEnd::OtherFile
        }
        None => LinkEnd::Nothing,
    }
}

/// Pages that no other page links to: orphans if the index does not list them either.
fn find_unreached(context: &LintContext<'_>, names: &PageNames<'_>, reached: &BTreeSet<usize>) -> Vec<WikiFinding> {
    let facts = context.facts;
    let listed: BTreeSet<usize> =
        index_page::list_slugs(facts.index.unwrap_or_default()).filter_map(|slug| names.find(slug)).collect();
    let home = facts.manifest.find_text(&["display", "homePage"]);
    let is_entrance = |page: &WikiPage| page.kind == "overview" || home == Some(&page.slug);
    let unreached = facts.pages.iter().enumerate().filter(|(at, page)| !reached.contains(at) && !is_entrance(page));
    let fix = "link it from a page that is about it";
    unreached
        .map(|(at, page)| {
            if listed.contains(&at) {
                let problem = format!("only {INDEX_FILE} links to it");
                return WikiFinding::new(FindingCode::Unlinked, Severity::Info, &page.file, &problem, fix);
            }
            let severity = context.find_severity(LintKind::Orphan, page, Severity::Warn);
            let problem = format!("no page and no line of {INDEX_FILE} links to it");
            WikiFinding::new(FindingCode::Orphan, severity, &page.file, &problem, fix)
        })
        .collect()
}

/// The file that a relative path names from a page; `None` if it leads out of the wiki.
pub(super) fn resolve_path(page: &str, path: &str) -> Option<String> {
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
