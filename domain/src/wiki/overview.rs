//! Renders `overview.md`: what there is, what changed, what is contested, and the best-founded pages.
//!
//! Each section that code renders stands between two marks. What stands outside of them belongs to people. A section whose
//! marks somebody removed stays as it is. All sections together have about 600 tokens at most.

use super::index_page::escape;
use super::log::{LogEntry, LogType};
use super::manifest::EffectiveManifest;
use super::page::{WikiPage, shorten};
use super::page_text::{AnchoredText, NewPage};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// Its slug and its kind.
pub const OVERVIEW: &str = "overview";
/// The lines around a section that code renders.
const CONTESTED: &str = "Contested claims";
const OPEN: &str = "<!-- steward -->";
const CLOSE: &str = "<!-- /steward -->";
/// The most lines of the sections.
const MAX_UPDATES: usize = 5;
const MAX_CONTESTED: usize = 5;
const MAX_FINDINGS: usize = 3;
const MAX_KINDS: usize = 12;
/// The most characters of a text in a line.
const MAX_TEXT: usize = 110;

/// What an overview shows.
#[derive(Clone, Debug)]
pub struct OverviewFacts<'a> {
    pub manifest: &'a EffectiveManifest,
    /// All pages. The overview among them is not counted.
    pub pages: &'a [WikiPage],
    /// In the order of the log.
    pub entries: &'a [LogEntry],
    /// The number of registered sources.
    pub sources: usize,
}

/// Renders the overview, in which `current` is what stands there.
#[must_use]
pub fn render_overview(facts: &OverviewFacts<'_>, current: Option<&str>, at: DateTime<Utc>) -> String {
    let sections = render_sections(facts);
    match current {
        Some(current) => sections.iter().fold(current.to_owned(), |text, section| place_section(&text, section)),
        None => {
            let title = facts.manifest.find_text(&["title"]).unwrap_or("Wiki");
            let mut body = AnchoredText::default();
            body.add_paragraph(&format!("# {}", escape(title)));
            for section in &sections {
                body.text.push_str(&format!("\n{OPEN}\n{section}{CLOSE}\n"));
            }
            let page = NewPage {
                slug: OVERVIEW.to_owned(),
                kind: OVERVIEW.to_owned(),
                title: format!("{title}: overview"),
                sources: Vec::new(),
                confidence: 1.0,
                updated_at: at,
                summary: "What there is, what changed, and what is contested.".to_owned(),
                tags: Vec::new(),
                aliases: Vec::new(),
            };
            page.render(&body)
        }
    }
}

/// The sections, each with its heading and with a line break at its end.
fn render_sections(facts: &OverviewFacts<'_>) -> [String; 4] {
    let pages: Vec<&WikiPage> = facts.pages.iter().filter(|page| page.kind != OVERVIEW).collect();
    [count_pages(&pages, facts.sources), list_updates(facts.entries), list_contested(&pages), list_findings(&pages)]
}

fn section(heading: &str, lines: Vec<String>, empty: &str) -> String {
    let lines: String = lines.iter().map(|line| format!("- {line}\n")).collect();
    format!("## {heading}\n\n{}", if lines.is_empty() { format!("{empty}\n") } else { lines })
}

fn link(page: &WikiPage) -> String {
    format!("[[{}|{}]]", escape(&page.slug), shorten(&escape(&page.title), MAX_TEXT))
}

fn count_pages(pages: &[&WikiPage], sources: usize) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for page in pages {
        *kinds.entry(&page.kind).or_default() += 1;
    }
    let mut kinds: Vec<(&str, usize)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown: Vec<String> =
        kinds.iter().take(MAX_KINDS).map(|(kind, count)| format!("{count} {}", escape(kind))).collect();
    let all = match shown.as_slice() {
        [] => "pages: none".to_owned(),
        shown => format!("pages: {} ({})", pages.len(), shown.join(", ")),
    };
    section("Counts", vec![all, format!("sources: {sources}")], "")
}

