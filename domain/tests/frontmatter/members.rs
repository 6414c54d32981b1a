//! Sets of links: one member comes or goes, every other line stays.

use steward_domain::record::frontmatter::{FieldUndo, FrontmatterError, edit_member, read_document, undo_member};

fn record(field: &str) -> String {
    format!("---\ntype: task\n{field}owner: ann # me\n---\nbody\n")
}

fn edited(before: &str, member: &str, present: bool) -> (String, Vec<FieldUndo>) {
    let edited = edit_member(before.as_bytes(), "related_to", member, present).unwrap();
    (String::from_utf8(edited.bytes).unwrap(), edited.undo)
}

fn undone(now: &str, undo: &[FieldUndo]) -> String {
    String::from_utf8(undo_member(now.as_bytes(), &undo[0]).unwrap()).unwrap()
}

/// Field lines before, the member, and the field lines after it has come (or gone).
const COMES: [(&str, &str, &str); 7] = [
    (
        "related_to:\n  - \"[[Ann]]\" # first\n\n  # then\n  - Bob\n",
        "[[Eve]]",
        "related_to:\n  - \"[[Ann]]\" # first\n\n  # then\n  - Bob\n  - \"[[Eve]]\"\n",
    ),
    ("related_to:\n- Ann\n", "Eve", "related_to:\n- Ann\n- Eve\n"),
    ("related_to: [Ann,Bob ] # people\n", "Eve", "related_to: [Ann,Bob, Eve ] # people\n"),
    ("related_to: ['Ann']\n", "Eve", "related_to: ['Ann', 'Eve']\n"),
    ("related_to: []\n", "Eve", "related_to: [Eve]\n"),
    ("related_to:\n", "Eve", "related_to:\n  - Eve\n"),
    ("related_to: [[Ann]]\n", "Eve", "related_to: [[Ann], Eve]\n"),
];

#[test]
fn a_member_comes_and_only_the_lines_of_its_field_differ() {
    for (before, member, after) in COMES {
        let (now, undo) = edited(&record(before), member, true);
        assert_eq!(now, record(after));
        assert_eq!(undone(&now, &undo), record(before));
    }
}

#[test]
fn a_missing_field_is_added_and_goes_again() {
    let (now, undo) = edited(&record(""), "Eve", true);
    assert_eq!(now, "---\ntype: task\nowner: ann # me\nrelated_to:\n  - Eve\n---\nbody\n");
    assert_eq!(undone(&now, &undo), record(""));
}

#[test]
fn a_member_goes_and_comes_back_in_its_own_line() {
    for (before, member, after) in [
        (
            "related_to:\n  - Ann # first\n  - \"[[Eve]]\" # since May\n  - Bob\n",
            "Eve",
            "related_to:\n  - Ann # first\n  - Bob\n",
        ),
        ("related_to: [Ann, '[[Eve|E.]]', Bob]\n", "[[Eve]]", "related_to: [Ann, Bob]\n"),
        ("related_to: [Eve]\n", "Eve", "related_to: []\n"),
        ("related_to:\n  - Eve\n", "Eve", "related_to: []\n"),
        ("related_to: [[Eve]]\n", "Eve", "related_to: []\n"),
    ] {
        let (now, undo) = edited(&record(before), member, false);
        assert_eq!(now, record(after));
        assert_eq!(undone(&now, &undo), record(before));
    }
}

#[test]
fn who_is_there_already_or_not_there_changes_nothing() {
    for (field, member, present) in [
        ("related_to: [Eve]\n", "[[Eve]]", true),
        ("related_to: ['[[Eve|E.]]']\n", "Eve", true),
        ("related_to: [[Eve]]\n", "Eve", true),
        ("related_to: [Ann]\n", "Eve", false),
        ("related_to:\n", "Eve", false),
        ("", "Eve", false),
    ] {
        assert_eq!(edited(&record(field), member, present), (record(field), vec![]), "{field}");
    }
}

#[test]
fn what_a_human_did_to_the_others_stays() {
    let before = record("related_to:\n  - Ann\n  - Eve # since May\n  - Bob\n");
    let (now, undo) = edited(&before, "Eve", false);
    let human = now.replace("  - Bob\n", "  - Bob # mine\n  - Zoe\n").replace("  - Ann\n", "");
    assert_eq!(
        undone(&human, &undo),
        record("related_to:\n  - Eve # since May\n  - Bob # mine\n  - Zoe\n"),
        "back before the one it stood before, with its words"
    );
    let (now, undo) = edited(&record("related_to: [Ann]\n"), "Eve", true);
    let human = now.replace("[Ann, Eve]", "[Zoe, Eve, Bob]");
    assert_eq!(undone(&human, &undo), record("related_to: [Zoe, Bob]\n"));
    let by_hand = record("related_to: [Zoe]\n");
    assert_eq!(undone(&by_hand, &undo), by_hand, "a human took ours out already");
}

#[test]
fn changes_of_one_set_are_taken_back_in_any_order() {
    for field in ["", "related_to: []\n", "related_to: [Ann]\n", "related_to:\n  - Ann # 1\n"] {
        let before = record(field);
        let (one, first) = edited(&before, "Eve", true);
        let (two, second) = edited(&one, "Bob", true);
        assert_eq!(undone(&undone(&two, &first), &second), before, "{field}");
        assert_eq!(undone(&undone(&two, &second), &first), before, "{field}");
    }
}

#[test]
fn what_is_no_list_and_who_is_there_twice_is_refused() {
    let text = record("related_to: Ann\n");
    let error = edit_member(text.as_bytes(), "related_to", "Eve", true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "edit the field `related_to` in line 3: it is not a list; write one `- item` per line"
    );
    let twice = record("related_to: [Eve, '[[Eve]]']\n");
    let error = edit_member(twice.as_bytes(), "related_to", "Eve", false).unwrap_err();
    assert!(error.to_string().contains("more than once"), "{error}");
    let (_, undo) = edited(&record("related_to: [Ann]\n"), "Eve", true);
    let error = undo_member(text.as_bytes(), &undo[0]).unwrap_err();
    assert!(matches!(error, FrontmatterError::Conflict { .. }), "{error}");
}

#[test]
fn recorded_lines_that_move_no_member_are_refused() {
    let (now, undo) = edited(&record("related_to: [Ann]\n"), "Eve", true);
    for (before, after) in [
        ("related_to: [Ann]\n", "related_to: [Ann]\n"),
        ("related_to: [Ann]\n", "related_to: [Ann, Eve, Bob]\n"),
        ("related_to: [Ann]\n", "related_to: [Bob, Eve]\n"),
        ("related_to: Ann\n", "related_to: [Ann]\n"),
        ("owner: x\n", "related_to: [Ann]\n"),
        ("related_to: []\n", "related_to: [{a: 1}]\n"),
    ] {
        let forged = FieldUndo { lines_before: before.into(), lines_after: after.into(), ..undo[0].clone() };
        let error = undo_member(now.as_bytes(), &forged).unwrap_err();
        assert!(matches!(error, FrontmatterError::BadUndo { .. }), "{before}{after}{error}");
    }
    read_document(now.as_bytes()).unwrap();
}
