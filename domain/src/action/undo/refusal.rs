//! Why a resolution is refused, with the fix.
//!
//! A refusal changes nothing. Every interface shows its message; programs read its name and its data.

use crate::action::audit::{ActionKind, AuditDraft};
use crate::action::plan::Disposition;
use serde::{Deserialize, Serialize};

/// Why a resolution is refused. [`ResolutionRefusal::http_status`] is its HTTP status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum ResolutionRefusal {
    #[error("no action has the id {id}: list them with `steward audit list`")]
    Unknown { id: String },
    #[error("{count} actions begin with {id}: give more digits")]
    Ambiguous { id: String, count: usize },
    #[error("an action is named by 4 to 16 hex digits of its id, not by `{id}`: list them with `steward audit list`")]
    Malformed { id: String },
    #[error("{id} {}", describe_without_recipe(.disposition))]
    NothingToUndo { id: String, disposition: String },
    #[error("{id} is not pending ({disposition}){}", describe_shadow(.disposition))]
    NotPending { id: String, disposition: String },
    #[error(
        "{id} is a question and proposes nothing: say what the note becomes with `steward confirm {id} --set done`"
    )]
    NothingProposed { id: String },
    #[error(
        "{id} is neither a proposal that was made in Watch nor what an assistant undid or dismissed, so nobody can call it right or wrong: confirm or dismiss it"
    )]
    NotWatched { id: String },
    #[error(
        "{id} is no dismissal and no `right` or `wrong`, so it cannot be taken back: `steward undo` undoes a change"
    )]
    NothingToReopen { id: String },
    #[error("{id} can no longer be taken back: that was possible until {ended}")]
    ReopenExpired { id: String, ended: String },
    #[error("only a person may do this, because it raises trust: use the dashboard or the command line")]
    PersonOnly,
    #[error("{id} demoted nothing, so there is nothing to restore")]
    NothingToRaise { id: String },
    #[error(
        "{id} cannot be confirmed: a ceiling of `ask`, a missing matter or its matter's policy leaves this change to \
         you, now or when it was proposed; make it by hand"
    )]
    HumanOnly { id: String },
    /// `undo` is the confirmation that resolved it, if that changed the record and can be undone.
    #[error(
        "{id} was already {how} by {by}{}",
        undo.as_ref().map(|id| format!("; `steward undo {id}` undoes that")).unwrap_or_default()
    )]
    AlreadyResolved { id: String, how: String, by: String, undo: Option<String> },
    #[error("{id} cannot be confirmed with that value: {reason}")]
    NotAnEdit { id: String, reason: String },
    #[error("{id} set how far a sender may go, and that stays: {reason}")]
    CeilingStays { id: String, reason: String },
    #[error("edited by a human since: {}; nothing was changed", fields.join(", "))]
    Conflict { fields: Vec<String> },
    #[error("{id} is not the newest change of {}: undo {newer} first", fields.join(", "))]
    NotTheNewest { id: String, fields: Vec<String>, newer: String },
    #[error("{id} cannot be confirmed in a batch: newer messages make it unclear; check it and confirm it alone")]
    Unclear { id: String },
    #[error("{id} was proposed under another mapping of the vault, so it has ended: its messages are judged again")]
    OtherMapping { id: String },
    #[error("{id} was made under a mapping that no record of an acceptance holds: run `steward audit verify`")]
    UnknownMapping { id: String },
    #[error("the mode is shadow now, so no record may be changed: set STEWARD_LIVE_MODE")]
    ShadowNow,
    #[error("the vault is stopped, so no record may be changed: `steward resume` lets it run again")]
    Stopped,
    #[error("{id} can no longer be undone: its undo window ended at {ended}")]
    Expired { id: String, ended: String },
    #[error("{reason}")]
    Record { reason: String },
    #[error(
        "undone in the vault (see {record}), but not in the tracker: {reason}; \
         the tracker's part is still owed, see `steward status`"
    )]
    Tracker { record: String, reason: String },
}

