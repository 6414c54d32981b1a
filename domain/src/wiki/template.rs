//! The files of a new wiki.
//!
//! They are a person's from then on: no run writes `KNOWLEDGE.md` or `AGENTS.md`.

use super::assemble::{GRAPH_HEADING, IDEAS_HEADING};
use super::log::{LogType, read_log, render_entry};
use super::manifest::EffectiveManifest;
use super::overview::{OverviewFacts, render_overview};
use super::page::{WikiPage, read_page};
use super::run::REJECTED_SUFFIX;
use super::standard::is_slug;
use super::{
    GRAPH_FILE, GUIDE_FILE, IDEAS_FILE, INDEX_FILE, LOG_FILE, MANIFEST_FILE, OVERVIEW_FILE, PROVENANCE_FILE,
    SOURCES_FILE, index_page,
};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// The headings of `AGENTS.md` (S2-06).
pub const GUIDE_SECTIONS: [&str; 4] = ["Page conventions", "Ingest workflow", "Contradiction policy", "Lint rules"];
/// The version of this contract, which a manifest pins.
pub const CONTRACT: u32 = 1;

/// A file of a new wiki.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    pub name: &'static str,
    pub text: String,
}

/// Why a wiki cannot have a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a name for a wiki: use 2 to 96 lower-case letters, digits and hyphens, begin with a letter, and do not end with `-rejected`"
)]
pub struct InvalidWikiName(String);

/// Renders the files of a new wiki. The manifest comes first.
///
/// # Errors
/// [`InvalidWikiName`].
pub fn render_wiki(name: &str, now: DateTime<Utc>) -> Result<Vec<NewFile>, InvalidWikiName> {
    // The records of runs that were not committed have names that end so.
    if !is_slug(name) || name.ends_with(REJECTED_SUFFIX) {
        return Err(InvalidWikiName(name.to_owned()));
    }
    let title = title_of_name(name);
    let manifest = render_manifest(name, &title);
    let empty = EffectiveManifest::new([("title".to_owned(), title.into())].into_iter().collect(), BTreeMap::new());
    let log = format!("# Log\n{}", render_entry(now, LogType::Manual, "A new wiki", &[]));
    let facts = OverviewFacts { manifest: &empty, pages: &[], entries: &read_log(&log).entries, sources: 0 };
    let overview = render_overview(&facts, None, now);
    let pages: Vec<WikiPage> = read_page(OVERVIEW_FILE, overview.as_bytes()).page.into_iter().collect();
    let texts = [
        (MANIFEST_FILE, manifest),
        (GUIDE_FILE, render_guide()),
        (INDEX_FILE, index_page::render_index(&empty, &pages)),
        (OVERVIEW_FILE, overview),
        (LOG_FILE, log),
        (IDEAS_FILE, IDEAS_HEADING.to_owned()),
        (GRAPH_FILE, GRAPH_HEADING.to_owned()),
        (SOURCES_FILE, "[]\n".to_owned()),
        (PROVENANCE_FILE, "{\"version\":1,\"hashAlgo\":\"sha256\",\"sources\":{}}\n".to_owned()),
    ];
    Ok(texts.into_iter().map(|(name, text)| NewFile { name, text }).collect())
}

/// The name as words, as in `The allotment` for `the-allotment`.
fn title_of_name(name: &str) -> String {
    let mut chars = name.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).map(|c| if c == '-' { ' ' } else { c }).collect()
}

