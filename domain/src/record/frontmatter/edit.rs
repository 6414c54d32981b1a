//! Edits single fields of a record, and restores them.
//!
//! Fields are edited one at a time. `splice` proposes the new text. `verify_edit` reads it back with both parsers and
//! compares it with the wanted value. It must trust neither the planner nor recorded lines. After an error nothing is
//! changed. The caller writes the bytes. The undo recipe of the audit record keeps the [`FieldUndo`]s.

mod life;
mod members;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Document;
use super::FrontmatterError;
use super::emit;
use super::parse;
use super::splice::{SplicePlanner, TextSplice, apply_splices};
use crate::record::unlinked;

pub use life::{SetHistoryStep, undo_set_step};
pub(crate) use members::strip_link_markup;
pub use members::{edit_member, has_member, list_members, member_name, undo_member};

/// A requested edit: one top-level field and its new value.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldEdit {
    pub field: String,
    /// The new value. `None` removes the field.
    pub value: Option<Value>,
}

impl FieldEdit {
    /// The edit as it is written into a file of Steward's own ([`crate::record::unlinked`]).
    #[must_use]
    pub fn unlink(mut self) -> Self {
        self.value.iter_mut().for_each(unlinked::unlink_value);
        self
    }
}

/// The data that restores one changed field, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldUndo {
    pub field: String,
    /// The field's lines before the change, with their endings. Empty if the field was absent.
    pub lines_before: String,
    /// The same lines after the change. Empty if the field was removed.
    pub lines_after: String,
    /// The field above it, or `None` if it was the first.
    pub below: Option<String>,
    /// The number of lines between the end of that field, or the opening fence, and this one.
    pub distance: usize,
}

impl FieldUndo {
    /// The field's values before and after the change, as the recorded lines hold them.
    ///
    /// # Errors
    ///
    /// [`FrontmatterError::BadUndo`] if the recorded lines are not lines of the field.
    pub fn recorded_values(&self) -> Result<(Option<Value>, Option<Value>), FrontmatterError> {
        Ok((
            read_recorded_value(&self.field, &self.lines_before)?,
            read_recorded_value(&self.field, &self.lines_after)?,
        ))
    }
}

/// The outcome of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedDocument {
    /// The whole new file.
    pub bytes: Vec<u8>,
    /// The input of [`undo_fields`]: one entry for each field that changed, in the order of the edits.
    pub undo: Vec<FieldUndo>,
}

/// Returns the new bytes of the whole file. Only the lines of the named fields differ.
///
/// Edits that change no value return the bytes unchanged.
///
/// # Errors
///
/// [`FrontmatterError`] if [`super::read_document`] refuses the file, if a field cannot be edited by lines, or if the
/// result does not read back as wanted.
pub fn edit_fields(bytes: &[u8], edits: &[FieldEdit]) -> Result<Vec<u8>, FrontmatterError> {
    edit_fields_with_undo(bytes, edits).map(|edited| edited.bytes)
}

/// Like [`edit_fields`], and also returns the data that restores the old bytes.
///
/// # Errors
///
/// The same as [`edit_fields`].
pub fn edit_fields_with_undo(bytes: &[u8], edits: &[FieldEdit]) -> Result<EditedDocument, FrontmatterError> {
    let mut doc = super::read_document(bytes)?;
    let mut undo = Vec::new();
    for edit in edits {
        if doc.fields().get(&edit.field) == edit.value.as_ref() {
            continue;
        }
        let (next, inverse) = set_field(&doc, &edit.field, edit.value.as_ref(), &[])?;
        undo.push(inverse);
        doc = next;
    }
    Ok(EditedDocument { bytes: doc.into_bytes(), undo })
}

/// Restores changed fields, the last change first.
///
/// If a field's lines are still as the change left them, they become exactly the old lines. If only
/// their formatting was edited since (a comment, a quote), the value is restored and the formatting stays. A field
/// that already has its old value is left alone.
///
/// # Errors
///
/// [`FrontmatterError::Conflict`] if a field has neither the old nor the new value.
/// [`FrontmatterError::BadUndo`] if the recorded lines are not lines of the field. Otherwise the same as
/// [`edit_fields`].
pub fn undo_fields(bytes: &[u8], changes: &[FieldUndo]) -> Result<Vec<u8>, FrontmatterError> {
    let mut doc = super::read_document(bytes)?;
    for change in changes.iter().rev() {
        let before = read_recorded_value(&change.field, &change.lines_before)?;
        let after = read_recorded_value(&change.field, &change.lines_after)?;
        let now = doc.fields().get(&change.field);
        if now == before.as_ref() {
            continue;
        }
        if now != after.as_ref() {
            return Err(FrontmatterError::Conflict { field: change.field.clone() });
        }
        doc = match restore_lines(&doc, change, before.as_ref())? {
            Some(restored) => restored,
            None => set_field(&doc, &change.field, before.as_ref(), &[])?.0,
        };
    }
    Ok(doc.into_bytes())
}

