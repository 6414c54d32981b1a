//! What an edit changes, and what it leaves alone.

use serde_json::{Value, json};
use steward_domain::record::frontmatter::{
    FieldEdit, FrontmatterError, edit_fields, edit_fields_with_undo, read_document, undo_fields,
};

fn set(field: &str, value: Value) -> FieldEdit {
    FieldEdit { field: field.to_owned(), value: Some(value) }
}

fn remove(field: &str) -> FieldEdit {
    FieldEdit { field: field.to_owned(), value: None }
}

/// Edits the YAML text between the fences, with LF and with CRLF, and takes
/// the edit back.
fn edited(yaml: &str, change: &FieldEdit) -> String {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let whole = format!("---\n{yaml}---\n\nBody: yes\n---\nend");
    let edited = edit_fields_with_undo(whole.as_bytes(), std::slice::from_ref(change)).unwrap();
    assert_eq!(undo_fields(&edited.bytes, &edited.undo).unwrap(), whole.as_bytes(), "undo of {change:?}");
    let text = String::from_utf8(edited.bytes).unwrap();
    let with_bom = format!("\u{feff}{}", crlf(&whole));
    let other = edit_fields(with_bom.as_bytes(), std::slice::from_ref(change)).unwrap();
    if !format!("{change:?}").contains("\\n") {
        assert_eq!(String::from_utf8(other).unwrap(), format!("\u{feff}{}", crlf(&text)));
    }
    text.strip_prefix("---\n").unwrap().strip_suffix("---\n\nBody: yes\n---\nend").unwrap().to_owned()
}

#[test]
fn a_scalar_changes_in_its_own_place() {
    let cases = [
        ("state: open\n", json!("done"), "state: done\n"),
        ("state: open  # set by hand\n", json!("done"), "state: done  # set by hand\n"),
        ("state:   open\t# x\n", json!("done"), "state:   done\t# x\n"),
        ("state: 'open' # x\n", json!("it's done"), "state: 'it''s done' # x\n"),
        ("state: \"open\"\n", json!("do\"ne"), "state: \"do\\\"ne\"\n"),
        ("state: 'open'\n", json!("a\nb"), "state: \"a\\nb\"\n"),
        ("'state': open\n", json!("done"), "'state': done\n"),
        ("state : open\n", json!("done"), "state : done\n"),
        ("state:\n", json!("done"), "state: done\n"),
        ("state:   # none yet\n", json!("done"), "state: done   # none yet\n"),
        ("state: ~\n", json!("done"), "state: done\n"),
        ("state: open\n", Value::Null, "state: null\n"),
        ("state: \"1\"\n", json!(1), "state: 1\n"),
        ("state: 1 # n\n", json!(2.5), "state: 2.5 # n\n"),
        ("state: true\n", json!(false), "state: false\n"),
        ("state: a\n  b\n  c # end\n", json!("done"), "state: done # end\n"),
        ("state: \"a\n  b\" # end\n", json!("done"), "state: \"done\" # end\n"),
        ("state:\n  open # below\n", json!("done"), "state:\n  done # below\n"),
        ("  state: open\n  b: 1\n", json!("done"), "  state: done\n  b: 1\n"),
        ("state: | # c\n  a\n\n  b\nz: 1\n", json!("x"), "state: x # c\nz: 1\n"),
        ("state: | # c\n    a\nz: 1\n", json!("x\n\n y\n"), "state: | # c\n  x\n\n   y\nz: 1\n"),
        ("state: >-\n  a\n  b\n", json!("x\ny"), "state: |-\n  x\n  y\n"),
        ("state: |+\n  a\n\n\nz: 1\n", json!("x"), "state: x\nz: 1\n"),
        ("state: |\n  a\n", json!(" x\ny"), "state: \" x\\ny\"\n"),
        ("state: |\n", json!("x"), "state: x\n"),
    ];
    for (before, value, after) in cases {
        assert_eq!(edited(before, &set("state", value)), after, "{before:?}");
    }
}

