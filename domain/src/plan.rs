//! The exact change: which fields of which record, from which content, and how it lands.
//!
//! A [`Plan`] is made only by [`crate::decide::decide`] and by the answers of a human
//! ([`crate::undo`]); its fields are private so that nothing else can. It holds no free text
//! that could name a file or a field: both come from closed types. The vault's `apply` is the
//! only place that takes one, and [`Plan::prepare`] is how it learns the bytes to write.

use crate::audit::{AuditDraft, FieldPatch};
use crate::frontmatter::{self, FieldEdit, FieldUndo, Fields, FrontmatterError};
use crate::path::RecordPath;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;

/// Most bytes of a field's lines that a record keeps for the way back: 16 KiB, a quarter of what the
/// frontmatter of the record itself may have.
pub const MAX_UNDO_BYTES: usize = 16 * 1024;

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

/// What is done to the fields, exact enough to be carried out without thinking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// The decision is filed and nothing else.
    Nothing,
    /// Sets one field that must have this value now; `None` means absent.
    Set { field: String, expect: Option<Value>, value: Value },
    /// Puts back what an earlier change did, field by field.
    Restore(Vec<FieldPatch>),
}

/// A change that may be carried out, and the record that will remember it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub(crate) draft: AuditDraft,
    pub(crate) basis: Basis,
    pub(crate) change: Change,
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
    #[error("the lines of `{field}` have {bytes} bytes, too many to remember for an undo: shorten its comment")]
    TooLong { field: String, bytes: usize },
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
        self.draft.landing == Landing::Live && self.change != Change::Nothing
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
        let (after, patch) = match &self.change {
            Change::Nothing => (current.to_vec(), Vec::new()),
            Change::Set { field, expect, value } => {
                let now = document.fields().get(field);
                if now == Some(value) {
                    (current.to_vec(), Vec::new())
                } else if same(now, expect.as_ref()) {
                    set(current, field, now, value)?
                } else {
                    return Err(PrepareError::Conflict(vec![field.clone()]));
                }
            }
            Change::Restore(patches) => restore(current, document.fields(), patches)?,
        };
        Ok(Prepared { before, after, patch })
    }
}

fn set(
    current: &[u8],
    field: &str,
    prior: Option<&Value>,
    value: &Value,
) -> Result<(Vec<u8>, Vec<FieldPatch>), PrepareError> {
    let edit = FieldEdit { field: field.to_owned(), value: Some(value.clone()) };
    let edited = frontmatter::edit_with_undo(current, &[edit])?;
    let bytes = edited.undo.iter().map(|u| u.lines_before.len() + u.lines_after.len()).sum();
    if bytes > MAX_UNDO_BYTES {
        return Err(PrepareError::TooLong { field: field.to_owned(), bytes });
    }
    let patch = edited
        .undo
        .into_iter()
        .map(|undo| FieldPatch {
            field: undo.field.clone(),
            prior: prior.filter(|v| !v.is_null()).cloned(),
            value: Some(value.clone()),
            undo: Some(undo),
        })
        .collect();
    Ok((edited.bytes, patch))
}

/// A three-way merge by field: what stands as we left it goes back, what is back already is left
/// alone, what a human edited since is a conflict.
fn restore(current: &[u8], now: &Fields, patches: &[FieldPatch]) -> Result<(Vec<u8>, Vec<FieldPatch>), PrepareError> {
    let stands = |p: &&FieldPatch| same(now.get(&p.field), p.value.as_ref());
    let edited = |p: &&FieldPatch| !stands(p) && !same(now.get(&p.field), p.prior.as_ref());
    let conflicts: Vec<String> = patches.iter().filter(edited).map(|p| p.field.clone()).collect();
    if !conflicts.is_empty() {
        return Err(PrepareError::Conflict(conflicts));
    }
    let undo: Vec<FieldUndo> = patches.iter().filter(stands).filter_map(|p| p.undo.clone()).collect();
    let after = frontmatter::undo(current, &undo)?;
    let turned = |p: &FieldPatch| FieldPatch {
        field: p.field.clone(),
        prior: p.value.clone(),
        value: p.prior.clone(),
        undo: None,
    };
    Ok((after, patches.iter().filter(stands).map(turned).collect()))
}

/// Whether two values mean the same to a reader: an empty field says no more than a missing one.
fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    a.filter(|v| !v.is_null()) == b.filter(|v| !v.is_null())
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}
