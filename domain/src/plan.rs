//! The exact change: which fields of which record, from which content, and how it lands.
//!
//! A [`Plan`] is made only by [`crate::decide::decide`] and by the answers of a human
//! ([`crate::undo`]); its fields are private so that nothing else can. It holds no free text
//! that could name a file or a field: both come from closed types. The vault's `apply` is the
//! only place that takes one, and [`Plan::prepare`] is how it learns the bytes to write.

use crate::audit::{AuditDraft, FieldPatch};
use crate::frontmatter::{self, FieldEdit, FrontmatterError};
use crate::path::RecordPath;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;

/// SHA-256 of a whole file, in hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    /// The hash of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex(&Sha256::digest(bytes)))
    }

    /// 64 hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the first record of a chain names as its predecessor: 64 zeros.
    #[must_use]
    pub fn genesis() -> Self {
        Self("0".repeat(64))
    }
}

/// Names one action for good: 16 hex digits, the same however often the action is tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ActionId(String);

impl ActionId {
    /// Derives an id from what makes the action unique.
    #[must_use]
    pub fn derive(parts: &[&str]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        Self(hex(&hasher.finalize()[..8]))
    }

    /// The 16 hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text is not the id of an action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an action id is 16 hex digits")]
pub struct ActionIdError;

impl TryFrom<String> for ActionId {
    type Error = ActionIdError;

    fn try_from(text: String) -> Result<Self, ActionIdError> {
        let hex_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == 16 && text.bytes().all(hex_digit) { Ok(Self(text)) } else { Err(ActionIdError) }
    }
}

impl From<ActionId> for String {
    fn from(id: ActionId) -> Self {
        id.0
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a decision lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Landing {
    /// Nothing would change; the decision is filed.
    Recorded,
    /// It would change the record, but only says so.
    Shadow,
    /// It waits for a human's word.
    Pending,
    /// It changes the record.
    Live,
}

impl Landing {
    /// The word used in records and reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Shadow => "shadow",
            Self::Pending => "pending",
            Self::Live => "live",
        }
    }
}

/// What a change starts from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Basis {
    /// The whole content that was judged: a steward's own change.
    Content(ContentHash),
    /// The values of the fields alone: a human's answer, merged field by field.
    Fields,
}

/// One field's change, exact enough to be carried out without thinking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FieldChange {
    pub(crate) field: String,
    /// The value that must be there now; `None` means the field is absent.
    pub(crate) expect: Option<Value>,
    /// The value to be there afterwards; `None` removes the field.
    pub(crate) value: Option<Value>,
    /// Source lines to put back in place of `wrote`, when those still stand untouched.
    pub(crate) lines: Option<LineSwap>,
}

/// The source lines that an earlier change wrote and those it replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LineSwap {
    pub(crate) wrote: Option<String>,
    pub(crate) restore: Option<String>,
}

/// A change that may be carried out, and the record that will remember it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub(crate) draft: AuditDraft,
    pub(crate) basis: Basis,
    pub(crate) changes: Vec<FieldChange>,
}

/// The bytes to write and what undoing them takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    pub before: ContentHash,
    pub after: Vec<u8>,
    pub patch: Vec<FieldPatch>,
}

/// Why a plan does not fit the record as it is now. Nothing has been changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PrepareError {
    #[error("the record was changed meanwhile")]
    ChangedMeanwhile,
    #[error("edited by a human since: {}", .0.join(", "))]
    Conflict(Vec<String>),
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
}

impl Plan {
    /// Names the action; the same for every try.
    #[must_use]
    pub fn id(&self) -> &ActionId {
        &self.draft.id
    }

    /// The record it is about.
    #[must_use]
    pub fn target(&self) -> &RecordPath {
        &self.draft.target
    }

    /// What the audit record will say.
    #[must_use]
    pub fn draft(&self) -> &AuditDraft {
        &self.draft
    }

    /// How it lands; a brake may lower it, nothing raises it.
    #[must_use]
    pub fn landing(&self) -> Landing {
        self.draft.landing
    }

    /// When it was decided.
    #[must_use]
    pub fn at(&self) -> DateTime<Utc> {
        self.draft.timestamp
    }

    /// Whether it would write the target's file.
    #[must_use]
    pub fn changes_the_record(&self) -> bool {
        self.draft.landing == Landing::Live && !self.changes.is_empty()
    }

    /// The same plan with the brake pulled: a live change becomes a shadow one.
    #[must_use]
    pub fn braked(mut self) -> Self {
        if self.draft.landing == Landing::Live || self.draft.landing == Landing::Pending {
            self.draft.landing = Landing::Shadow;
            self.draft.pending_confirmation = false;
            self.draft.mode = crate::mode::Mode::Shadow;
            self.draft.gates.push(crate::decide::Gate::brake());
        }
        self
    }

    /// Works out the bytes to write over the record as it is now.
    ///
    /// # Errors
    /// [`PrepareError::ChangedMeanwhile`] when a steward's change meets other content than was
    /// judged; [`PrepareError::Conflict`] when a human's answer meets fields edited since.
    pub fn prepare(&self, current: &[u8]) -> Result<Prepared, PrepareError> {
        let before = ContentHash::of(current);
        if let Basis::Content(judged) = &self.basis
            && judged != &before
        {
            return Err(PrepareError::ChangedMeanwhile);
        }
        let document = frontmatter::read(current)?;
        let conflicts: Vec<String> = self
            .changes
            .iter()
            .filter(|c| document.fields().get(&c.field) != c.expect.as_ref())
            .map(|c| c.field.clone())
            .collect();
        if !conflicts.is_empty() {
            return Err(PrepareError::Conflict(conflicts));
        }
        let edits = self.changes.iter().map(|c| c.edit(current)).collect::<Vec<_>>();
        let after = frontmatter::edit(current, &edits)?;
        let patch = self.changes.iter().map(|c| c.patch(current, &after)).collect();
        Ok(Prepared { before, after, patch })
    }
}

impl FieldChange {
    /// Puts old lines back where ours stand untouched; otherwise sets the value and keeps what a
    /// human did to the rest of the line.
    fn edit(&self, current: &[u8]) -> FieldEdit {
        if let Some(swap) = &self.lines
            && frontmatter::raw_lines(current, &self.field) == swap.wrote
            && let Some(restore) = &swap.restore
        {
            return FieldEdit::raw(&self.field, restore.clone());
        }
        match &self.value {
            Some(value) => FieldEdit::set(&self.field, value.clone()),
            None => FieldEdit::remove(&self.field),
        }
    }

    fn patch(&self, before: &[u8], after: &[u8]) -> FieldPatch {
        FieldPatch {
            field: self.field.clone(),
            prior: self.expect.clone(),
            value: self.value.clone(),
            prior_lines: frontmatter::raw_lines(before, &self.field),
            lines: frontmatter::raw_lines(after, &self.field),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}
