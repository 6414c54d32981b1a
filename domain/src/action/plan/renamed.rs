//! Undo recipes whose links name notes that have moved since.
//!
//! A recipe holds the words and lines of a field as they were. Where a link in them named a note that has another name
//! now, the link is replaced by the one that names it now, before the recipe is compared with the note.

use crate::action::audit::FieldPatch;
use crate::record::frontmatter::{FieldUndo, RecordFields, SetHistoryStep};
use crate::record::moves::{LinkReader, collect_texts};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The same recipe, with the links as they read now.
pub(super) fn rename_links(
    patches: &[FieldPatch],
    life: &[SetHistoryStep],
    fields: &RecordFields,
    links: LinkReader<'_>,
) -> (Vec<FieldPatch>, Vec<SetHistoryStep>) {
    let (mut patches, mut life) = (patches.to_vec(), life.to_vec());
    if links.moves.is_empty() {
        return (patches, life);
    }
    for patch in patches.iter_mut().filter(|patch| is_link_field(&patch.field)) {
        let steps = life.iter().filter_map(|step| match step {
            SetHistoryStep::Applied(_, change) => change.recorded_values().ok(),
            SetHistoryStep::Reverted(_) => None,
        });
        let mut values: Vec<Value> = steps.flat_map(|(before, after)| [before, after]).flatten().collect();
        values.extend(patch.prior.iter().chain(&patch.value).cloned());
        let renames = collect_renames(&values, fields.get(patch.key()), links);
        if renames.is_empty() {
            continue;
        }
        patch.prior.iter_mut().chain(&mut patch.value).for_each(|value| rename_in_value(value, &renames));
        patch.undo.iter_mut().for_each(|undo| rename_in_lines(undo, &renames));
        for step in &mut life {
            if let SetHistoryStep::Applied(_, change) = step {
                rename_in_lines(change, &renames);
            }
        }
    }
    (patches, life)
}

/// An older value of a field, with the links as they read now.
pub(super) fn rename_value(
    field: &str,
    before: Option<&Value>,
    now: Option<&Value>,
    links: LinkReader<'_>,
) -> Option<Value> {
    let mut value = before?.clone();
    if is_link_field(field) {
        let renames = collect_renames(std::slice::from_ref(&value), now, links);
        rename_in_value(&mut value, &renames);
    }
    Some(value)
}

fn is_link_field(field: &str) -> bool {
    field == "parent_matter" || super::is_set_field(field)
}

/// The texts that read differently now.
fn collect_renames(values: &[Value], now: Option<&Value>, links: LinkReader<'_>) -> BTreeMap<String, String> {
    let mut texts = Vec::new();
    values.iter().for_each(|value| collect_texts(value, &mut texts));
    texts.into_iter().filter_map(|text| Some((text.to_owned(), links.rename_member(text, now)?))).collect()
}

fn rename_in_value(value: &mut Value, renames: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(renamed) = renames.get(text) {
                text.clone_from(renamed);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_in_value(item, renames)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

/// Lines that do not read as the renamed values afterwards are refused when the recipe is used.
fn rename_in_lines(undo: &mut FieldUndo, renames: &BTreeMap<String, String>) {
    let mut longest_first: Vec<(&String, &String)> = renames.iter().filter(|(old, _)| !old.is_empty()).collect();
    longest_first.sort_by_key(|(old, _)| Reverse(old.len()));
    undo.lines_before = replace_at_once(&undo.lines_before, &longest_first);
    undo.lines_after = replace_at_once(&undo.lines_after, &longest_first);
}

/// Replaces every text once: two notes may have changed their names.
fn replace_at_once(lines: &str, longest_first: &[(&String, &String)]) -> String {
    let (mut out, mut rest) = (String::with_capacity(lines.len()), lines);
    while let Some(next) = rest.chars().next() {
        match longest_first.iter().find(|(old, _)| rest.starts_with(old.as_str())) {
            Some((old, new)) => {
                out.push_str(new);
                rest = &rest[old.len()..];
            }
            None => {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    out
}
