//! Each finding by its cause alone, in a wiki in which nothing else is wrong.

use super::*;
use crate::record::frontmatter::read_document;
use crate::wiki::manifest::{ManifestLayer, merge_manifests};
use crate::wiki::page::read_page;

const MANIFEST: &str = "title: W\nentityTypes: [{name: Entity}, {name: Deal, fields: [stage]}]\n\
    lints:\n  - {id: cited, kind: require-source, appliesTo: Concept, severity: error}\n  - {id: fresh, kind: max-age, appliesTo: \"*\", severity: warn, params: {days: 30}}\n  - {id: sure, kind: min-confidence, appliesTo: Entity, severity: info, params: {min: 0.4}}\n";

/// A wiki of two pages that link each other and rest on one source.
struct Wiki {
    manifest: String,
    pages: Vec<(&'static str, String)>,
    sources: BTreeMap<String, WikiSource>,
    hashes: BTreeMap<String, Option<String>>,
    index: Option<String>,
    log: &'static str,
    guide: Option<String>,
}

fn page(slug: &str, kind: &str, more: &str, body: &str) -> String {
    format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: {kind}\ntitle: Of {slug}\nupdated_at: \"2026-11-22T09:15:04Z\"\n{more}---\n{body}\n"
    )
}

impl Wiki {
    fn new() -> Self {
        let source = WikiSource {
            id: "lease".into(),
            path: "sources/lease.md".into(),
            title: "The lease".into(),
            captured_at: Some("2026-11-01T00:00:00Z".parse().unwrap()),
            content_hash: "sha256:55a2".into(),
            text_file: None,
            superseded_by: None,
        };
        Self {
            manifest: MANIFEST.into(),
            pages: vec![
                ("entities/plot.md", page("plot", "entity", "sources: [lease]\n", "The plot has [[water]].")),
                ("concepts/water.md", page("water", "concept", "sources: [lease]\n", "Water for [[plot|the plot]].")),
            ],
            hashes: [("sources/lease.md".to_owned(), Some("sha256:55A2".to_owned()))].into(),
            sources: [("lease".to_owned(), source)].into(),
            index: None,
            log: "# Log\n",
            guide: None,
        }
    }

    fn with_page(mut self, file: &'static str, text: String) -> Self {
        self.pages.retain(|(known, _)| *known != file);
        self.pages.push((file, text));
        self
    }

    /// The findings as `file:line code severity`, without that of a missing index.
    fn lint(&self) -> Vec<String> {
        let document = read_document(format!("---\n{}---\n", self.manifest).as_bytes()).unwrap();
        let (manifest, _) = merge_manifests(&[ManifestLayer { file: "KNOWLEDGE.md".into(), document }]);
        let pages: Vec<WikiPage> =
            self.pages.iter().filter_map(|(file, text)| read_page(file, text.as_bytes()).page).collect();
        let rendered = index_page::render_index(&manifest, &pages);
        let facts = WikiFacts {
            manifest: &manifest,
            pages: &pages,
            sources: &self.sources,
            source_hashes: &self.hashes,
            files: &self.pages.iter().map(|(file, _)| (*file).to_owned()).chain(["notes.md".to_owned()]).collect(),
            has_registry: true,
            impacts: &std::collections::BTreeMap::new(),
            index: Some(self.index.as_ref().unwrap_or(&rendered)),
            log: Some(self.log),
            guide: self.guide.as_deref(),
            now: "2026-11-22T00:00:00Z".parse().unwrap(),
        };
        let show = |f: &WikiFinding| format!("{}:{} {} {}", f.file, f.line.unwrap_or(0), f.code, f.severity);
        lint_wiki(&facts).iter().map(show).collect()
    }
}

#[test]
fn nothing_is_found_in_a_wiki_in_order() {
    assert_eq!(Wiki::new().lint(), Vec::<String>::new());
}

#[test]
fn links_that_lead_nowhere_or_into_sources_are_found_by_line() {
    let body = "[[water]] [[Of water]] [[gone]] [w](../concepts/water.md#a) [x](../concepts/gone.md)\n\n\
        [raw](../sources/lease.md) [old](../raw/lease.md) [n](../notes.md) [pic](../images/sources/map.png) [y](../nowhere/water.md)";
    let wiki = Wiki::new().with_page(
        "entities/plot.md",
        page("plot", "entity", "sources: [lease]\nsupersedes: [old-plot, water]\n", body),
    );
    let expected = [
        "entities/plot.md:8 broken_ref error",
        "entities/plot.md:10 broken_ref error",
        "entities/plot.md:10 broken_ref error",
        "entities/plot.md:12 broken_ref error",
        "entities/plot.md:12 link_inline_to_source warn",
        "entities/plot.md:12 link_inline_to_source warn",
    ];
    assert_eq!(wiki.lint(), expected);
    let softer = Wiki {
        manifest: format!("{MANIFEST}  - {{id: refs, kind: broken-ref, appliesTo: Entity, severity: info}}\n"),
        ..wiki
    };
    assert_eq!(softer.lint()[0], "entities/plot.md:8 broken_ref info");
}

