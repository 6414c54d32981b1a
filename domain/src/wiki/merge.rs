//! Merges what a run wants with what people wrote meanwhile, and takes a run back below later changes.
//!
//! The body of a page is merged by lines, exactly as `git merge-file` does it: two changes overlap if no unchanged line
//! lies between them, unless both sides wrote the same there. Only bodies can overlap. The frontmatter is merged by field,
//! and the footnotes below the body by label. Of two values that exclude each other, the person's stays.

mod fields;
mod footnotes;
mod lines;

use crate::record::frontmatter::{self, Document, FieldEdit, FrontmatterError, RecordFields};
use serde_json::Value;

pub(super) use footnotes::{SplitBody, list_sources};
pub use lines::{DiffLine, LineConflict, list_diff_lines, merge_lines};

/// Why two versions of a page cannot be merged. Nothing is changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PageMergeError {
    #[error(transparent)]
    Overlap(#[from] LineConflict),
    #[error("both sides gave the label `{0}` to different footnotes")]
    Footnote(String),
    #[error("its frontmatter cannot be merged: {0}")]
    Frontmatter(#[from] FrontmatterError),
}

/// Merges a page: `ours` is what a run wants and `theirs` what stands there now; both came from `base`.
///
/// To take a run back, `base` is what it left and `ours` what was there before it.
///
/// # Errors
/// [`PageMergeError::Overlap`] if both changed the same lines of the body; its line counts in the file of `theirs`.
pub fn merge_page(base: &str, ours: &str, theirs: &str) -> Result<String, PageMergeError> {
    if base == ours || ours == theirs {
        return Ok(theirs.to_owned());
    }
    if base == theirs {
        return Ok(ours.to_owned());
    }
    let [base, ours, theirs] = [base, ours, theirs].map(|text| frontmatter::read_note(text.as_bytes()));
    let (base, ours, theirs) = (base?, ours?, theirs?);
    let body = merge_bodies(&base, &ours, &theirs)?;
    let merged = merge_fields(&base, &ours, &theirs, &list_sources(&body))?;
    let above = merged.as_str().len() - merged.body().len();
    Ok(format!("{}{body}", &merged.as_str()[..above]))
}

/// The page of `theirs` with the merged fields. Sources that footnotes still name stay.
pub(super) fn merge_fields(
    base: &Document,
    ours: &Document,
    theirs: &Document,
    cited: &[&str],
) -> Result<Document, FrontmatterError> {
    let mut merged: RecordFields = fields::merge_maps(base.fields(), ours.fields(), theirs.fields());
    if let (Some(Value::Array(sources)), Some(Value::Array(now))) =
        (merged.get_mut("sources"), theirs.fields().get("sources"))
    {
        let is_cited = |source: &&Value| source.as_str().is_some_and(|source| cited.contains(&source));
        let lost: Vec<Value> =
            now.iter().filter(|source| is_cited(source) && !sources.contains(source)).cloned().collect();
        sources.extend(lost);
    }
    let changed = merged.iter().filter(|(name, value)| theirs.fields().get(*name) != Some(value));
    let edits = changed.map(|(name, value)| FieldEdit { field: name.clone(), value: Some(value.clone()) });
    let removed = theirs.fields().keys().filter(|name| !merged.contains_key(*name));
    let removals = removed.map(|name| FieldEdit { field: name.clone(), value: None });
    let edits: Vec<FieldEdit> = edits.chain(removals).collect();
    if edits.is_empty() {
        return Ok(theirs.clone());
    }
    frontmatter::read_note(&frontmatter::edit_fields(theirs.as_str().as_bytes(), &edits)?)
}

fn merge_bodies(base: &Document, ours: &Document, theirs: &Document) -> Result<String, PageMergeError> {
    let [base, ours, current] = [base, ours, theirs].map(|page| SplitBody::new(page.body()));
    let text = merge_lines(base.text, ours.text, current.text).map_err(|conflict| {
        let above = theirs.as_str().len() - theirs.body().len();
        LineConflict { line: conflict.line + theirs.as_str()[..above].matches('\n').count(), ..conflict }
    })?;
    footnotes::join(text, &base, &ours, &current).map_err(PageMergeError::Footnote)
}

#[cfg(test)]
mod tests;
