//! What is read, and what is refused with which words.

use serde_json::{Value, json};
use steward_domain::record::frontmatter::{
    MAX_RECORD_BYTES, RecordFields, read_document, read_own_fields, render_document,
};

fn fields_of(yaml: &str) -> Value {
    let text = format!("---\n{yaml}---\n");
    Value::Object(read_document(text.as_bytes()).unwrap().fields().clone())
}

#[test]
fn the_parts_of_a_record_are_found() {
    let text = "\u{feff}---\r\nstate: open\r\n--- \r\n\r\n# Title\r\n---\r\nno newline";
    let doc = read_document(text.as_bytes()).unwrap();
    assert_eq!(doc.body(), "\r\n# Title\r\n---\r\nno newline");
    assert_eq!(doc.as_str(), text);
    assert_eq!(doc.as_bytes(), text.as_bytes());
    assert_eq!(doc.fields().get("state"), Some(&json!("open")));
}

#[test]
fn the_order_of_the_fields_is_that_of_the_file() {
    let doc = read_document(b"---\nz: 1\na: 2\nm: 3\n---\n").unwrap();
    assert_eq!(doc.fields().keys().collect::<Vec<_>>(), ["z", "a", "m"]);
}

#[test]
fn a_frontmatter_without_fields_is_empty() {
    for text in ["---\n---\n", "---\n# only a comment\n\n---\nbody", "---\n---"] {
        assert!(read_document(text.as_bytes()).unwrap().fields().is_empty(), "{text:?}");
    }
}

#[test]
fn scalars_mean_what_yaml_1_2_says() {
    let cases = [
        ("yes", json!("yes")),
        ("on", json!("on")),
        ("No", json!("No")),
        ("12:30:45", json!("12:30:45")),
        ("2026-11-21", json!("2026-11-21")),
        ("2026-11-21T10:00:00Z", json!("2026-11-21T10:00:00Z")),
        ("1_000", json!("1_000")),
        ("1.2.3", json!("1.2.3")),
        ("0777", json!(777)),
        ("02134", json!(2134)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("+7", json!(7)),
        ("-0.5", json!(-0.5)),
        ("1.0", json!(1.0)),
        ("1e3", json!(1000.0)),
        ("18446744073709551615", json!(u64::MAX)),
        ("true", json!(true)),
        ("FALSE", json!(false)),
        ("null", Value::Null),
        ("~", Value::Null),
        ("", Value::Null),
        ("\"1\"", json!("1")),
        ("'it''s'", json!("it's")),
        ("[a, 1, {b: c}]", json!(["a", 1, {"b": "c"}])),
        ("x # comment", json!("x")),
        ("a#b", json!("a#b")),
        ("https://example.org/a?b", json!("https://example.org/a?b")),
        ("[[Eagle Farm]]", json!([["Eagle Farm"]])),
        ("|\n  two\n  lines", json!("two\nlines\n")),
        (">-\n  one\n  line", json!("one line")),
        ("<<", json!("<<")),
    ];
    for (written, meant) in cases {
        assert_eq!(fields_of(&format!("a: {written}\n")), json!({"a": meant}), "{written}");
    }
}

#[test]
fn keys_that_look_like_numbers_are_text() {
    assert_eq!(fields_of("2026: a\ntrue: b\n"), json!({"2026": "a", "true": "b"}));
}

#[test]
fn a_merge_key_is_an_ordinary_field() {
    assert_eq!(fields_of("<<: {a: 1}\nb: 2\n"), json!({"<<": {"a": 1}, "b": 2}));
}

#[test]
fn everything_doubtful_is_refused_with_line_and_mend() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "line 1: it is not `---`"),
        (b"# Title\n", "line 1: it is not `---`; begin the file with `---`"),
        (b"----\na: 1\n---\n", "line 1: it is not `---`"),
        (b"---\na: 1\n", "no closing `---` follows line 1; put one on a line of its own"),
        (b"---", "no closing `---` follows line 1"),
        (b"---\na: 1\n...\n---\n", "line 3: `...` ends the frontmatter early; remove it"),
        (b"---\n- a\n---\n", "line 2: the frontmatter is not a mapping; write `field: value`"),
        (b"---\njust text\n---\n", "line 2: the frontmatter is not a mapping"),
        (b"---\nnull\n---\n", "line 2: the frontmatter is not a mapping"),
        (b"---\na: 1\nb: 2\na: 3\n---\n", "line 4: the field `a` appears a second time; remove"),
        (b"---\na: {b: 1, b: 2}\n---\n", "line 2: the field `b` appears a second time"),
        (b"---\n1: a\n'1': b\n---\n", "line 3: the field `1` appears a second time"),
        (b"---\na: \xff\n---\n", "line 2: the byte at offset 7 is not UTF-8; save"),
        (b"---\na: 1\n---\nx\n\xc3(\n", "line 5: the byte at offset 15 is not UTF-8"),
        (b"\xff\xfe-\x00-\x00", "line 1: a NUL byte at offset 3 shows that this is a binary file"),
        (b"---\na: 1\n---\n\x00", "line 4: a NUL byte at offset 13"),
        (b"---\na: \x1b[1m\n---\n", "line 2: it holds the control character U+001B; remove it"),
        (b"---\na: 1\rb: 2\n---\n", "line 2: it holds a lone carriage return; save"),
        (b"---\nlist:\n\t- a\n---\n", "line 3: it is indented with a tab; indent with spaces"),
        (b"---\na:\n  b: 1\n\tc: 2\n---\n", "line 4: it is indented with a tab"),
        (b"---\na: b: c\n---\n", "line 2: `: ` inside an unquoted value"),
        (b"---\na: @me\n---\n", "line 2: this character cannot start a node; quote the value"),
        (b"---\na: 'open\nb: 1\n---\n", "line 3: a single-quoted scalar is still open"),
        (b"---\na: [x\n---\n", "line 2: flow collection is not closed; close the collection"),
        (b"---\na: 1\n  b: 2\n---\n", "line 3: this plain scalar runs onto the next line"),
        (b"---\na: \"\\q\"\n---\n", "line 2: invalid escape sequence"),
        (b"---\nx: &a 1\ny: *a\n---\n", "line 2: `&a 1` is an anchor, alias or tag"),
        (b"---\nx: 1\ny: *important*\n---\n", "line 3: `*important*` is an anchor, alias or tag"),
        (b"---\nx: !!str 5\n---\n", "line 2: `!!str 5` is an anchor, alias or tag"),
        (b"---\nx: !secret 5\n---\n", "put the value in quotes or write it out"),
        (b"---\nx: !e!s 5\n---\n", "line 2: `!e!s 5` is an anchor, alias or tag"),
        (b"---\n? [a]\n: b\n---\n", "line 2: a field's name must be text; put it in quotes"),
        (b"---\n~: b\n---\n", "line 2: a field's name must be text"),
        (b"---\na: .nan\n---\n", "line 2: the number `.nan` is not finite or too large"),
        (b"---\na: 1\nb: 1e999\n---\n", "line 3: the number `1e999` is not finite"),
        (b"---\na: 123456789012345678901\n---\n", "too large to keep exactly; put it in quotes"),
        (b"---\na: 1\nb: 0b11\n---\n", "line 3: YAML parsers disagree about it"),
        (b"---\nq: +0x1\n---\n", "put the value of `q` in quotes"),
        (b"---\na: 1\n--- b\n---\n", "line 3: the input has more than one document"),
        (b"---\n%YAML 1.1\na: 1\n---\n", "directives must be followed by `---`"),
    ];
    for (bytes, words) in cases {
        let shown = String::from_utf8_lossy(bytes);
        let error = read_document(bytes).expect_err(&shown).to_string();
        assert!(error.contains(words), "{shown:?}: {error}");
        assert!(error.starts_with("read "), "reads after \"failed to\": {error}");
    }
}