#[test]
fn a_page_that_nothing_leads_to_is_an_orphan_or_listed_alone() {
    let lonely = page("lonely", "entity", "sources: [lease]\n", "Nobody links here; [[plot]].");
    let wiki = Wiki::new().with_page("entities/lonely.md", lonely);
    assert_eq!(wiki.lint(), ["entities/lonely.md:0 unlinked info"]);
    let unlisted = Wiki { index: Some("# Index: W\n".into()), ..wiki };
    assert_eq!(unlisted.lint(), ["_index.md:2 index_stale warn", "entities/lonely.md:0 orphan warn"]);
}

#[test]
fn the_lints_of_the_manifest_hold_for_their_kind() {
    let unsourced = Wiki::new().with_page("concepts/water.md", page("water", "concept", "", "[[plot]]"));
    assert_eq!(unsourced.lint(), ["concepts/water.md:1 require_source error"]);
    let unsure = Wiki::new()
        .with_page("entities/plot.md", page("plot", "entity", "sources: [lease]\nconfidence: 0.3\n", "[[water]]"));
    assert_eq!(unsure.lint(), ["entities/plot.md:8 min_confidence info"]);
    let mut old = Wiki::new();
    old.sources.get_mut("lease").unwrap().captured_at = Some("2026-10-01T00:00:00Z".parse().unwrap());
    assert_eq!(old.lint(), ["concepts/water.md:7 stale warn", "entities/plot.md:7 stale warn"]);
    let confirmed = "sources: [lease]\nmetadata: {steward: {confirmed_at: \"2026-11-20T00:00:00Z\"}}\n";
    old.pages[0].1 = page("plot", "entity", confirmed, "The plot has [[water]].");
    assert_eq!(old.lint(), ["concepts/water.md:7 stale warn"]);
    let custom = Wiki {
        manifest: format!("{MANIFEST}  - {{id: style, kind: custom, appliesTo: \"*\", severity: error}}\n"),
        ..Wiki::new()
    };
    assert_eq!(custom.lint(), ["KNOWLEDGE.md:0 lint_unknown info"]);
    for never in [
        "kind: max-age, appliesTo: \"*\"",
        "kind: min-confidence, appliesTo: \"*\", params: {min: \"0.5\"}",
        "kind: orphan, appliesTo: Concpt",
    ] {
        let wiki = Wiki { manifest: format!("{MANIFEST}  - {{id: never, {never}, severity: error}}\n"), ..Wiki::new() };
        assert_eq!(wiki.lint(), ["KNOWLEDGE.md:0 lint_unknown info"], "{never}");
    }
    let all = format!("{MANIFEST}  - {{id: all, kind: require-source, appliesTo: \"*\", severity: error}}\n");
    let exempt = Wiki { manifest: all, ..Wiki::new() }.with_page("lint/a.md", page("a", "lint", "", "[[plot]]"));
    assert_eq!(exempt.lint(), ["lint/a.md:0 unlinked info"]);
}

#[test]
fn sources_that_changed_or_are_gone_are_found() {
    let changed =
        Wiki { hashes: [("sources/lease.md".to_owned(), Some("sha256:66".to_owned()))].into(), ..Wiki::new() };
    assert_eq!(changed.lint(), ["sources/lease.md:0 source_mutated error"]);
    let gone = Wiki { hashes: [("sources/lease.md".to_owned(), None)].into(), ..Wiki::new() };
    assert_eq!(gone.lint(), ["sources/lease.md:0 source_missing error"]);
    let unknown =
        Wiki::new().with_page("entities/plot.md", page("plot", "entity", "sources: [lease, letter]\n", "[[water]]"));
    assert_eq!(unknown.lint(), ["entities/plot.md:7 source_missing error"]);
    let mut replaced = Wiki::new();
    let letter = WikiSource { id: "letter".into(), ..replaced.sources["lease"].clone() };
    replaced.sources.get_mut("lease").unwrap().superseded_by = Some("letter".into());
    replaced.sources.insert("letter".into(), letter);
    replaced.pages[0].1 = page("plot", "entity", "sources: [lease, letter]\n", "The plot has [[water]].");
    assert_eq!(replaced.lint(), ["concepts/water.md:7 source_superseded info"]);
    let summary = page("summary-lease", "summary", "sources: [lease]\n", "[[plot]] [[water]]");
    let mut replaced = replaced.with_page("summaries/summary-lease.md", summary);
    let unlinked = "summaries/summary-lease.md:0 unlinked info";
    let expected = ["concepts/water.md:7 source_superseded info", unlinked];
    assert_eq!(replaced.lint(), expected, "a summary says what its source says");
    let confirmed = "sources: [lease]\nmetadata: {steward: {confirmed_at: \"2026-11-20T00:00:00Z\"}}\n";
    replaced.pages[1].1 = page("water", "concept", confirmed, "Water for [[plot|the plot]].");
    assert_eq!(replaced.lint(), [unlinked], "it was compared since");
}

