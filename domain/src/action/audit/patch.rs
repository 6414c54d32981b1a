//! The written change of a record, and the data that undoes it.
//!
//! A patch names the field and, in a vault with a mapping, the property of the note. Its values are the note's own words.

use super::millis;
use crate::record::frontmatter::FieldUndo;
use crate::tracker::PlaneRevert;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One changed field, before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldPatch {
    pub field: String,
    /// The property of the note that has the field's role. `None` in a vault without a mapping, where both are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    /// The value before as it was written, or `None` if the property was absent.
    pub prior: Option<Value>,
    /// The value after as it was written, or `None` if the property was removed.
    pub value: Option<Value>,
    /// The lines of both and their position. `None` in the record of an undo.
    pub undo: Option<FieldUndo>,
}

impl FieldPatch {
    /// The key in the note.
    #[must_use]
    pub fn key(&self) -> &str {
        self.property.as_deref().unwrap_or(&self.field)
    }
}

/// The data that undoes a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UndoRecipe {
    pub vault_patch: Vec<FieldPatch>,
    /// `None` if the change owes nothing to the tracker.
    pub plane_revert: Option<PlaneRevert>,
    #[serde(with = "millis")]
    pub expires_at: DateTime<Utc>,
}
