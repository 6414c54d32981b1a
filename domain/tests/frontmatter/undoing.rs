//! Undo restores the very bytes, and leaves alone what people edited since.

use serde_json::{Value, json};
use steward_domain::record::frontmatter::{FieldEdit, FieldUndo, FrontmatterError, edit_fields_with_undo, undo_fields};

const RECORD: &str = "---\n# top\ntype: task\n\n# state of things\nstate: open  # set by hand\nowner: 'ann'\n---\nx";

fn change(text: &str, field: &str, value: Option<Value>) -> (String, Vec<FieldUndo>) {
    let edits = [FieldEdit { field: field.to_owned(), value }];
    let edited = edit_fields_with_undo(text.as_bytes(), &edits).unwrap();
    (String::from_utf8(edited.bytes).unwrap(), edited.undo)
}

fn back(text: &str, undos: &[FieldUndo]) -> String {
    String::from_utf8(undo_fields(text.as_bytes(), undos).unwrap()).unwrap()
}

#[test]
fn a_recipe_survives_being_stored() {
    let (after, undos) = change(RECORD, "state", Some(json!("done")));
    let stored = serde_json::to_string(&undos).unwrap();
    let undos: Vec<FieldUndo> = serde_json::from_str(&stored).unwrap();
    assert_eq!(undos[0].lines_before, "state: open  # set by hand\n");
    assert_eq!(undos[0].lines_after, "state: done  # set by hand\n");
    assert_eq!((undos[0].below.as_deref(), undos[0].distance), (Some("type"), 2));
    assert_eq!(back(&after, &undos), RECORD);
}

#[test]
fn a_removed_field_goes_back_to_its_place() {
    for field in ["type", "state", "owner"] {
        let (after, undos) = change(RECORD, field, None);
        assert_ne!(after, RECORD);
        assert_eq!(back(&after, &undos), RECORD, "{field}");
    }
}

#[test]
fn a_chain_of_changes_is_undone_backwards() {
    let edit = |field: &str, value| FieldEdit { field: field.to_owned(), value };
    let edits = [
        edit("type", Some(json!(["a", "b"]))),
        edit("state", None),
        edit("owner", None),
        edit("state", Some(json!("again"))),
        edit("new", Some(json!({"a": 1}))),
        edit("type", None),
    ];
    let edited = edit_fields_with_undo(RECORD.as_bytes(), &edits).unwrap();
    assert_eq!(edited.undo.len(), edits.len());
    assert_eq!(undo_fields(&edited.bytes, &edited.undo).unwrap(), RECORD.as_bytes());
}

#[test]
fn an_undo_done_twice_is_done_once() {
    let (after, undos) = change(RECORD, "state", Some(json!("done")));
    let once = back(&after, &undos);
    assert_eq!(back(&once, &undos), once);
}

#[test]
fn what_people_wrote_elsewhere_stays() {
    let (after, undos) = change(RECORD, "state", Some(json!("done")));
    let human = after.replace("type: task", "type: task\npriority: 1").replace("'ann'", "bob");
    let expected = RECORD.replace("type: task", "type: task\npriority: 1").replace("'ann'", "bob");
    assert_eq!(back(&human, &undos), expected);
}

#[test]
fn a_removed_field_finds_a_place_in_an_edited_record() {
    let (after, undos) = change(RECORD, "state", None);
    // Its neighbour grew: the distance counts from its end.
    let grown = after.replace("type: task\n", "type:\n  - a\n  - b\n  - c\n  - d\n  - e\n");
    assert!(back(&grown, &undos).contains("\n# state of things\nstate: open  # set by hand\n"));
    // The comment above its place went away: it does not slip behind the next field.
    let shorter = after.replace("\n# state of things\n", "");
    assert!(back(&shorter, &undos).contains("task\nstate: open  # set by hand\nowner"));
    // Its neighbour went away, so it goes to the end.
    let gone = after.replace("type: task\n", "");
    assert!(back(&gone, &undos).contains("owner: 'ann'\nstate: open  # set by hand\n---\n"));
}

#[test]
fn a_comment_written_since_stays_when_the_value_goes_back() {
    let (after, undos) = change(RECORD, "state", Some(json!("done")));
    let human = after.replace("done  # set by hand", "done  # I agree");
    assert_eq!(back(&human, &undos), RECORD.replace("# set by hand", "# I agree"));
}

#[test]
fn line_endings_converted_since_stay() {
    let (after, undos) = change(RECORD, "state", Some(json!("done")));
    let crlf = after.replace('\n', "\r\n");
    assert_eq!(back(&crlf, &undos), RECORD.replace('\n', "\r\n"));
}

#[test]
fn a_value_edited_since_is_a_conflict() {
    let (after, undos) = change(RECORD, "state", Some(json!("done")));
    let human = after.replace("done", "archived");
    let error = undo_fields(human.as_bytes(), &undos).unwrap_err();
    assert_eq!(error, FrontmatterError::Conflict { field: "state".to_owned() });
    let gone = after.replace("state: done  # set by hand\n", "");
    assert!(matches!(undo_fields(gone.as_bytes(), &undos), Err(FrontmatterError::Conflict { .. })));
}

#[test]
fn recorded_lines_are_not_trusted() {
    let (after, undos) = change(RECORD, "state", Some(json!("done")));
    for lines in ["state: open\nowner: eve\n", "owner: eve\n", "state: open", "state: [\n", "# nothing\n"] {
        let forged = FieldUndo { lines_before: lines.to_owned(), ..undos[0].clone() };
        let error = undo_fields(after.as_bytes(), &[forged]).unwrap_err();
        assert_eq!(error, FrontmatterError::BadUndo { field: "state".to_owned() }, "{lines:?}");
    }
    // Right by itself, wrong in this place: a keep-all text would take in what follows.
    let human = after.replace("owner: 'ann'\n", "\n\nowner: 'ann'\n");
    let forged = FieldUndo { lines_before: "state: |+\n  open\n".to_owned(), ..undos[0].clone() };
    let error = undo_fields(human.as_bytes(), &[forged]).unwrap_err();
    assert!(matches!(error, FrontmatterError::Unverified { .. }), "{error}");
    let fenced = FieldUndo { lines_before: "---\nstate: open\n".to_owned(), ..undos[0].clone() };
    assert!(undo_fields(after.as_bytes(), &[fenced]).is_err());
    let indented = FieldUndo { lines_before: "  state: open\n".to_owned(), ..undos[0].clone() };
    assert!(undo_fields(after.as_bytes(), &[indented]).is_err());
}

#[test]
fn lists_are_put_back_with_their_comments() {
    let text = "---\ntags:\n- a # one\n# between\n- b # two\n# end\nz: 1\n---\n";
    for value in [json!([]), json!(["a"]), json!(["b"]), json!("x"), json!(["c", "d"]), json!(null)] {
        let (after, undos) = change(text, "tags", Some(value));
        assert_eq!(back(&after, &undos), text);
    }
}