#[test]
fn an_archive_is_told_from_pages_that_must_follow_their_sources() {
    let archive = page("old-answer", "archive", "sources: [lease]\n", "It was so. [[plot]]");
    let mut wiki = Wiki::new().with_page("archives/old-answer.md", archive);
    let unlinked = "archives/old-answer.md:0 unlinked info";
    assert_eq!(wiki.lint(), [unlinked]);
    let updated = "archives/old-answer.md:7 archive_source_updated info";
    wiki.hashes = [("sources/lease.md".to_owned(), Some("sha256:66".to_owned()))].into();
    assert_eq!(wiki.lint(), [unlinked, updated, "sources/lease.md:0 source_mutated error"]);
    wiki.hashes = Wiki::new().hashes;
    let letter = WikiSource { id: "letter".into(), ..wiki.sources["lease"].clone() };
    wiki.sources.get_mut("lease").unwrap().superseded_by = Some("letter".into());
    wiki.sources.insert("letter".into(), letter);
    let superseded = ["concepts/water.md:7 source_superseded info", "entities/plot.md:7 source_superseded info"];
    assert_eq!(wiki.lint(), [unlinked, updated, superseded[0], superseded[1]]);
}

#[test]
fn names_that_two_pages_share_are_found() {
    let twin =
        Wiki::new().with_page("entities/twin.md", page("Plot", "entity", "sources: [lease]\n", "[[plot]] [[water]]"));
    assert!(twin.lint().contains(&"entities/twin.md:3 duplicate_id error".to_owned()), "{:?}", twin.lint());
    let text = page("tap", "entity", "sources: [lease]\nmetadata: {steward: {aliases: [of PLOT]}}\n", "[[plot]]");
    let alias = Wiki::new().with_page("entities/tap.md", text);
    assert!(alias.lint().contains(&"entities/tap.md:5 duplicate_title warn".to_owned()), "{:?}", alias.lint());
}

#[test]
fn a_contradiction_is_open_until_it_is_settled_and_marked_as_a_whole() {
    let sources = "sources: [lease]\n";
    let callout = "[[water]]\n\n> ⚠️ Contradiction: a vs b (lease)\n";
    let alone = Wiki::new().with_page("entities/plot.md", page("plot", "entity", sources, callout));
    assert_eq!(alone.lint(), ["entities/plot.md:11 hedge_incomplete warn"]);
    let whole = page(
        "plot",
        "entity",
        &format!("{sources}contradicts: [water]\n"),
        &format!("::: disputed\n{callout}\nA.\n:::\n"),
    );
    assert_eq!(
        Wiki::new().with_page("entities/plot.md", whole).lint(),
        ["entities/plot.md:8 unresolved_contradiction warn"]
    );
}

#[test]
fn kinds_folders_and_fields_follow_the_manifest() {
    let deal = page("deal", "deal", "sources: [lease]\n", "[[plot]]");
    let wiki = Wiki::new().with_page("entries/deal.md", deal);
    let expected =
        ["entries/deal.md:0 unlinked info", "entries/deal.md:1 field_missing warn", "entries/deal.md:4 path_hint warn"];
    assert_eq!(wiki.lint(), expected);
    let thing = Wiki::new().with_page("things/thing.md", page("thing", "thing", "sources: [lease]\n", "[[plot]]"));
    assert_eq!(thing.lint(), ["things/thing.md:0 unlinked info", "things/thing.md:4 kind_undeclared warn"]);
}

#[test]
fn a_log_and_a_guide_that_say_something_else_are_named_by_line() {
    let log = Wiki { log: "# Log\n\n## What happened\n", ..Wiki::new() };
    assert_eq!(log.lint(), ["_log.md:3 log_unreadable error"]);
    let text = "# Guide\n## Page conventions\n### Kinds\n- `person`: not declared\n## Ingest workflow\n- `anything`\n\
        ## Contradiction policy\nHere `recency` decides, unlike `defer`.\n## Lint rules\n- `cited`\n- `old`\n";
    let guide = Wiki { guide: Some(text.into()), ..Wiki::new() };
    let drift = |line: usize| format!("AGENTS.md:{line} wiki_schema_drift warn");
    assert_eq!(guide.lint(), [drift(4), drift(8), drift(11)]);
    let short = Wiki { guide: Some("## Page conventions\n## lint rules\n".into()), ..Wiki::new() };
    assert_eq!(short.lint(), [drift(0), drift(0)]);
}