fn list_updates(entries: &[LogEntry]) -> String {
    // A run that was taken back leaves no trace here, unless that was taken back in turn.
    let mut reverted: BTreeSet<&str> = BTreeSet::new();
    for (run, reverts) in entries.iter().rev().filter_map(read_run_bullet) {
        reverted.extend(reverts.filter(|_| !reverted.contains(run)));
    }
    // A source that was added has an entry of its own when it becomes pages.
    let is_addition = |entry: &LogEntry| {
        entry.bullets.iter().any(|bullet| bullet.starts_with("source: ")) && entry.log_type == Some(LogType::Manual)
    };
    let stands = |entry: &&LogEntry| match read_run_bullet(entry) {
        _ if is_addition(entry) => false,
        Some((run, reverts)) => reverts.is_none() && !reverted.contains(run),
        None => true,
    };
    let newest = entries.iter().rev().filter(|entry| entry.log_type.is_some()).filter(stands).take(MAX_UPDATES);
    let lines = newest.map(|entry| {
        let log_type = entry.log_type.map_or_else(String::new, |it| it.to_string());
        // The subject of an entry is escaped already.
        format!("{} {log_type}: {}", entry.at.format("%Y-%m-%d"), shorten(&entry.subject, MAX_TEXT))
    });
    section("Recent updates", lines.collect(), "Nothing yet.")
}

/// The run of an entry, and the one that it took back.
fn read_run_bullet(entry: &LogEntry) -> Option<(&str, Option<&str>)> {
    let rest = entry.bullets.iter().find_map(|bullet| bullet.strip_prefix("run: "))?;
    let (run, rest) = rest.split_once(", ").unwrap_or((rest, ""));
    Some((run, rest.strip_prefix("takes back: ")))
}

fn list_contested(pages: &[&WikiPage]) -> String {
    let contested = pages.iter().filter(|page| !page.contradicts.is_empty() || !page.body.disputed.is_empty());
    let lines = contested.take(MAX_CONTESTED).map(|page| {
        let others: Vec<String> = page.contradicts.iter().take(3).map(|slug| format!("[[{}]]", escape(slug))).collect();
        if others.is_empty() { link(page) } else { format!("{} against {}", link(page), others.join(", ")) }
    });
    section(CONTESTED, lines.collect(), "None is marked.")
}

/// The pages with the most sources.
fn list_findings(pages: &[&WikiPage]) -> String {
    let mut founded: Vec<&WikiPage> = pages.iter().copied().filter(|page| !page.summary.is_empty()).collect();
    founded.sort_by(|a, b| b.sources.len().cmp(&a.sources.len()).then_with(|| a.slug.cmp(&b.slug)));
    let lines = founded.iter().take(MAX_FINDINGS).map(|page| {
        let summary = shorten(&escape(&page.summary), MAX_TEXT);
        format!("{}: {summary}", link(page))
    });
    section("Key findings", lines.collect(), "Nothing yet.")
}

/// Puts a section in the place of the one with its heading. Without one it goes to the end, unless somebody took it over.
fn place_section(text: &str, section: &str) -> String {
    let heading = section.lines().next().unwrap_or_default();
    let mut from = 0;
    while let Some(begin) = text[from..].find(OPEN).map(|at| from + at + OPEN.len()) {
        let Some(end) = text[begin..].find(CLOSE).map(|at| begin + at) else { break };
        if text[begin..end].trim_start().lines().next().map(str::trim_end) == Some(heading) {
            return format!("{}\n{section}{}", &text[..begin], &text[end..]);
        }
        from = end + CLOSE.len();
    }
    if text.lines().any(|line| line.trim_end() == heading) {
        return text.to_owned();
    }
    let gap = if text.ends_with('\n') { "\n" } else { "\n\n" };
    format!("{text}{gap}{OPEN}\n{section}{CLOSE}\n")
}

/// Whether two overviews have the same words between the marks, so that code wrote what stands there.
#[must_use]
pub fn has_same_sections(current: &str, rendered: &str) -> bool {
    list_sections(current) == list_sections(rendered)
}

/// Whether both show the same disputes.
#[must_use]
pub fn has_same_disputes(current: &str, rendered: &str) -> bool {
    let find = |text| list_sections(text).into_iter().find(|section| section.contains(CONTESTED)).map(str::to_owned);
    // A section without its marks is a person's.
    find(current).is_none_or(|shown| Some(shown) == find(rendered))
}

