use super::*;
use proptest::prelude::*;

fn page(before: Option<&str>, after: Option<&str>) -> WikiDetails {
    WikiDetails { files: vec![FileRecord::of_page("entities/a.md", before, after)], claims: Vec::new() }
}

#[test]
fn details_read_back_and_links_stay_in_their_blocks() {
    let hash = || Some(ContentHash::hash_bytes(b"x"));
    let details = WikiDetails {
        files: vec![
            FileRecord { file: "sources/a.md".into(), before: None, after: hash(), content: RecordedContent::Hashes },
            FileRecord::of_page("entities/a.md", None, Some("# A\n\n````md\n```\n[[b]]\n```\n````\n")),
            FileRecord::of_page("entities/old.md", Some("no newline at the end"), None),
            FileRecord {
                file: "_log.md".into(),
                before: hash(),
                after: hash(),
                content: RecordedContent::Entry("\n## [x] manual | a\n- b\n".into()),
            },
            FileRecord::of_accepted("KNOWLEDGE.md", "---\na: 1\n---\n```\nno line break"),
            FileRecord::of_accepted("AGENTS.md", ""),
        ],
        claims: vec![
            ClaimRecord {
                claim: "a#c6107d23f".into(),
                change: ClaimChange::Asserted,
                statement_sha256: ContentHash::hash_bytes(b"x"),
                anchors: vec![AnchorRecord {
                    label: "c6107d23f".into(),
                    source: "lease".into(),
                    offset: 25,
                    length: 58,
                    quote_sha256: ContentHash::hash_bytes(b"y"),
                }],
            },
            ClaimRecord {
                claim: "a#c6107d23f~2".into(),
                change: ClaimChange::Removed,
                statement_sha256: ContentHash::hash_bytes(b"z"),
                anchors: Vec::new(),
            },
        ],
    };
    let text = details.render();
    assert_eq!(WikiDetails::parse(&format!("Evidence.\n\nReasoning.\n{text}")), Ok(details));
    let outside: Vec<&str> = pulldown_cmark::Parser::new(&text)
        .filter_map(|event| match event {
            pulldown_cmark::Event::Start(pulldown_cmark::Tag::Heading { .. }) => Some("heading"),
            pulldown_cmark::Event::Start(pulldown_cmark::Tag::Link { .. }) => Some("link"),
            _ => None,
        })
        .collect();
    assert_eq!(outside, ["heading", "heading"], "{text}");
}

#[test]
fn an_edited_record_is_found_by_its_hashes() {
    let text = page(Some("one\ntwo\n"), Some("one\n2\n")).render();
    for (old, new) in
        [("\n one", "\n ONE"), ("+2", "+3"), ("-two", "-three"), ("```jsonl", "```json"), ("```diff", "```")]
    {
        let edited = text.replace(old, new);
        assert_ne!(edited, text);
        assert!(WikiDetails::parse(&edited).is_err(), "{old}");
    }
}

proptest! {
    #[test]
    fn every_pair_of_pages_reads_back(
        before in prop::option::of("(([a-c`+@\\\\ -]{0,4}|```|~~~|## Files|\\[\\[a\\]\\])(\n|\r\n)?){0,8}"),
        after in prop::option::of("(([a-c`+@\\\\ -]{0,4}|```|~~~|## Files|\\[\\[a\\]\\])(\n|\r\n)?){0,8}"),
    ) {
        prop_assume!(before.as_deref().unwrap_or_default() != after.as_deref().unwrap_or_default());
        let details = page(before.as_deref(), after.as_deref());
        let text = details.render();
        prop_assert_eq!(WikiDetails::parse(&text), Ok(details), "{}", text);
    }
}