fn render_manifest(name: &str, title: &str) -> String {
    format!(
        r#"---
schema: knowledge.workspace/v1
name: "{name}"
title: "{title}"
description: "What we know about {title}."
version: 1.0.0
entityTypes:
  - {{name: Entity, description: "A person, an organisation, a place or a thing"}}
  - {{name: Concept, description: "An idea that several sources speak of"}}
  - {{name: Summary, description: "What one source says"}}
  - {{name: Comparison, description: "Things side by side"}}
  - {{name: Timeline, description: "What happened when"}}
  - {{name: Connection, description: "How two pages are related"}}
  - {{name: Insight, description: "What follows from several sources"}}
  - {{name: Qa, description: "A question and its answer"}}
  - {{name: Archive, description: "An answer as it was on one day"}}
  - {{name: Lint, description: "What a check of the wiki found"}}
  - {{name: Overview, description: "What there is, in short"}}
lints:
  - {{id: cited, kind: require-source, appliesTo: Concept, severity: error}}
  - {{id: fresh, kind: max-age, appliesTo: "*", severity: warn, params: {{days: 365}}}}
sources: {{retention: forever, signing: optional, hashAlgo: sha256, authorityDefault: secondary}}
curation: {{tone: plain, depth: medium, autoLink: byName, conflictResolution: keep-both}}
display: {{homePage: overview, defaultGrouping: kind}}
metadata: {{steward: {{contract: {CONTRACT}}}}}
---
# {title}

## Purpose

Say what this wiki is for, and who reads it.

## Conventions

Every statement names its source. A name is written as the sources write it.

## When to extend vs replace

A view of this wiki is a `KNOWLEDGE.md` beside whoever uses it, with `extends`. Make a wiki of your own if your pages are of other
kinds.

## Examples

A page about a person, a place or a thing lies in `entities/`. Each of its statements ends in a footnote with the words of a source.
"#
    )
}

fn render_guide() -> String {
    "# How this wiki is written

KNOWLEDGE.md says the same for machines, and wins.

## Page conventions

- `entity`: a person, an organisation, a place or a thing. One page each, in `entities/`.
- `concept`: an idea that several sources speak of, in `concepts/`.
- `summary`: what one source says, in `summaries/`.

Every paragraph, list item and table row ends in a footnote with the words of a source.

## Ingest workflow

A new file in `sources/` becomes a summary. Pages that it speaks of are extended, and new ones made. `_index.md` and `_log.md`
follow by themselves. Nothing in `sources/` is ever changed.

## Contradiction policy

`keep-both`: where sources disagree, both statements stay, side by side in a `::: disputed` block, each with its source. Only a
person settles it.

## Lint rules

- `cited`: a concept has a source.
- `fresh`: the newest source of a page is at most a year old.
"
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::frontmatter::read_document;
    use crate::wiki::lint::{WikiFacts, lint_wiki};
    use crate::wiki::manifest::{ManifestLayer, merge_manifests};
    use crate::wiki::standard;
    use std::collections::BTreeSet;

    #[test]
    fn a_new_wiki_is_valid_and_nothing_is_found_in_it() {
        let now = "2026-11-22T09:15:04Z".parse().unwrap();
        let files: BTreeMap<&str, String> =
            render_wiki("the-allotment", now).unwrap().into_iter().map(|file| (file.name, file.text)).collect();
        let document = read_document(files[MANIFEST_FILE].as_bytes()).unwrap();
        assert_eq!(standard::find_faults(document.fields()), []);
        assert_eq!(document.fields()["title"], "The allotment");
        let (manifest, _) = merge_manifests(&[ManifestLayer { file: MANIFEST_FILE.into(), document }]);
        let facts = WikiFacts {
            manifest: &manifest,
            pages: &[read_page(OVERVIEW_FILE, files[OVERVIEW_FILE].as_bytes()).page.unwrap()],
            sources: &BTreeMap::new(),
            source_hashes: &BTreeMap::new(),
            files: &BTreeSet::new(),
            has_registry: true,
            impacts: &std::collections::BTreeMap::new(),
            index: Some(&files[INDEX_FILE]),
            log: Some(&files[LOG_FILE]),
            guide: Some(&files[GUIDE_FILE]),
            now,
        };
        assert_eq!(lint_wiki(&facts), []);
    }

    #[test]
    fn a_name_that_yaml_reads_as_another_value_stays_a_text() {
        for name in ["null", "true", "no", "on", "yes", "off"] {
            let files = render_wiki(name, DateTime::UNIX_EPOCH).unwrap();
            let document = read_document(files[0].text.as_bytes()).unwrap();
            assert_eq!(standard::find_faults(document.fields()), [], "{name}");
            assert!(files[0].text.contains(&format!("name: \"{name}\"")), "{name}");
        }
    }

    #[test]
    fn a_name_that_is_no_folder_is_refused() {
        for name in ["", "a", "../x", "Allotment", "a b", "-a", "a/b", "schreibtisch-ä", "plot-rejected"] {
            assert!(render_wiki(name, DateTime::UNIX_EPOCH).is_err(), "{name}");
        }
    }
}
