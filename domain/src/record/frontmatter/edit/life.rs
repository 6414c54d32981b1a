//! The life of a set since it was as people wrote it: several changes of ours, taken back in any order.
//!
//! Each change knows only the lines that it met. So the changes are made again, in the lines from before
//! the first, and held against what each is known to have left; where all of it fits, nobody else has
//! touched the lines, and they become what the other changes alone would have left. One byte that
//! does not fit, and this says nothing.

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

/// One step in the life of a set; the changes are told apart by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetHistoryStep {
    /// A member came or went.
    Made(u64, FieldUndo),
    /// That was taken back.
    TakenBack(u64),
}

/// The file without one of the changes that stand; `None` where anyone else has touched the lines since.
#[must_use]
pub fn undo_set_step(bytes: &[u8], field: &str, steps: &[SetHistoryStep], without: u64) -> Option<Vec<u8>> {
    let doc = super::super::read_document(bytes).ok()?;
    let mut life: Option<SetReplay<'_>> = None;
    for step in steps {
        life = match (step, life) {
            (SetHistoryStep::Made(number, change), life) => {
                let goes_on = life.filter(|l| !l.standing.is_empty()).and_then(|l| l.with_change(*number, change));
                goes_on.or_else(|| SetReplay::begin(&doc, field, change)?.with_change(*number, change))
            }
            (SetHistoryStep::TakenBack(number), Some(life)) => life.without_change(*number),
            (SetHistoryStep::TakenBack(_), None) => None,
        };
    }
    let life = life?;
    let tree = parse::parse_tree(doc.yaml_text()).ok()?;
    let start = FieldLayout::from_document(&doc, &tree, &[]).field_lines(field).ok()??.start;
    let range = start..start + life.set_lines().len();
    if !doc.yaml_text()[start..].starts_with(life.set_lines()) {
        return None;
    }
    let left = life.without_change(without)?;
    let splices = vec![TextSplice { range: range.clone(), text: left.set_lines().to_owned() }];
    let value = left.now.fields().get(field);
    verify_edit(&doc, FieldEditClaim { field, value, range, splices }).ok().map(Document::into_bytes)
}

/// The lines of the set alone, below a field that stands for those above.
struct SetReplay<'c> {
    /// As people wrote it.
    base: Document,
    now: Document,
    /// Bytes of the line above.
    above: usize,
    standing: Vec<(u64, &'c FieldUndo)>,
}

impl<'c> SetReplay<'c> {
    fn begin(doc: &Document, field: &str, first: &FieldUndo) -> Option<Self> {
        let (tree, eol) = (parse::parse_tree(doc.yaml_text()).ok()?, doc.line_ending());
        let indent = " ".repeat(FieldLayout::from_document(doc, &tree, &[]).field_indent());
        let above = format!("{indent}not_{field}: 0{eol}");
        let text = format!("---{eol}{above}{}---{eol}", first.lines_before);
        let base = super::super::read_document(text.as_bytes()).ok()?;
        Some(Self { now: base.clone(), base, above: above.len(), standing: Vec::new() })
    }

    fn set_lines(&self) -> &str {
        &self.now.yaml_text()[self.above..]
    }

    /// With one more change, if it meets and leaves the lines that it is known to have met and left.
    fn with_change(mut self, number: u64, change: &'c FieldUndo) -> Option<Self> {
        let (now, met) = repeat_change(&self.now, change).ok()?;
        self.now = now;
        self.standing.push((number, change));
        (met.lines_before == change.lines_before && met.lines_after == change.lines_after).then_some(self)
    }

    /// As if that change had not been made.
    fn without_change(mut self, number: u64) -> Option<Self> {
        let at = self.standing.iter().position(|(n, _)| *n == number)?;
        self.standing.remove(at);
        self.now = self.base.clone();
        for (_, change) in &self.standing {
            self.now = repeat_change(&self.now, change).ok()?.0;
        }
        Some(self)
    }
}

/// The same change, made in other lines.
fn repeat_change(doc: &Document, change: &FieldUndo) -> Result<(Document, FieldUndo), FrontmatterError> {
    let conflict = || FrontmatterError::Conflict { field: change.field.clone() };
    let mut items = members::list_members(doc.fields().get(&change.field)).ok_or_else(conflict)?.to_vec();
    match members::read_member_change(change)? {
        MemberChange::In(member) => items.push(member),
        MemberChange::Out { member, .. } => items.retain(|item| !members::is_same_member(item, &member)),
    }
    set_field(doc, &change.field, Some(&Value::Array(items)), &[])
}
