//! The index as the contract shows it, in its three groupings, and how a stale one is found.

use super::*;
use crate::wiki::manifest::{ManifestLayer, merge_manifests};
use crate::wiki::page::read_page;

fn page(kind: &str, slug: &str, title: &str, more: &str) -> WikiPage {
    let text = format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: {kind}\ntitle: \"{title}\"\nupdated_at: \"2026-11-22T09:15:04Z\"\n{more}---\n\nOf {slug}.\n"
    );
    read_page(&format!("{slug}.md"), text.as_bytes()).page.unwrap()
}

fn manifest(yaml: &str) -> EffectiveManifest {
    let text = format!("---\ntitle: The allotment\n{yaml}---\n");
    let document = crate::record::frontmatter::read_document(text.as_bytes()).unwrap();
    merge_manifests(&[ManifestLayer { file: "KNOWLEDGE.md".into(), document }]).0
}

fn pages() -> Vec<WikiPage> {
    let summary = "metadata: {steward: {summary: \"Plot 12, its lease and when that ends.\"}}\n";
    vec![
        page("summary", "summary-letter", "Letter", "tags: [allotment]\nsources: [letter]\n"),
        page("entity", "plot-12", "Plot 12", &format!("sources: [lease, letter]\ntags: [allotment]\n{summary}")),
        page("entity", "ann", "ann | [the] `owner`", ""),
    ]
}

#[test]
fn pages_stand_below_their_kind_in_the_order_of_the_manifest() {
    let text = render_index(&manifest("entityTypes: [{name: Summary}, {name: Concept}, {name: Entity}]\n"), &pages());
    let expected = "# Index: The allotment\n## Summaries\n- [[summary-letter|Letter]] `summary` — Of summary-letter.\n## Entities\n\
        - [[ann|ann \\| \\[the\\] \\`owner\\`]] `entity` — Of ann.\n- [[plot-12|Plot 12]] `entity` — Plot 12, its lease and when that ends.\n";
    assert_eq!(text, expected);
    // What is not declared follows by name.
    let headings: Vec<String> =
        render_index(&manifest(""), &pages()).lines().filter(|l| l.starts_with("## ")).map(str::to_owned).collect();
    assert_eq!(headings, ["## Entities", "## Summaries"]);
}

#[test]
fn pages_stand_below_their_first_tag_or_all_their_sources() {
    let headings = |grouping: &str| -> Vec<String> {
        let text = render_index(&manifest(&format!("display: {{defaultGrouping: {grouping}}}\n")), &pages());
        text.lines()
            .filter(|line| !line.starts_with("# "))
            .map(|line| line.split('|').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(headings("tag"), ["## allotment", "- [[summary-letter", "- [[plot-12", "## entity", "- [[ann"]);
    let by_source =
        ["## lease", "- [[plot-12", "## letter", "- [[summary-letter", "- [[plot-12", "## No source", "- [[ann"];
    assert_eq!(headings("source"), by_source);
}

#[test]
fn a_stale_index_is_named_by_its_first_wrong_line() {
    let (manifest, pages) = (manifest(""), pages());
    let right = render_index(&manifest, &pages);
    assert_eq!(check_index(&manifest, &pages, Some(&right)), None);
    assert_eq!(check_index(&manifest, &pages, None).unwrap().line, None);
    let finding = check_index(&manifest, &pages, Some(&right.replace("Plot 12]]", "Plot 13]]"))).unwrap();
    assert_eq!((finding.line, finding.severity), (Some(4), Severity::Warn));
    assert!(finding.fix.contains("[[plot-12|Plot 12]]"), "{finding}");
    let longer = check_index(&manifest, &pages, Some(&format!("{right}mine\n"))).unwrap();
    assert_eq!((longer.line, longer.fix.as_str()), (Some(7), "remove what follows"));
    for other in [right.replace('\n', "\r\n"), right.trim_end().to_owned()] {
        let finding = check_index(&manifest, &pages, Some(&other)).unwrap();
        assert!(finding.fix.contains("line feed"), "{finding}");
    }
    assert_eq!(list_slugs(&right).collect::<Vec<_>>(), ["ann", "plot-12", "summary-letter"]);
}
