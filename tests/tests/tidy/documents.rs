//! What the documents say of the code is there: paths, tests and functions.
//!
//! A path in backquotes must exist. A name before "in" or "(" and a file must be an item of that file, and so must the
//! names of tests that follow a file and a colon. What the sentences say about them is for readers to check.

use crate::tree::{Source, hold, nothing_wrong, root};

const FOLDERS: [&str; 8] = ["domain/", "vault/", "workflows/", "activities/", "server/", "worker/", "proto/", "tests/"];

fn names_only_what_is_there(file: &Source) -> Vec<String> {
    if !file.path.ends_with(".md") || file.path.starts_with("worker/example/") {
        return Vec::new();
    }
    // Code blocks have three backquotes, so they fall between the spans.
    let parts: Vec<&str> = file.text.split('`').collect();
    let spans: Vec<(&str, &str)> = parts[1..].chunks_exact(2).map(|pair| (pair[0], pair[1].trim())).collect();
    let mut found = Vec::new();
    let mut tests_of = None;
    for (at, (span, after)) in spans.iter().enumerate() {
        let is_path = FOLDERS.iter().any(|folder| span.starts_with(folder)) && !span.contains(['*', '<', ' ']);
        if is_path && !root().join(span).exists() {
            found.push(format!("{}: there is no `{span}`", file.path));
        }
        let next = spans.get(at + 1).map_or("", |(next, _)| next);
        let names_item_of_next = ["in", "of", "("].contains(after) && next.ends_with(".rs") && next.contains('/');
        if let Some(source) = if names_item_of_next { Some(next) } else { tests_of }
            && span.chars().all(|c| c.is_alphanumeric() || "_:!".contains(c))
            && !has_item(source, span)
        {
            found.push(format!("{}: `{source}` has no `{span}`", file.path));
        }
        tests_of = match (is_path && *after == ":", *after == ",") {
            (true, _) => Some(*span),
            (false, true) => tests_of,
            (false, false) => None,
        };
    }
    found
}

/// Whether a source has an item with the last part of this name.
fn has_item(source: &str, name: &str) -> bool {
    let text = std::fs::read_to_string(root().join(source)).unwrap_or_default();
    let last = name.rsplit("::").next().unwrap_or(name).trim_end_matches('!');
    let kinds = ["fn", "struct", "enum", "type", "const", "static", "trait", "macro_rules!"];
    let declares = |kind: &str| {
        let declared = format!("{kind} {last}");
        text.match_indices(&declared)
            .any(|(at, _)| !text[at + declared.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    kinds.into_iter().any(declares)
}

#[test]
fn the_documents_name_only_what_is_there() {
    hold(names_only_what_is_there);
}

#[test]
fn a_name_that_is_gone_is_caught() {
    let found = |text: &str| names_only_what_is_there(&Source::new("docs/a.md", text)).len();
    let here = "tests/tests/tidy/documents.rs";
    assert_eq!(found("in `domain/src/gone.rs` there"), 1);
    assert_eq!(found(&format!("`gone` in `{here}`, `Type::has_item` (`{here}`)")), 1);
    assert_eq!(found(&format!("`{here}`: `has_item`, `gone_too`; `free`")), 1);
    nothing_wrong(&names_only_what_is_there(&Source::new("docs/a.md", "`steward up` in `a`, `proto/*.md`")));
}
