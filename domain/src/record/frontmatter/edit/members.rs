//! One member enters or leaves a set: a list of links such as `related_to`.
//!
//! People write the same link in more than one way, so members are compared by what they name. A
//! missing or empty field is the empty set; what is no list is refused. Taking a change back puts the
//! very lines back where they still stand as we left them; otherwise it moves our member alone, and
//! whatever a human did to the others stays. Bytes and recipes go the same way as those of [`super::edit`].

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

/// The list of a field; a missing or empty field is an empty one.
///
/// `None` for a value that is no list.
#[must_use]
pub fn list_members(value: Option<&Value>) -> Option<&[Value]> {
    match value {
        None | Some(Value::Null) => Some(&[]),
        Some(Value::Array(items)) => Some(items),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => None,
    }
}

/// Whether a list has a member that names the same.
#[must_use]
pub fn has_member(items: &[Value], member: &str) -> bool {
    items.iter().any(|item| member_name(item).is_some_and(|name| name == strip_link_markup(member)))
}

/// Lets one member into the list of a field, or takes it out; the other items keep their lines.
///
/// A member that is there already, or not there, changes nothing.
///
/// # Errors
///
/// [`FrontmatterError::NotEditable`] where the field is no list or names the member twice; otherwise
/// the same as [`super::edit()`].
pub fn edit_member(bytes: &[u8], field: &str, member: &str, present: bool) -> Result<EditedDocument, FrontmatterError> {
    let doc = super::super::read_document(bytes)?;
    let mut items = read_members(&doc, field)?;
    let found: Vec<usize> = find_member_indices(&items, member);
    match (found.as_slice(), present) {
        ([], true) => items.push(Value::from(member)),
        ([only], false) => drop(items.remove(*only)),
        ([], false) | ([_, ..], true) => return Ok(EditedDocument { bytes: doc.into_bytes(), undo: Vec::new() }),
        ([_, _, ..], false) => {
            return Err(not_editable_error(&doc, field, "it names the member more than once; take one of them out"));
        }
    }
    let (next, inverse) = set_field(&doc, field, Some(&Value::Array(items)), &[])?;
    Ok(EditedDocument { bytes: next.into_bytes(), undo: vec![inverse] })
}

/// Takes back what [`edit_member`] did.
///
/// # Errors
///
/// [`FrontmatterError::Conflict`] where the field is no list any more; [`FrontmatterError::BadUndo`]
/// where the recorded lines tell of no such change; otherwise the same as [`super::undo`].
pub fn undo_member(bytes: &[u8], change: &FieldUndo) -> Result<Vec<u8>, FrontmatterError> {
    let moved = read_member_change(change)?;
    match undo_fields(bytes, std::slice::from_ref(change)) {
        Err(FrontmatterError::Conflict { .. }) => {}
        done => return done,
    }
    let doc = super::super::read_document(bytes)?;
    let conflict = || FrontmatterError::Conflict { field: change.field.clone() };
    let mut items = list_members(doc.fields().get(&change.field)).ok_or_else(conflict)?.to_vec();
    match moved {
        MemberChange::In(member) => {
            items.retain(|item| !is_same_member(item, &member));
            write_remaining_members(doc, &change.field, &items)
        }
        MemberChange::Out { member, before } => {
            if items.iter().any(|item| is_same_member(item, &member)) {
                return Ok(doc.into_bytes());
            }
            items.insert(find_insert_index(&items, &before, &member), member.clone());
            let lines = read_item_lines(&change.lines_before, &change.field);
            let words: Vec<(Value, String)> = lines.into_iter().filter(|(item, _)| *item == member).collect();
            set_field(&doc, &change.field, Some(&Value::Array(items)), &words).map(|(next, _)| next.into_bytes())
        }
    }
}

/// What a recorded change did to its list.
pub(super) enum MemberChange {
    In(Value),
    Out { member: Value, before: Vec<Value> },
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
        MemberChange::Out { member, before: before.to_vec() }
    } else {
        MemberChange::In(member)
    })
}

/// Writes the list without our member. A field that we brought goes with its last member.
fn write_remaining_members(doc: Document, field: &str, items: &[Value]) -> Result<Vec<u8>, FrontmatterError> {
    let (left, inverse) = set_field(&doc, field, Some(&Value::Array(items.to_vec())), &[])?;
    let ours = items.is_empty() && left.yaml_text().lines().any(|line| line == format!("{field}: []"));
    let block = !inverse.lines_before.trim_start().starts_with(&format!("{field}: ["));
    if ours && block {
        return set_field(&doc, field, None, &[]).map(|(next, _)| next.into_bytes());
    }
    Ok(left.into_bytes())
}

/// Where a member goes back to: behind the one it followed, or before the one that followed it.
fn find_insert_index(items: &[Value], before: &[Value], member: &Value) -> usize {
    let at = before.iter().position(|item| item == member).unwrap_or(before.len());
    let found = |wanted: &Value| items.iter().position(|item| item == wanted);
    let above = before[..at].iter().rev().find_map(found).map(|found| found + 1);
    above.or_else(|| before[at..].iter().find_map(found)).unwrap_or(items.len())
}

/// The items of a recorded block list, each with its own lines; none where it was written otherwise.
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
    items.ok_or_else(|| not_editable_error(doc, field, "it is no list; write one `- item` a line"))
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

/// What an item of a list names; `[[Acme]]` without quotes is a list in a list to YAML.
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

/// The name without brackets, title and ending.
pub(crate) fn strip_link_markup(text: &str) -> &str {
    let inner = text.trim();
    let inner = inner.strip_prefix("[[").and_then(|t| t.strip_suffix("]]")).unwrap_or(inner);
    let inner = inner.split('|').next().unwrap_or_default().trim();
    inner.strip_suffix(".md").unwrap_or(inner)
}
