//! No input takes long, whatever it is.

use std::time::{Duration, Instant};

use serde_json::json;
use steward_domain::record::frontmatter::{FieldEdit, MAX_FRONTMATTER_BYTES, edit_fields, read_document};

/// The promise is 50 ms in a release build; unoptimised builds are some ten
/// times slower.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 50 });

fn fill(piece: &str) -> String {
    piece.repeat((MAX_FRONTMATTER_BYTES - 200) / piece.len())
}

/// A billion laughs: each level repeats the one above nine times.
fn laughs() -> String {
    let level = |n: usize| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","));
    format!("a0: &a0 [{}]\n{}", ["lol"; 9].join(","), (1..200).map(level).collect::<String>())
}

fn bombs() -> Vec<(&'static str, String)> {
    let keys: String = (0..4_900).map(|n| format!("k{n}: \n")).collect();
    let flow_keys: String = (0..4_900).map(|n| format!("k{n}: 1, ")).collect();
    let steps: String = (0..300).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    vec![
        ("billion laughs", laughs()),
        ("open lists", fill("[")),
        ("open mappings", fill("{a: ")),
        ("question marks", fill("? ")),
        ("dashes", fill("- ")),
        ("stairs", steps),
        ("anchors", fill("&a ")),
        ("aliases", fill("*a ")),
        ("tags", fill("!x ")),
        ("directives", fill("%A\n")),
        ("colons", fill(": ")),
        ("commas", format!("a: [{}", fill(","))),
        ("many fields", keys),
        ("one field again and again", fill("a: 1\n")),
        ("merge keys", fill("<<: 1\n")),
        ("many items", format!("a:\n{}", "- b\n".repeat(9_000))),
        ("too many items", fill("a,").replacen("a,", "a: [", 1) + "]"),
        ("wide list", format!("a: [{}]", "b,".repeat(9_000))),
        ("wide mapping", format!("a: {{{flow_keys}}}")),
        ("comments", fill("#\n")),
        ("comments in a list", format!("a:\n{}  - x", fill("  # x\n"))),
        ("blank lines", fill("\n")),
        ("blanks", fill(" ")),
        ("tabs", fill("\t")),
        ("blank literal", format!("a: |\n  x\n{}", fill("\n"))),
        ("folded", format!("a: >\n{}", fill("  x\n\n"))),
        ("plain lines", format!("a: x\n{}", fill("  x\n"))),
        ("open quote", format!("a: \"{}", fill("x"))),
        ("escapes", format!("a: \"{}\"", fill("\\n"))),
        ("long integer", format!("a: {}", fill("1"))),
        ("long fraction", format!("a: 0.{}", fill("1"))),
        ("long exponent", format!("a: 1e{}", fill("1"))),
        ("long key", fill("k")),
        ("wide letters", format!("a: {}", fill("é"))),
        ("closing brackets", format!("a: [\n{}", fill("]\n"))),
        ("lists closed at the beginning of a line", fill("a: [\n]\n")),
        ("comments before closing brackets", fill("# '\n]\n")),
    ]
}

/// The time this thread had a processor, so that a busy machine does not count.
/// Where the system does not tell, the time on the wall.
fn spent(since: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

/// The first of five tries that is quick enough, or the last one.
fn time(work: impl Fn()) -> Duration {
    let since = Instant::now();
    let mut took = Duration::MAX;
    for _ in 0..5 {
        let start = spent(since);
        work();
        took = spent(since).saturating_sub(start);
        if took < PATIENCE {
            break;
        }
    }
    took
}

#[test]
fn no_hostile_frontmatter_takes_long() {
    let change = [FieldEdit { field: "a".to_owned(), value: Some(json!(["x", "b"])) }];
    for (name, yaml) in bombs() {
        for ending in ["\n---\nbody\n", ""] {
            let text = format!("---\n{yaml}{ending}");
            let reading = time(|| drop(read_document(text.as_bytes())));
            assert!(reading < PATIENCE, "{name}: reading took {reading:?}");
            let editing = time(|| drop(edit_fields(text.as_bytes(), &change)));
            assert!(editing < PATIENCE, "{name}: editing took {editing:?}");
        }
    }
}

#[test]
fn bombs_are_refused_with_a_reason() {
    let reason = |name: &str| {
        let (_, yaml) = bombs().into_iter().find(|(seen, _)| *seen == name).unwrap();
        read_document(format!("---\n{yaml}\n---\n").as_bytes()).unwrap_err().to_string()
    };
    assert!(reason("billion laughs").contains("is an anchor, alias or tag"));
    assert!(reason("open lists").contains("nested deeper than 32 levels; flatten them"));
    assert!(reason("stairs").contains("line 34: values are nested deeper"));
    assert!(reason("too many items").contains("more than 10000 values; move the list"));
}

#[test]
fn a_frontmatter_at_the_limit_is_still_edited() {
    let long = format!("---\nstate: open\nnote: {}\n---\n", "x".repeat(60_000));
    let change = [FieldEdit { field: "state".to_owned(), value: Some(json!("done")) }];
    let after = edit_fields(long.as_bytes(), &change).unwrap();
    assert_eq!(after, long.replace("state: open", "state: done").into_bytes());
}

#[test]
fn an_edit_that_would_cross_the_limit_is_refused() {
    let change = [FieldEdit { field: "a".to_owned(), value: Some(json!("x".repeat(70_000))) }];
    let error = edit_fields(b"---\na: 1\n---\n", &change).unwrap_err().to_string();
    assert!(error.contains("no closing `---` within 65536 bytes"), "{error}");
}
