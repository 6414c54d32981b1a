//! Pages of today, of an earlier draft and of a later version, and files that are no pages.

use super::*;

const PAGE: &str = "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: Plot 12\nsources: [lease]\nconfidence: 0.5\n\
    updated_at: \"2026-11-22T09:15:04Z\"\ncontradicts: [letter]\ntags: [allotment]\n\
    metadata: {steward: {summary: In short., aliases: [The plot]}, fields: {size: 3}}\n---\n# Plot 12\n\nThe lease ends. [[letter]]\n";

fn codes(read: &PageReading) -> Vec<FindingCode> {
    read.findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn a_page_of_the_standard_is_read_without_a_finding() {
    let read = read_page("entities/plot-12.md", PAGE.as_bytes());
    assert_eq!(read.findings, []);
    let page = read.page.unwrap();
    assert_eq!((page.slug.as_str(), page.kind.as_str(), page.title.as_str()), ("plot-12", "entity", "Plot 12"));
    assert_eq!(
        (page.sources.as_slice(), page.contradicts.as_slice()),
        (["lease".to_owned()].as_slice(), ["letter".to_owned()].as_slice())
    );
    assert_eq!((page.summary.as_str(), page.topic()), ("In short.", "allotment"));
    assert_eq!((page.aliases.as_slice(), page.has_declared_field("size")), (["The plot".to_owned()].as_slice(), true));
    assert_eq!(page.line_in_file(page.body.links[0].line), 15);
    assert_eq!(page.document.as_str(), PAGE);
}

#[test]
fn an_earlier_draft_is_read_with_warnings() {
    let text = "---\nschema: knowledge/v1\nslug: 2024-lease\ntype: concept\ntitle: Lease\nsources: [sources/2024-03-02 Lease.pdf, lease]\n\
        updated_at: \"2026-11-22T09:15:04Z\"\n---\nThe first sentence. The second.\n";
    let read = read_page("entries/concepts/2024-lease.md", text.as_bytes());
    use FindingCode::{LegacySchema, LegacyType, SlugDigitFirst, SourcePath};
    assert_eq!(codes(&read), [LegacySchema, LegacyType, SlugDigitFirst, SourcePath]);
    let lines: Vec<Option<usize>> = read.findings.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [Some(2), Some(4), Some(3), Some(6)]);
    assert!(read.findings.iter().all(|finding| finding.severity == Severity::Warn));
    let page = read.page.unwrap();
    assert_eq!(
        (page.kind.as_str(), page.sources.as_slice()),
        ("concept", ["2024-03-02-lease".to_owned(), "lease".to_owned()].as_slice())
    );
    assert_eq!(page.summary, "The first sentence.");
    let bad = read_page("a.md", text.replace("type: concept", "type: Bad Kind").as_bytes());
    let of_kind: Vec<Option<usize>> =
        bad.findings.iter().filter(|f| f.code == FindingCode::EntryInvalid).map(|f| f.line).collect();
    assert_eq!(of_kind, [Some(4)]);
}

#[test]
fn what_a_later_version_adds_is_kept_with_one_warning_each() {
    let text = PAGE.replace("title: Plot 12", "title: Plot 12\nrefs: [wiki:a/b]");
    let read = read_page("entities/plot-12.md", text.as_bytes());
    assert_eq!(codes(&read), [FindingCode::NewerThanSchema]);
    assert_eq!(read.page.unwrap().document.as_str(), text);
}

#[test]
fn an_invalid_page_is_named_by_line() {
    let text = PAGE.replace("0.5", "2").replace("kind: entity\n", "");
    let read = read_page("entities/plot-12.md", text.as_bytes());
    assert_eq!(codes(&read), [FindingCode::EntryInvalid, FindingCode::EntryInvalid]);
    assert_eq!(read.page, None, "without a kind there is no page");
    assert!(
        read.findings[1].to_string().starts_with("entities/plot-12.md:6: error entry_invalid at confidence: "),
        "{}",
        read.findings[1]
    );
}