fn list_sections(text: &str) -> Vec<&str> {
    let parts = text.split(OPEN).skip(1);
    parts.filter_map(|part| part.split_once(CLOSE).map(|(section, _)| section.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::page::read_page;
    use crate::wiki::standard::find_faults;

    fn page(slug: &str, extra: &str) -> WikiPage {
        let text = format!(
            "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: \"The {slug}\"\nupdated_at: \"2026-11-22T09:15:04Z\"\n{extra}---\nWords [of] it.\n"
        );
        read_page(&format!("entities/{slug}.md"), text.as_bytes()).page.unwrap()
    }

    fn render(pages: &[WikiPage], current: Option<&str>) -> String {
        let fields = [("title".to_owned(), "The allotment".into())].into_iter().collect();
        let manifest = EffectiveManifest::new(fields, BTreeMap::new());
        let log = crate::wiki::log::read_log("# Log\n\n## [2026-11-22T09:15:04Z] ingest | Letter\n");
        let facts = OverviewFacts { manifest: &manifest, pages, entries: &log.entries, sources: 2 };
        render_overview(&facts, current, "2026-11-23T09:15:04Z".parse().unwrap())
    }

    #[test]
    fn a_new_overview_is_a_valid_page() {
        let text = render(&[page("plot-12", "contradicts: [letter]\nsources: [a1, b2]\n"), page("water", "")], None);
        let read = read_page("overview.md", text.as_bytes());
        assert_eq!(read.findings, []);
        let read = read.page.unwrap();
        assert_eq!(find_faults(read.document.fields()), []);
        for line in [
            "- pages: 2 (2 entity)\n- sources: 2\n",
            "- 2026-11-22 ingest: Letter\n",
            "- [[plot-12|The plot-12]] against [[letter]]\n",
            "- [[plot-12|The plot-12]]: Words \\[of\\] it.\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert_eq!(
            render(&[page("plot-12", "contradicts: [letter]\nsources: [a1, b2]\n"), page("water", "")], Some(&text)),
            text
        );
    }

    #[test]
    fn what_people_wrote_outside_of_the_marks_stays() {
        let text = render(&[], None);
        assert!(text.contains("Nothing yet.") && text.contains("None is marked."));
        let mine = text.replace("# The allotment\n", "# The allotment\n\nMine.\n").replace(
            "<!-- steward -->\n## Key findings\n\nNothing yet.\n<!-- /steward -->\n",
            "## Key findings\n\nOnly one: it rains.\n",
        );
        let after = render(&[page("water", "")], Some(&mine));
        assert!(after.contains("\nMine.\n") && after.contains("Only one: it rains.\n"), "{after}");
        assert!(after.contains("- pages: 1 (1 entity)\n") && !after.contains("[[water|The water]]: "), "{after}");
        assert!(has_same_sections(&text, &text.replace("# The allotment\n", "# Ours\n")), "outside of the marks");
        assert!(!has_same_sections(&text, &text.replace("None is marked.", "Many.")));
        let without = "# Only mine";
        let windows = text.replace('\n', "\r\n");
        assert!(
            render(&[page("water", "")], Some(windows.trim_end())).contains("- pages: 1 (1 entity)\n"),
            "marks end a line"
        );
        let added = render(&[], Some(without));
        assert!(added.starts_with("# Only mine\n\n<!-- steward -->\n## Counts\n"), "{added}");
    }

    #[test]
    fn a_run_that_was_taken_back_leaves_no_trace() {
        let entry = |name: &str, bullet: &str| {
            let bullets = [bullet.to_owned()];
            crate::wiki::log::render_entry(DateTime::UNIX_EPOCH, crate::wiki::log::LogType::Manual, name, &bullets)
        };
        let first = format!("# Log\n{}", entry("Lease", "run: r-1, verdict: commit"));
        let later =
            format!("{first}{}{}", entry("Letter", "run: r-2"), entry("Took back r-2", "run: r-3, takes back: r-2"));
        let [before, after] = [first, later].map(|log| list_updates(&crate::wiki::log::read_log(&log).entries));
        assert_eq!(before, after);
        assert!(before.contains("Lease"));
    }

    #[test]
    fn it_stays_small_however_large_the_wiki_is() {
        let pages: Vec<WikiPage> = (0..500)
            .map(|n| page(&format!("a-page-with-a-long-name-{n}"), "contradicts: [a-page-with-a-long-name-1]\n"))
            .collect();
        let text = render(&pages, None);
        assert!(list_sections(&text).iter().map(|section| section.chars().count()).sum::<usize>() < 2_400);
    }
}
