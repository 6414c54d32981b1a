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
use super::{Claim, Document, FieldUndo, FrontmatterError, Layout, parse, set_field, verify};

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
    let mut life: Option<Life<'_>> = None;
    for step in steps {
        life = match (step, life) {
            (SetStep::Made(number, change), life) => {
                let goes_on = life.filter(|l| !l.standing.is_empty()).and_then(|l| l.and(*number, change));
                goes_on.or_else(|| Life::begin(&doc, field, change)?.and(*number, change))
            }
            (SetStep::TakenBack(number), Some(life)) => life.without(*number),
            (SetStep::TakenBack(_), None) => None,
        };
    }
    let life = life?;
    let tree = parse::tree(doc.yaml()).ok()?;
    let start = Layout::of(&doc, &tree, &[]).lines(field).ok()??.start;
    let range = start..start + life.lines().len();
    if !doc.yaml()[start..].starts_with(life.lines()) {
        return None;
    }
    let left = life.without(without)?;
    let splices = vec![Splice { range: range.clone(), text: left.lines().to_owned() }];
    let value = left.now.fields().get(field);
    verify(&doc, Claim { field, value, range, splices }).ok().map(Document::into_bytes)
}

/// The lines of the set alone, below a field that stands for those above.
struct Life<'c> {
    /// As people wrote it.
    base: Document,
    now: Document,
    /// Bytes of the line above.
    above: usize,
    standing: Vec<(u64, &'c FieldUndo)>,
}

impl<'c> Life<'c> {
    fn begin(doc: &Document, field: &str, first: &FieldUndo) -> Option<Self> {
        let (tree, eol) = (parse::tree(doc.yaml()).ok()?, doc.line_ending());
        let indent = " ".repeat(Layout::of(doc, &tree, &[]).indent());
        let above = format!("{indent}not_{field}: 0{eol}");
        let text = format!("---{eol}{above}{}---{eol}", first.lines_before);
        let base = super::super::read(text.as_bytes()).ok()?;
        Some(Self { now: base.clone(), base, above: above.len(), standing: Vec::new() })
    }

    fn lines(&self) -> &str {
        &self.now.yaml()[self.above..]
    }

    /// With one more change, if it meets and leaves the lines that it is known to have met and left.
    fn and(mut self, number: u64, change: &'c FieldUndo) -> Option<Self> {
        let (now, met) = made(&self.now, change).ok()?;
        self.now = now;
        self.standing.push((number, change));
        (met.lines_before == change.lines_before && met.lines_after == change.lines_after).then_some(self)
    }

    /// As if that change had not been made.
    fn without(mut self, number: u64) -> Option<Self> {
        let at = self.standing.iter().position(|(n, _)| *n == number)?;
        self.standing.remove(at);
        self.now = self.base.clone();
        for (_, change) in &self.standing {
            self.now = made(&self.now, change).ok()?.0;
        }
        Some(self)
    }
}

/// The same change, made in other lines.
fn made(doc: &Document, change: &FieldUndo) -> Result<(Document, FieldUndo), FrontmatterError> {
    let conflict = || FrontmatterError::Conflict { field: change.field.clone() };
    let mut items = members::members(doc.fields().get(&change.field)).ok_or_else(conflict)?.to_vec();
    match members::moved(change)? {
        Moved::In(member) => items.push(member),
        Moved::Out { member, .. } => items.retain(|item| !members::alike(item, &member)),
    }
    set_field(doc, &change.field, Some(&Value::Array(items)), &[])
}