/// The field's value in its recorded lines.
fn read_recorded_value(field: &str, lines: &str) -> Result<Option<Value>, FrontmatterError> {
    if lines.is_empty() {
        return Ok(None);
    }
    let bad = || FrontmatterError::BadUndo { field: field.to_owned() };
    let mut fields = parse::parse_fields(lines).map_err(|_| bad())?;
    let value = fields.remove(field).filter(|_| fields.is_empty() && lines.ends_with('\n'));
    value.map(Some).ok_or_else(bad)
}

/// Restores the recorded lines. Returns `None` if the present lines are formatted differently.
fn restore_lines(
    doc: &Document,
    change: &FieldUndo,
    before: Option<&Value>,
) -> Result<Option<Document>, FrontmatterError> {
    let tree = parse::parse_tree(doc.yaml_text())?;
    let layout = FieldLayout::from_document(doc, &tree, &[]);
    let start = match layout.field_lines(&change.field)? {
        Some(lines) => lines.start,
        None => layout.find_restore_offset(change)?,
    };
    if !doc.yaml_text()[start..].starts_with(&change.lines_after) {
        return Ok(None);
    }
    let range = start..start + change.lines_after.len();
    let splices = vec![TextSplice { range: range.clone(), text: change.lines_before.clone() }];
    verify_edit(doc, FieldEditClaim { field: &change.field, value: before, range, splices }).map(Some)
}

/// Sets or removes one field. `recorded_items` are former items of a block list, with their lines.
fn set_field(
    doc: &Document,
    field: &str,
    value: Option<&Value>,
    recorded_items: &[(Value, String)],
) -> Result<(Document, FieldUndo), FrontmatterError> {
    let yaml = doc.yaml_text();
    let tree = parse::parse_tree(yaml)?;
    let layout = FieldLayout::from_document(doc, &tree, recorded_items);
    layout.check_root(field)?;
    let entry = match layout.root {
        Some(root) => layout.planner.find_entry(root, field)?,
        None => None,
    };
    let end = yaml.len();
    let (range, splices) = match (&entry, value) {
        (Some(entry), Some(value)) => (entry.lines.clone(), layout.planner.set_value(entry, value)?),
        (Some(entry), None) => {
            let range = entry.lines.clone();
            (range.clone(), vec![TextSplice { range, text: String::new() }])
        }
        (None, Some(value)) => {
            let text = emit::format_field(field, value, layout.field_indent(), layout.planner.eol);
            (end..end, vec![TextSplice { range: end..end, text }])
        }
        (None, None) => (end..end, Vec::new()),
    };
    let (below, distance) = layout.find_position(range.start)?;
    let next = verify_edit(doc, FieldEditClaim { field, value, range: range.clone(), splices })?;
    let unchanged_tail = yaml.len() - range.end;
    let undo = FieldUndo {
        field: field.to_owned(),
        lines_before: yaml[range.clone()].to_owned(),
        lines_after: next.yaml_text()[range.start..next.yaml_text().len() - unchanged_tail].to_owned(),
        below,
        distance,
    };
    Ok((next, undo))
}

/// The claim of an edit about itself. `verify_edit` checks all of it.
struct FieldEditClaim<'a> {
    field: &'a str,
    value: Option<&'a Value>,
    /// The only lines of the YAML text that may differ.
    range: Range<usize>,
    splices: Vec<TextSplice>,
}