#[test]
fn a_record_of_ten_megabytes_is_refused_by_its_size() {
    let text = format!("---\na: 1\n---\n{}", "x".repeat(10 * 1024 * 1024));
    let error = read_document(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("the limit is 1048576; move the long text"), "{error}");
    let text = format!("---\na: 1\n---\n{}", "x".repeat(MAX_RECORD_BYTES - 13));
    assert_eq!(read_document(text.as_bytes()).unwrap().as_bytes().len(), MAX_RECORD_BYTES);
}

#[test]
fn a_long_frontmatter_is_refused_whether_closed_or_not() {
    let long = format!("---\na: {}\n", "x ".repeat(40_000));
    for text in [long.clone(), format!("{long}---\n")] {
        let error = read_document(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("no closing `---` within 65536 bytes"), "{error}");
    }
}

#[test]
fn a_rendered_record_reads_back_equal() {
    let fields: RecordFields = serde_json::from_value(json!({
        "type": "steward-action",
        "timestamp": "2026-11-21T10:00:00Z",
        "confidence": 0.75, "tiny": 1e-9, "huge": 1e300, "count": 3, "negative": -4,
        "none": null, "yes": "yes", "flag": true, "empty": "", "list": [], "map": {},
        "lines": "state: open  # by hand\r\n", "odd": "\u{1}\u{feff}\u{2028}\u{85}\"\\",
        "evidence": [{"source": "mail", "ref": "a", "deep": [[1, [2]], {"x": {"y": []}}]}, "b"],
        "gates": {"mode": "shadow", "why": ["a: b", "- c", "#d", "1e3", "[[Link]]", "it's"]},
        "": "no name", "a b": 1, "k: v": 2, "2026": 3, "null": 4, "größe": "5 m", "-": 6,
    }))
    .unwrap();
    let text = render_document(&fields, "# Body\n");
    let doc = read_document(text.as_bytes()).unwrap();
    assert_eq!(read_own_fields(doc.fields()), fields);
    assert_eq!(doc.fields()["gates"]["why"][4], "[\\[Link]]", "no value is a link");
    assert_eq!(doc.body(), "# Body\n");
    assert!(doc.fields().keys().eq(fields.keys()), "order: {text}");
}

#[test]
fn a_rendered_record_looks_as_people_write() {
    let fields: RecordFields = serde_json::from_value(json!({
        "type": "task", "state": "open", "due": "2026-11-21", "title": "Fix the roof (urgent)",
        "tags": ["home", "on"], "gates": {"mode": "live"},
        "evidence": [{"source": "mail", "note": "done, thanks"}],
    }))
    .unwrap();
    let expected = "---\ntype: task\nstate: open\ndue: \"2026-11-21\"\ntitle: Fix the roof (urgent)\n\
        tags:\n  - home\n  - \"on\"\ngates:\n  mode: live\nevidence:\n  - source: mail\n    \
        note: done, thanks\n---\nBody\n";
    assert_eq!(render_document(&fields, "Body\n"), expected);
}