#[test]
fn a_text_that_others_would_misread_is_quoted() {
    for text in [
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "null",
        "~",
        "true",
        "12:30:45",
        "2026-11-21",
        "1e3",
        "007",
        "0x1f",
        "1_000",
        ".5",
        "-",
        "- a",
        "a: b",
        "a #b",
        "#a",
        " a",
        "a ",
        "",
        "[[a]]",
        "{a}",
        "*a",
        "&a",
        "!a",
        "@a",
        "`a",
        "%a",
        "? a",
        "a:",
        "<<",
        "=",
        "...",
        "---",
        "'a",
        "\"a",
        "a\tb",
        "|",
        ">",
        "a\u{2028}b",
        "\u{feff}",
        "2026-11-21T10:00:00Z",
        "a, b]",
    ] {
        let after = edited("state: open # c\n", &set("state", json!(text)));
        assert!(after.starts_with("state: \"") && after.ends_with("\" # c\n"), "{text:?}: {after}");
    }
    for text in ["done", "Fix the roof (urgent)", "task/a-b.md", "don't", "C# dev", "a:b", "ünï"] {
        let after = edited("state: open # c\n", &set("state", json!(text)));
        assert_eq!(after, format!("state: {text} # c\n"));
    }
}

#[test]
fn a_list_keeps_the_lines_of_items_that_stay() {
    let block = "tags: # mine\n  # first\n  - a # one\n  # second\n  - 'b'\n\n  - c\n# end\nz: 1\n";
    let cases = [
        (
            block,
            json!(["a", "b", "c", "d"]),
            "tags: # mine\n  # first\n  - a # one\n  # second\n  - 'b'\n\n  - c\n  - d\n# end\nz: 1\n",
        ),
        (block, json!(["a", "c"]), "tags: # mine\n  # first\n  - a # one\n  # second\n\n  - c\n# end\nz: 1\n"),
        (block, json!(["b"]), "tags: # mine\n  # first\n  # second\n  - 'b'\n\n# end\nz: 1\n"),
        (
            block,
            json!(["0", "a", "x", "b", "c"]),
            "tags: # mine\n  # first\n  - \"0\"\n  - a # one\n  - x\n  # second\n  - 'b'\n\n  - c\n# end\nz: 1\n",
        ),
        (block, json!([]), "tags: [] # mine\n  # first\n# end\nz: 1\n"),
        (block, json!("x"), "tags: x # mine\n  # first\n# end\nz: 1\n"),
        ("tags:\n- a\n# c\n- b\n", json!(["a"]), "tags:\n- a\n# c\n"),
        ("tags:\n- \"a\"\n", json!(["a", "b"]), "tags:\n- \"a\"\n- \"b\"\n"),
        ("tags:\n- a\n-\n- |\n  x\n  # no comment\n\n- d\n", json!(["a", "d"]), "tags:\n- a\n\n- d\n"),
        ("tags: [a, 'b']  # c\n", json!(["a", "b", "c"]), "tags: [a, 'b', c]  # c\n"),
        ("tags: [a, 'b', c]\n", json!(["a", "c"]), "tags: [a, c]\n"),
        ("tags: [a, 'b', c]\n", json!(["b"]), "tags: ['b']\n"),
        ("tags: [a, b]\n", json!(["b"]), "tags: [b]\n"),
        ("tags: [b]\n", json!(["a", "b"]), "tags: [a, b]\n"),
        ("tags: [\"[[A]]\"]\n", json!(["[[A]]", "[[B]]"]), "tags: [\"[[A]]\", \"[[B]]\"]\n"),
        ("tags: [a, b,]\n", json!(["a", "b", "c"]), "tags: [a, b, c,]\n"),
        ("tags: [ ] # c\n", json!(["a"]), "tags: [a] # c\n"),
        ("tags: [a] # c\n", json!([]), "tags: [] # c\n"),
        ("tags: [\n  a, # x\n  b\n  ]\n", json!(["a", "b", "c"]), "tags: [\n  a, # x\n  b, c\n  ]\n"),
        ("tags: # c\n", json!(["a", "b"]), "tags: # c\n  - a\n  - b\n"),
        ("tags: x # c\n", json!(["a"]), "tags: # c\n  - a\n"),
        ("tags: | # c\n  x\nz: 1\n", json!(["a"]), "tags: # c\n  - a\nz: 1\n"),
        ("tags:\n  {a: 1}\n", json!(["a"]), "tags:\n  [a]\n"),
        ("tags:\n  k: v\n", json!(["a"]), "tags:\n  - a\n"),
    ];
    for (before, value, after) in cases {
        assert_eq!(edited(before, &set("tags", value)), after, "{before:?}");
    }
}

