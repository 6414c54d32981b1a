//! The life of a set since it was as people wrote it: several changes of ours, taken back in any order.
//!
//! Each change knows only the lines that it met. So the changes are made again, in the lines from before
//! the first, and held against what each is known to have left; where all of it fits, nobody else has
//! touched the lines, and they become what the other changes alone would have left. One byte that
//! does not fit, and this says nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::splice::Splice;
use super::members::{self, Moved};
use super::{Claim, Document, FieldUndo, FrontmatterError, Layout, parse, recorded_value, set_field, verify};

/// One step in the life of a set; the changes are told apart by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetStep {
    /// A member came or went.
    Made(u64, FieldUndo),
    /// That was taken back.
    TakenBack(u64),
}

/// The file without one of the changes that stand; `None` where anyone else has touched the lines since.
#[must_use]
pub fn unwind(bytes: &[u8], field: &str, steps: &[SetStep], without: u64) -> Option<Vec<u8>> {
    let doc = super::super::read(bytes).ok()?;
    let lines_now = lines_of(&doc, field).filter(|lines| !lines.is_empty())?;
    let mut life: Option<Life<'_>> = None;
    for step in steps {
        life = match (step, life) {
            (SetStep::Made(number, change), life) => {
                let goes_on = life.filter(|l| !l.standing.is_empty() && l.lines == change.lines_before);
                goes_on.or_else(|| Life::begin(&doc, field, change)).and_then(|l| l.and(*number, change))
            }
            (SetStep::TakenBack(number), Some(life)) => life.without(*number),
            (SetStep::TakenBack(_), None) => None,
        };
    }
    let life = life.filter(|l| l.lines == lines_now)?;
    let left = life.without(without)?;
    with_lines(&doc, field, &left.lines).map(Document::into_bytes)
}

struct Life<'c> {
    field: &'c str,
    /// As people wrote it.
    base: Document,
    now: Document,
    standing: Vec<(u64, &'c FieldUndo)>,
    lines: String,
}

impl<'c> Life<'c> {
    fn begin(doc: &Document, field: &'c str, first: &FieldUndo) -> Option<Self> {
        let base = with_lines(doc, field, &first.lines_before)?;
        let lines = lines_of(&base, field)?;
        Some(Self { field, now: base.clone(), base, standing: Vec::new(), lines })
    }

    /// With one more change, if it leaves the lines that it is known to have left.
    fn and(mut self, number: u64, change: &'c FieldUndo) -> Option<Self> {
        self.now = made(&self.now, change).ok()?;
        self.lines = lines_of(&self.now, self.field)?;
        self.standing.push((number, change));
        (self.lines == change.lines_after).then_some(self)
    }

    /// As if that change had not been made.
    fn without(mut self, number: u64) -> Option<Self> {
        let at = self.standing.iter().position(|(n, _)| *n == number)?;
        self.standing.remove(at);
        self.now = self.base.clone();
        for (_, change) in &self.standing {
            self.now = made(&self.now, change).ok()?;
        }
        self.lines = lines_of(&self.now, self.field)?;
        Some(self)
    }
}

/// The same change, made in other lines.
fn made(doc: &Document, change: &FieldUndo) -> Result<Document, FrontmatterError> {
    let conflict = || FrontmatterError::Conflict { field: change.field.clone() };
    let mut items = members::members(doc.fields().get(&change.field)).ok_or_else(conflict)?.to_vec();
    match members::moved(change)? {
        Moved::In(member) => items.push(member),
        Moved::Out { member, .. } => items.retain(|item| !members::alike(item, &member)),
    }
    set_field(doc, &change.field, Some(&Value::Array(items)), &[]).map(|(next, _)| next)
}

/// The lines of a field; empty where it is missing.
fn lines_of(doc: &Document, field: &str) -> Option<String> {
    let tree = parse::tree(doc.yaml()).ok()?;
    let lines = Layout::of(doc, &tree, &[]).lines(field).ok()?;
    Some(lines.map(|lines| doc.yaml()[lines].to_owned()).unwrap_or_default())
}

/// The same file with other lines of a field that it has.
fn with_lines(doc: &Document, field: &str, lines: &str) -> Option<Document> {
    let tree = parse::tree(doc.yaml()).ok()?;
    let range = Layout::of(doc, &tree, &[]).lines(field).ok()??;
    if &doc.yaml()[range.clone()] == lines {
        return Some(doc.clone());
    }
    let value = recorded_value(field, lines).ok()?;
    let splices = vec![Splice { range: range.clone(), text: lines.to_owned() }];
    verify(doc, Claim { field, value: value.as_ref(), range, splices }).ok()
}
