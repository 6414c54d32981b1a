//! Replays the history of a set, so that several of our changes can be undone in any order.
//!
//! Each change recorded only the lines that it found and left. So all changes are applied again, from the lines before
//! the first one, and compared with the records. If everything matches, nobody else has edited the lines. Then they
//! become what the other changes alone would have left. If one byte differs, this module must return nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::splice::TextSplice;
use super::Document;
use super::FieldEditClaim;
use super::FieldLayout;
use super::FieldUndo;
use super::FrontmatterError;
use super::members::{self, MemberChange};
use super::parse;
use super::set_field;
use super::verify_edit;

/// One step in the history of a set. Each change has a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetHistoryStep {
    /// A member was added or removed.
    Applied(u64, FieldUndo),
    /// The change with this number was undone.
    Reverted(u64),
}

/// The file without one of the applied changes, or `None` if anyone else has edited the lines since.
#[must_use]
pub fn undo_set_step(bytes: &[u8], field: &str, steps: &[SetHistoryStep], without: u64) -> Option<Vec<u8>> {
    let doc = super::super::read_document(bytes).ok()?;
    let mut replay: Option<SetReplay<'_>> = None;
    for step in steps {
        replay = match (step, replay) {
            (SetHistoryStep::Applied(number, change), replay) => {
                let continued = replay.filter(|r| !r.applied.is_empty()).and_then(|r| r.with_change(*number, change));
                continued.or_else(|| SetReplay::begin(&doc, field, change)?.with_change(*number, change))
            }
            (SetHistoryStep::Reverted(number), Some(replay)) => replay.without_change(*number),
            (SetHistoryStep::Reverted(_), None) => None,
        };
    }
    let replay = replay?;
    let tree = parse::parse_tree(doc.yaml_text()).ok()?;
    let start = FieldLayout::from_document(&doc, &tree, &[]).field_lines(field).ok()??.start;
    let range = start..start + replay.set_lines().len();
    if !doc.yaml_text()[start..].starts_with(replay.set_lines()) {
        return None;
    }
    let remaining = replay.without_change(without)?;
    let splices = vec![TextSplice { range: range.clone(), text: remaining.set_lines().to_owned() }];
    let value = remaining.now.fields().get(field);
    verify_edit(&doc, FieldEditClaim { field, value, range, splices }).ok().map(Document::into_bytes)
}

/// The lines of the set alone, below one placeholder field for all fields above it.
struct SetReplay<'c> {
    /// The set before the first change.
    base: Document,
    now: Document,
    /// The length of the placeholder's line, in bytes.
    above: usize,
    applied: Vec<(u64, &'c FieldUndo)>,
}

impl<'c> SetReplay<'c> {
    fn begin(doc: &Document, field: &str, first: &FieldUndo) -> Option<Self> {
        let (tree, eol) = (parse::parse_tree(doc.yaml_text()).ok()?, doc.line_ending());
        let indent = " ".repeat(FieldLayout::from_document(doc, &tree, &[]).field_indent());
        let above = format!("{indent}not_{field}: 0{eol}");
        let text = format!("---{eol}{above}{}---{eol}", first.lines_before);
        let base = super::super::read_document(text.as_bytes()).ok()?;
        Some(Self { now: base.clone(), base, above: above.len(), applied: Vec::new() })
    }

    fn set_lines(&self) -> &str {
        &self.now.yaml_text()[self.above..]
    }

    /// Applies one more change, if it finds and leaves exactly its recorded lines.
    fn with_change(mut self, number: u64, change: &'c FieldUndo) -> Option<Self> {
        let (now, repeated) = repeat_change(&self.now, change).ok()?;
        self.now = now;
        self.applied.push((number, change));
        (repeated.lines_before == change.lines_before && repeated.lines_after == change.lines_after).then_some(self)
    }

    /// Replays all changes but this one.
    fn without_change(mut self, number: u64) -> Option<Self> {
        let index = self.applied.iter().position(|(n, _)| *n == number)?;
        self.applied.remove(index);
        self.now = self.base.clone();
        for (_, change) in &self.applied {
            self.now = repeat_change(&self.now, change).ok()?.0;
        }
        Some(self)
    }
}

/// Makes the same change in other lines.
fn repeat_change(doc: &Document, change: &FieldUndo) -> Result<(Document, FieldUndo), FrontmatterError> {
    let conflict = || FrontmatterError::Conflict { field: change.field.clone() };
    let mut items = members::list_members(doc.fields().get(&change.field)).ok_or_else(conflict)?.to_vec();
    match members::read_member_change(change)? {
        MemberChange::Added(member) => items.push(member),
        MemberChange::Removed { member, .. } => items.retain(|item| !members::is_same_member(item, &member)),
    }
    set_field(doc, &change.field, Some(&Value::Array(items)), &[])
}
