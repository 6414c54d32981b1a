use super::*;

#[test]
fn a_note_with_frontmatter_says_who_when_and_what() {
    let text = "---\nfrom: Ann\ndate: 2026-11-20\ntitle: Passport\n---\nIt came.\n";
    let found = parse_note(text.as_bytes(), "a.md").unwrap();
    assert_eq!(found.pattern, "note:ann");
    assert_eq!((found.subject.as_deref(), found.text.as_str()), (Some("Passport"), "It came.\n"));
    assert!(found.origin_at.is_some());
}

#[test]
fn a_note_without_frontmatter_is_named_by_its_heading_or_its_file() {
    let named = |text: &str| parse_note(text.as_bytes(), "Call with Bob.md").unwrap();
    assert_eq!(named("# The call\nHe paid.").subject.as_deref(), Some("The call"));
    assert_eq!(named("He paid.").subject.as_deref(), Some("Call with Bob"));
    assert_eq!(named("He paid.").pattern, "note:unknown");
}

#[test]
fn a_note_that_cannot_be_understood_is_refused_with_the_reason() {
    for (bytes, part) in [
        (b"---\nfrom: [x\n---\n".as_slice(), "failed to"),
        (b"---\nfrom: a\n", "failed to"),
        (b"---\ndate: soon\n---\nx", "soon"),
        (b"\xff\xfe", "UTF-8"),
    ] {
        let message = parse_note(bytes, "a.md").unwrap_err();
        assert!(message.contains(part), "{message}");
    }
}
