//! Adds a member to a set, or removes one: a list of links such as `related_to`.
//!
//! People write the same link in more than one way, so members are compared by the record that they name. A missing or
//! empty field is the empty set. A value that is not a list is refused. An undo restores exactly the old lines if they
//! are still as we left them. Otherwise it must move only our own member, so that a human's edits of the others stay.

use serde_json::Value;

use super::Document;
use super::EditedDocument;
use super::FieldLayout;
use super::FieldUndo;
use super::FrontmatterError;
use super::parse;
use super::read_recorded_value;
use super::set_field;
use super::undo_fields;

/// The list of a field. A missing or empty field is an empty list.
///
/// `None` for a value that is not a list.
#[must_use]
pub fn list_members(value: Option<&Value>) -> Option<&[Value]> {
    match value {
        None | Some(Value::Null) => Some(&[]),
        Some(Value::Array(items)) => Some(items),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => None,
    }
}

/// Whether a list has a member that names the same record.
#[must_use]
pub fn has_member(items: &[Value], member: &str) -> bool {
    items.iter().any(|item| member_name(item).is_some_and(|name| name == strip_link_markup(member)))
}

/// Adds one member to the list of a field, or removes it. The other items keep their lines.
///
/// It changes nothing if the member is already present, or already absent.
///
/// # Errors
///
/// [`FrontmatterError::NotEditable`] if the field is not a list or names the member twice. Otherwise
/// the same as [`super::edit_fields`].
pub fn edit_member(bytes: &[u8], field: &str, member: &str, present: bool) -> Result<EditedDocument, FrontmatterError> {
    let doc = super::super::read_document(bytes)?;
    let mut items = read_members(&doc, field)?;
    let found: Vec<usize> = find_member_indices(&items, member);
    match (found.as_slice(), present) {
        ([], true) => items.push(Value::from(member)),
        ([only], false) => drop(items.remove(*only)),
        ([], false) | ([_, ..], true) => return Ok(EditedDocument { bytes: doc.into_bytes(), undo: Vec::new() }),
        ([_, _, ..], false) => {
            return Err(not_editable_error(&doc, field, "it names the member more than once; remove one of them"));
        }
    }
    let (next, inverse) = set_field(&doc, field, Some(&Value::Array(items)), &[])?;
    Ok(EditedDocument { bytes: next.into_bytes(), undo: vec![inverse] })
}

/// Undoes the change of [`edit_member`].
///
/// # Errors
///
/// [`FrontmatterError::Conflict`] if the field is no longer a list. [`FrontmatterError::BadUndo`]
/// if the recorded lines hold no such change. Otherwise the same as [`super::undo_fields`].
pub fn undo_member(bytes: &[u8], change: &FieldUndo) -> Result<Vec<u8>, FrontmatterError> {
    let member_change = read_member_change(change)?;
    match undo_fields(bytes, std::slice::from_ref(change)) {
        Err(FrontmatterError::Conflict { .. }) => {}
        done => return done,
    }
    let doc = super::super::read_document(bytes)?;
    let conflict = || FrontmatterError::Conflict { field: change.field.clone() };
    let mut items = list_members(doc.fields().get(&change.field)).ok_or_else(conflict)?.to_vec();
    match member_change {
        MemberChange::Added(member) => {
            items.retain(|item| !is_same_member(item, &member));
            write_remaining_members(doc, &change.field, &items)
        }
        MemberChange::Removed { member, before } => {
            if items.iter().any(|item| is_same_member(item, &member)) {
                return Ok(doc.into_bytes());
            }
            items.insert(find_insert_index(&items, &before, &member), member.clone());
            let lines = read_item_lines(&change.lines_before, &change.field);
            let recorded: Vec<(Value, String)> = lines.into_iter().filter(|(item, _)| *item == member).collect();
            set_field(&doc, &change.field, Some(&Value::Array(items)), &recorded).map(|(next, _)| next.into_bytes())
        }
    }
}

/// The effect of a recorded change on its list.
pub(super) enum MemberChange {
    Added(Value),
    Removed { member: Value, before: Vec<Value> },
}