/// What a person can do about a decision that was made in shadow.
/// Of the records without a recipe, only those of an undo have changed a note.
fn describe_without_recipe(disposition: &str) -> String {
    if disposition == Disposition::Live.as_str() {
        "is itself an undo, which cannot be undone: change the note by hand".to_owned()
    } else {
        format!("changed nothing ({disposition}), so there is nothing to undo")
    }
}

fn describe_shadow(disposition: &str) -> &'static str {
    if disposition == Disposition::Shadow.as_str() {
        ": it was only decided in Watch. Say `steward right` or `steward wrong`. With STEWARD_LIVE_MODE=live it is decided again"
    } else {
        ""
    }
}

/// Refuses what happened in a wiki, whose runs are resolved by commands of their own.
pub(super) fn refuse_wiki_change(record: &AuditDraft) -> Result<(), ResolutionRefusal> {
    let Some(mark) = &record.wiki else { return Ok(()) };
    let fix = match record.kind {
        ActionKind::Wiki => format!("`steward wiki runs revert {}` takes the run back", mark.run.short()),
        _ => "it cannot be undone".to_owned(),
    };
    Err(ResolutionRefusal::Record { reason: format!("{} is a record of the wiki `{}`: {fix}", record.id, mark.wiki) })
}

impl ResolutionRefusal {
    /// The HTTP status of this refusal.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        match self {
            Self::Unknown { .. } => 404,
            Self::Ambiguous { .. }
            | Self::Malformed { .. }
            | Self::NothingToUndo { .. }
            | Self::NotPending { .. }
            | Self::NothingToRaise { .. }
            | Self::NothingProposed { .. }
            | Self::NotWatched { .. }
            | Self::NothingToReopen { .. }
            | Self::NotAnEdit { .. }
            | Self::HumanOnly { .. } => 400,
            Self::PersonOnly => 403,
            Self::AlreadyResolved { .. }
            | Self::CeilingStays { .. }
            | Self::Conflict { .. }
            | Self::NotTheNewest { .. }
            | Self::Unclear { .. }
            | Self::OtherMapping { .. }
            | Self::ShadowNow
            | Self::Stopped => 409,
            Self::Expired { .. } | Self::ReopenExpired { .. } => 410,
            Self::Record { .. } | Self::UnknownMapping { .. } => 422,
            Self::Tracker { .. } => 502,
        }
    }

    /// The data of this refusal besides its message.
    #[must_use]
    pub fn details(&self) -> ResolutionRefusalDetails<'_> {
        let none = ResolutionRefusalDetails::default();
        match self {
            Self::Conflict { fields } => ResolutionRefusalDetails { fields, ..none },
            Self::NotTheNewest { fields, newer, .. } => ResolutionRefusalDetails { fields, newer, ..none },
            Self::Tracker { record, .. } => ResolutionRefusalDetails { record, ..none },
            Self::Unknown { .. }
            | Self::Ambiguous { .. }
            | Self::Malformed { .. }
            | Self::NothingToUndo { .. }
            | Self::NotPending { .. }
            | Self::NothingToRaise { .. }
            | Self::NothingProposed { .. }
            | Self::NotWatched { .. }
            | Self::NothingToReopen { .. }
            | Self::ReopenExpired { .. }
            | Self::PersonOnly
            | Self::HumanOnly { .. }
            | Self::NotAnEdit { .. }
            | Self::AlreadyResolved { .. }
            | Self::CeilingStays { .. }
            | Self::Unclear { .. }
            | Self::OtherMapping { .. }
            | Self::UnknownMapping { .. }
            | Self::ShadowNow
            | Self::Stopped
            | Self::Expired { .. }
            | Self::Record { .. } => none,
        }
    }
}

/// The data of some refusals. It is empty for all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolutionRefusalDetails<'a> {
    /// The fields that humans edited since, or that a newer change wrote.
    pub fields: &'a [String],
    /// The action that must be undone first.
    pub newer: &'a str,
    /// The audit record that was written nevertheless.
    pub record: &'a str,
}