#[test]
fn other_files_are_left_alone() {
    for text in
        ["# Notes\n", "---\ntitle: A\n---\n", "---\nschema: knowledge.source/v1\n---\n", "---\na: [\n---\n", "\u{0}"]
    {
        assert_eq!(read_page("notes.md", text.as_bytes()), PageReading::default(), "{text:?}");
    }
    // It would be a page.
    let read = read_page("a.md", b"---\nschema: knowledge.entry/v1\ntitle: [\n---\n");
    assert_eq!((read.page.is_none(), codes(&read)), (true, vec![FindingCode::EntryInvalid]));
    let json = read_page("a.md", b"---\n{\"schema\": \"knowledge.entry/v1\",\n---\n");
    assert_eq!((json.page.is_none(), codes(&json)), (true, vec![FindingCode::EntryInvalid]));
    for schema in ["knowledge.entry/v2", "knowledge.Entry/v1"] {
        let read = read_page("a.md", PAGE.replace("knowledge.entry/v1", schema).as_bytes());
        assert_eq!((read.page.is_none(), codes(&read)), (true, vec![FindingCode::NewerThanSchema]), "{schema}");
    }
}

#[test]
fn hidden_files_sources_and_accepted_files_are_no_pages() {
    for (file, may) in [
        ("entities/a.md", true),
        ("a.md", true),
        ("_index.md", false),
        ("_drafts/a.md", false),
        (".trash/a.md", false),
        ("sources/a.md", false),
        ("KNOWLEDGE.md", false),
        ("entities/a.txt", false),
    ] {
        assert_eq!(may_be_page(file), may, "{file}");
    }
}

#[test]
fn a_summary_is_cut_at_a_word() {
    let long = "word ".repeat(60);
    let cut = shorten(&long, MAX_SUMMARY);
    assert!(cut.ends_with("word…") && cut.chars().count() <= MAX_SUMMARY, "{cut}");
    assert_eq!(shorten("short", MAX_SUMMARY), "short");
    assert_eq!(shorten(&"é".repeat(200), 10), format!("{}…", "é".repeat(9)));
}

#[test]
fn the_head_of_a_file_says_what_its_page_says() {
    let pinned = PAGE.replace("steward: {", "steward: {pinned: true, ");
    let texts = [
        PAGE.to_owned(),
        pinned.clone(),
        PAGE.replace("knowledge.entry/v1", "knowledge/v1").replace("kind:", "type:"),
        PAGE.replace("tags: [allotment]\n", "").replace("T09:15:04Z", ""),
        PAGE.replace("knowledge.entry/v1", "knowledge.entry/v9"),
        PAGE.replace("title: Plot 12\n", ""),
        PAGE.replace("kind: entity\n", ""),
        PAGE.replace("title: Plot 12", "title: [Plot"),
        PAGE.replace("schema: knowledge.entry/v1\n", ""),
        "# No frontmatter\n".to_owned(),
        String::new(),
    ];
    let mut pages = 0;
    for text in texts {
        let (head, page) = (read_page_head(text.as_bytes()), read_page("a.md", text.as_bytes()).page);
        let updated_at = |page: &WikiPage| page.document.fields().get("updated_at")?.as_str()?.parse().ok();
        let expected = page.map(|page| PageHead {
            topic: page.topic().to_owned(),
            updated_at: updated_at(&page),
            is_pinned: page.is_pinned(),
            kind: page.kind.clone(),
            title: page.title.clone(),
        });
        pages += usize::from(expected.is_some());
        assert_eq!(head, expected, "{text}");
    }
    assert_eq!((pages, read_page_head(pinned.as_bytes()).unwrap().is_pinned), (4, true));
    assert_eq!(read_page_head(&[PAGE.as_bytes(), b"\xff"].concat()), None, "no text");
}