pub(super) fn read_member_change(change: &FieldUndo) -> Result<MemberChange, FrontmatterError> {
    let bad = || FrontmatterError::BadUndo { field: change.field.clone() };
    let before = read_recorded_value(&change.field, &change.lines_before)?;
    let after = read_recorded_value(&change.field, &change.lines_after)?;
    let before = list_members(before.as_ref()).ok_or_else(bad)?;
    let after = list_members(after.as_ref()).ok_or_else(bad)?;
    let (more, fewer) = if before.len() > after.len() { (before, after) } else { (after, before) };
    let at = more.iter().zip(fewer).take_while(|(a, b)| a == b).count();
    if more.len() != fewer.len() + 1 || more[at + 1..] != fewer[at..] || member_name(&more[at]).is_none() {
        return Err(bad());
    }
    let member = more[at].clone();
    Ok(if before.len() > after.len() {
        MemberChange::Removed { member, before: before.to_vec() }
    } else {
        MemberChange::Added(member)
    })
}

/// Writes the list without our member. A field that we added is removed with its last member.
fn write_remaining_members(doc: Document, field: &str, items: &[Value]) -> Result<Vec<u8>, FrontmatterError> {
    let (left, inverse) = set_field(&doc, field, Some(&Value::Array(items.to_vec())), &[])?;
    let ours = items.is_empty() && left.yaml_text().lines().any(|line| line == format!("{field}: []"));
    let block = !inverse.lines_before.trim_start().starts_with(&format!("{field}: ["));
    if ours && block {
        return set_field(&doc, field, None, &[]).map(|(next, _)| next.into_bytes());
    }
    Ok(left.into_bytes())
}

/// The index at which a member is restored: after its former predecessor, or before its former successor.
fn find_insert_index(items: &[Value], before: &[Value], member: &Value) -> usize {
    let at = before.iter().position(|item| item == member).unwrap_or(before.len());
    let found = |wanted: &Value| items.iter().position(|item| item == wanted);
    let above = before[..at].iter().rev().find_map(found).map(|found| found + 1);
    above.or_else(|| before[at..].iter().find_map(found)).unwrap_or(items.len())
}

/// The items of a recorded block list, each with its own lines. Empty if it was written in another style.
fn read_item_lines(lines: &str, field: &str) -> Vec<(Value, String)> {
    let read = || -> Result<Vec<(Value, String)>, FrontmatterError> {
        let tree = parse::parse_tree(lines)?;
        let doc = super::super::read_document(format!("---\n{lines}---\n").as_bytes())?;
        let layout = FieldLayout::from_document(&doc, &tree, &[]);
        let entry = layout.root.map(|root| layout.planner.find_entry(root, field)).transpose()?.flatten();
        entry.map_or(Ok(Vec::new()), |entry| layout.planner.read_items(&entry))
    };
    read().unwrap_or_default()
}

fn read_members(doc: &Document, field: &str) -> Result<Vec<Value>, FrontmatterError> {
    let items = list_members(doc.fields().get(field)).map(<[Value]>::to_vec);
    items.ok_or_else(|| not_editable_error(doc, field, "it is not a list; write one `- item` per line"))
}

fn not_editable_error(doc: &Document, field: &str, why: &'static str) -> FrontmatterError {
    let begins = |line: &str| line.trim_start_matches([' ', '"', '\'']).starts_with(field);
    let line = doc.yaml_text().lines().position(begins).map_or(1, |at| at + 2);
    FrontmatterError::NotEditable { field: field.to_owned(), line, why }
}

fn find_member_indices(items: &[Value], member: &str) -> Vec<usize> {
    let same = |item: &Value| member_name(item).is_some_and(|name| name == strip_link_markup(member));
    items.iter().enumerate().filter(|(_, item)| same(item)).map(|(at, _)| at).collect()
}

pub(super) fn is_same_member(a: &Value, b: &Value) -> bool {
    member_name(a).is_some() && member_name(a) == member_name(b)
}

/// The name in an item of a list. To YAML, `[[Acme]]` without quotes is a list in a list.
#[must_use]
pub fn member_name(item: &Value) -> Option<&str> {
    match item {
        Value::String(text) => Some(strip_link_markup(text)),
        Value::Array(inner) => match inner.as_slice() {
            [only] => member_name(only),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The name without brackets, title and extension.
pub(crate) fn strip_link_markup(text: &str) -> &str {
    let inner = text.trim();
    let inner = inner.strip_prefix("[[").and_then(|t| t.strip_suffix("]]")).unwrap_or(inner);
    let inner = inner.split('|').next().unwrap_or_default().trim();
    inner.strip_suffix(".md").unwrap_or(inner)
}