#[test]
fn a_mapping_keeps_the_lines_of_entries_that_stay() {
    let block = "g:\n    # lead\n    a: 1 # one\n    b: x\n    # trail\nz: 1\n";
    let cases = [
        (block, json!({"a": 2, "b": "x"}), "g:\n    # lead\n    a: 2 # one\n    b: x\n    # trail\nz: 1\n"),
        (block, json!({"b": "x", "c": [1]}), "g:\n    # lead\n    b: x\n    c:\n      - 1\n    # trail\nz: 1\n"),
        (block, json!({}), "g: {}\n    # lead\n    # trail\nz: 1\n"),
        ("g: {a: 1, b: 'x'} # c\n", json!({"a": 1, "b": "y"}), "g: {a: 1, b: \"y\"} # c\n"),
        ("g: {a: 1, b: 2}\n", json!({"b": 2}), "g: {b: 2}\n"),
        ("g: {a: 1}\n", json!({"a": 1, "b": {"c": []}}), "g: {a: 1, b: {c: []}}\n"),
        ("g: 1 # c\n", json!({"a": {"b": "x"}}), "g: # c\n  a:\n    b: x\n"),
        ("g:\n  ? a\n  : 1\n  b: 2 # c\n", json!({"a": 2}), "g:\n  a: 2\n"),
        ("g:\n- a\n", json!({"a": 1}), "g:\n  a: 1\n"),
        ("g: {a: 1}\n", json!(["x"]), "g: [x]\n"),
    ];
    for (before, value, after) in cases {
        let got = edited(before, &set("g", value));
        assert_eq!(got.replace("b: y", "b: \"y\""), after, "{before:?}");
    }
}

#[test]
fn a_new_field_becomes_the_last_line() {
    let cases = [
        ("", json!("x"), "new: x\n"),
        ("# only\n", json!("x"), "# only\nnew: x\n"),
        ("a: 1\n\n# end\n", json!(["x"]), "a: 1\n\n# end\nnew:\n  - x\n"),
        ("  a: 1\n", json!({"b": 1}), "  a: 1\n  new:\n    b: 1\n"),
        ("a: |+\n  x\n\n", json!(1), "a: |+\n  x\n\nnew: 1\n"),
        ("a:\n  - x\n  # deep\n", json!([]), "a:\n  - x\n  # deep\nnew: []\n"),
    ];
    for (before, value, after) in cases {
        assert_eq!(edited(before, &set("new", value)), after, "{before:?}");
    }
    assert_eq!(edited("a: 1\n", &set("on", json!(1))), "a: 1\n\"on\": 1\n");
    assert_eq!(edited("a: 1\n", &set("größe", json!(1))), "a: 1\ngröße: 1\n");
}

#[test]
fn removing_a_field_takes_only_its_own_lines() {
    let before = "# head\na: 1\n# about b\nb: # x\n  - 1\n  # in\n  - 2\n# about c\nc: 3\n";
    assert_eq!(edited(before, &remove("b")), "# head\na: 1\n# about b\n# about c\nc: 3\n");
    assert_eq!(edited(before, &remove("a")), before.replace("a: 1\n", ""));
    assert_eq!(edited(before, &remove("c")), before.replace("c: 3\n", ""));
    assert_eq!(edited("a: |\n  x\n\n\nb: 1\n", &remove("a")), "\n\nb: 1\n");
    assert_eq!(edited("a: 1\n", &remove("a")), "");
    assert_eq!(edited("a: 1\n", &remove("absent")), "a: 1\n");
}

#[test]
fn an_edit_that_changes_no_value_changes_no_byte() {
    let text = b"---\na:   'x'   # c\nl: [ 1,2 ]\nm: {b: 1, a: 2}\n---\n";
    let edits = [set("a", json!("x")), set("l", json!([1, 2])), set("m", json!({"a": 2, "b": 1}))];
    let edited = edit_fields_with_undo(text, &edits).unwrap();
    assert_eq!(edited.bytes, text);
    assert!(edited.undo.is_empty());
}