/// Applies an edit to a copy and accepts it only if it did what it claims.
fn verify_edit(doc: &Document, claim: FieldEditClaim<'_>) -> Result<Document, FrontmatterError> {
    let refuse = |why: String| FrontmatterError::Unverified { field: claim.field.to_owned(), why };
    let yaml = doc.yaml_text();
    let inside = |splice: &TextSplice| {
        claim.range.start <= splice.range.start
            && splice.range.start <= splice.range.end
            && splice.range.end <= claim.range.end
    };
    if !claim.splices.iter().all(inside) {
        return Err(refuse("the edit reaches beyond the lines of the field".to_owned()));
    }
    let tree = parse::parse_tree(yaml)?;
    let own = |name: &str, lines: &Range<usize>| {
        name == claim.field || lines.end <= claim.range.start || claim.range.end <= lines.start
    };
    if !FieldLayout::from_document(doc, &tree, &[]).all_field_lines()?.iter().all(|(name, lines)| own(name, lines)) {
        return Err(refuse("lines of other fields would change".to_owned()));
    }
    let changed = apply_splices(yaml, claim.splices).ok_or_else(|| refuse("the edit contradicts itself".to_owned()))?;
    let (above, below) = (&yaml[..claim.range.start], &yaml[claim.range.end..]);
    let kept = changed.len() >= above.len() + below.len() && changed.starts_with(above) && changed.ends_with(below);
    let whole_lines = |text: &str| text.is_empty() || text.ends_with('\n');
    if !kept || !whole_lines(above) || !whole_lines(&changed) {
        return Err(refuse("lines of other fields would change".to_owned()));
    }
    let next = doc.with_yaml(&changed).map_err(|error| refuse(error.to_string()))?;
    if next.yaml_text() != changed || next.body() != doc.body() {
        return Err(refuse("the frontmatter would end elsewhere".to_owned()));
    }
    if next.fields().get(claim.field) != claim.value {
        return Err(refuse("it would not read back as the wanted value".to_owned()));
    }
    let others = |doc: &Document| -> Vec<(String, Value)> {
        let others = doc.fields().iter().filter(|(name, _)| *name != claim.field);
        others.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    if others(doc) != others(&next) {
        return Err(refuse("the value of another field would change".to_owned()));
    }
    Ok(next)
}

/// The positions of the top-level fields.
struct FieldLayout<'t> {
    planner: SplicePlanner<'t>,
    root: Option<oneyaml::NodeRef<'t>>,
}

impl<'t> FieldLayout<'t> {
    fn from_document(doc: &'t Document, tree: &'t oneyaml::Document, recorded_items: &'t [(Value, String)]) -> Self {
        let planner = SplicePlanner { yaml: doc.yaml_text(), eol: doc.line_ending(), recorded_items };
        Self { planner, root: parse::root_node(tree) }
    }

    /// Refuses a frontmatter in braces, because there several fields may share one line.
    fn check_root(&self, field: &str) -> Result<(), FrontmatterError> {
        match self.root {
            Some(root) if root.text().starts_with('{') => Err(FrontmatterError::NotEditable {
                field: field.to_owned(),
                line: parse::line_in_file(self.planner.yaml, root.span().start),
                why: "the frontmatter is written in braces; write one `field: value` per line",
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// The number of spaces before a new field.
    fn field_indent(&self) -> usize {
        let start = self.root.map_or(0, |root| root.span().start);
        start - self.planner.yaml[..start].rfind('\n').map_or(0, |found| found + 1)
    }

    fn field_lines(&self, field: &str) -> Result<Option<Range<usize>>, FrontmatterError> {
        Ok(self.all_field_lines()?.into_iter().find(|(name, _)| name == field).map(|(_, lines)| lines))
    }

    /// The lines of all fields, in order.
    fn all_field_lines(&self) -> Result<Vec<(String, Range<usize>)>, FrontmatterError> {
        self.root.map_or_else(|| Ok(Vec::new()), |root| self.planner.mapping_lines(root))
    }

    /// The field above an offset, and the number of lines between them.
    fn find_position(&self, start: usize) -> Result<(Option<String>, usize), FrontmatterError> {
        let above = self.all_field_lines()?.into_iter().rev().find(|(_, lines)| lines.start < start);
        let (name, from) = above.map_or((None, 0), |(name, lines)| (Some(name), lines.end));
        Ok((name, self.planner.yaml[from..start].matches('\n').count()))
    }

    /// The offset at which a removed field is restored.
    ///
    /// It is as far below its neighbour as before, but above the next field. If the neighbour is gone, it is the end.
    fn find_restore_offset(&self, change: &FieldUndo) -> Result<usize, FrontmatterError> {
        let yaml = self.planner.yaml;
        let all = self.all_field_lines()?;
        let (from, next) = match &change.below {
            None => (0, 0),
            Some(name) => match all.iter().position(|(seen, _)| seen == name) {
                Some(index) => (all[index].1.end, index + 1),
                None => return Ok(yaml.len()),
            },
        };
        let gap = &yaml[from..all.get(next).map_or(yaml.len(), |(_, lines)| lines.start)];
        let ends = gap.match_indices('\n').map(|(at, _)| from + at + 1);
        Ok(std::iter::once(from).chain(ends).nth(change.distance).unwrap_or(from + gap.len()))
    }
}

#[cfg(test)]
mod tests;