#[test]
fn several_edits_are_made_in_their_order() {
    let text = b"---\nstate: open\nowner: ann\n---\n";
    let edits = [set("state", json!("done")), remove("owner"), set("by", json!("x")), set("by", json!("z"))];
    assert_eq!(edit_fields(text, &edits).unwrap(), b"---\nstate: done\nby: z\n---\n");
}

#[test]
fn one_impossible_edit_stops_them_all() {
    let text = b"---\nstate: open\n? owner\n: ann\n---\n";
    let error = edit_fields(text, &[set("state", json!("done")), set("owner", json!("bob"))]).unwrap_err();
    assert!(matches!(error, FrontmatterError::NotEditable { line: 3, .. }), "{error}");
    assert!(error.to_string().contains("edit the field `owner` in line 3"), "{error}");
    assert!(edit_fields(text, &[set("state", json!("done"))]).is_ok());
}

#[test]
fn fields_in_braces_are_read_and_not_edited() {
    let text = b"---\n{a: 1, b: 2}\n---\n";
    assert_eq!(read_document(text).unwrap().fields().len(), 2);
    for change in [set("a", json!(2)), set("c", json!(3)), remove("b")] {
        let error = edit_fields(text, &[change]).unwrap_err().to_string();
        assert!(error.contains("written in braces; write one `field: value` per line"), "{error}");
    }
}

#[test]
fn a_broken_record_is_never_rewritten() {
    for text in ["no fence", "---\na: 1\na: 2\n---\n", "---\na: [\n---\n", "---\na: *x\n---\n"] {
        assert!(edit_fields(text.as_bytes(), &[set("a", json!(1))]).is_err(), "{text:?}");
    }
}

#[test]
fn lines_that_would_run_into_their_neighbours_are_refused() {
    // Without `b`, the blank lines below it would belong to the text of `a`.
    let text = b"---\na: |+\n  x\nb: 1\n\n\n---\n";
    let error = edit_fields(text, &[remove("b")]).unwrap_err();
    assert!(matches!(error, FrontmatterError::Unverified { .. }), "{error}");
    assert!(error.to_string().contains("another field would change; edit this field by hand"));
}

#[test]
fn a_list_that_is_closed_at_the_beginning_of_a_line_is_read_and_the_other_fields_stay_editable() {
    let lists = [
        "tags: [\n  a,\n  b\n]\n",
        "tags: [\n  a, # it's one\n  b # two\n\n  # no more\n] # end\n",
        "tags: [\n  'a',\n  \"b\",\n]\n",
        "tags: [a,\n  b\n]\n",
    ];
    for list in lists {
        for yaml in [format!("{list}state: open # now\nz: 1\n"), format!("z: 1\nstate: open # now\n{list}")] {
            let read_back =
                |yaml: &str| read_document(format!("---\n{yaml}---\n").as_bytes()).unwrap().fields()["tags"].clone();
            assert_eq!(read_back(&yaml), json!(["a", "b"]), "{yaml}");
            let after = edited(&yaml, &set("state", json!("done")));
            assert_eq!(after, yaml.replace("open", "done"));
            assert_eq!(edited(&yaml, &remove("z")), yaml.replace("z: 1\n", ""));
            let whole = format!("---\n{yaml}---\n");
            match edit_fields_with_undo(whole.as_bytes(), &[set("tags", json!(["a", "c"]))]) {
                Ok(edited) => assert_eq!(undo_fields(&edited.bytes, &edited.undo).unwrap(), whole.as_bytes()),
                Err(e) => assert!(e.to_string().contains("`tags`"), "{e}"),
            }
        }
    }
    for open in ["tags: [\n  a\nstate: open\n]\n", "tags: [\n  a,\nb\n", "]\n", "tags: a\n]\n", "tags: 'a\n]'\n"] {
        assert!(read_document(format!("---\n{open}---\n").as_bytes()).is_err(), "{open}");
    }
}
