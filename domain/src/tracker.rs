//! The tracker: the part of a task's change that concerns its issue in an external tracker (Plane).
//!
//! The rules are pure: the issue, its new state, the outcome and the text of the comment. The record of the change
//! holds what is owed to the tracker ([`PlaneAction`]). The outcome is a record of its own ([`plan_tracker_outcome`]),
//! so that no record is rewritten. Ids come from files that people write, and one that is not a UUID is refused.
//! Nothing here sends a request.

use crate::action::audit::{ActionKind, AuditDraft, AuditRecord, FieldPatch, WorkflowRef};
use crate::action::plan::{ActionId, Plan, PlanBasis, PlannedChange};
use crate::record::entity::{self, RecordState};
use crate::record::frontmatter::RecordFields;
use crate::record::path::RecordKind;
use crate::record::plain_text;
use crate::record::schema::NoteSchema;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The external source of our comments. With the action's id it identifies a comment permanently.
pub const EXTERNAL_SOURCE: &str = "steward";

/// A UUID as the tracker gives it, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrackerId(String);

/// A text is not an id of the tracker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID such as 1b4e28ba-2fa1-41d2-883f-0016d3cca427")]
pub struct TrackerIdError;

impl TrackerId {
    /// Parses 8-4-4-4-12 hex digits in any case.
    ///
    /// # Errors
    /// [`TrackerIdError`] for everything else.
    pub fn parse(text: &str) -> Result<Self, TrackerIdError> {
        let text = text.trim().to_ascii_lowercase();
        let is_hex = |part: &str| part.bytes().all(|b| b.is_ascii_hexdigit());
        let lengths = text.split('-').map(|part| if is_hex(part) { part.len() } else { 0 });
        if lengths.eq([8, 4, 4, 4, 12]) { Ok(Self(text)) } else { Err(TrackerIdError) }
    }

    /// The UUID.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TrackerId {
    type Error = TrackerIdError;

    fn try_from(text: String) -> Result<Self, TrackerIdError> {
        Self::parse(&text)
    }
}

impl From<TrackerId> for String {
    fn from(id: TrackerId) -> Self {
        id.0
    }
}

impl fmt::Display for TrackerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An issue and its project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TrackerIssue {
    pub project: TrackerId,
    pub issue: TrackerId,
}

/// The group of a project's states that end an issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TrackerStateGroup {
    Completed,
    Cancelled,
}

impl TrackerStateGroup {
    /// The tracker's spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    fn from_state(state: RecordState) -> Option<Self> {
        match state {
            RecordState::Open => None,
            RecordState::Done => Some(Self::Completed),
            RecordState::Archived => Some(Self::Cancelled),
        }
    }
}

/// The tracker's part of a record: owed work or its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum PlaneAction {
    /// A comment and a transition are to be made.
    Owed {
        #[serde(flatten)]
        issue: TrackerIssue,
        group: TrackerStateGroup,
    },
    /// The comment and transition of another action are to be reverted.
    RevertOwed {
        #[serde(flatten)]
        issue: TrackerIssue,
        action_id: ActionId,
    },
    /// The task names no usable issue, so nothing is tried.
    Unusable { reason: String },
    /// The first delivery failed. It is tried again.
    Failed {
        #[serde(flatten)]
        issue: TrackerIssue,
        reason: String,
    },
    /// It is not tried again: the project has not had such an issue for too long, or the task names another one.
    GivenUp {
        #[serde(flatten)]
        issue: TrackerIssue,
        reason: String,
    },
    /// The comment and the transition are made. Without `to_state` the issue kept its state.
    Delivered {
        #[serde(flatten)]
        issue: TrackerIssue,
        comment: TrackerId,
        from_state: Option<TrackerId>,
        to_state: Option<TrackerId>,
        /// The part that was not done, and why.
        left: Option<String>,
    },
    /// The comment and the transition are reverted, as far as there were any.
    Reverted {
        #[serde(flatten)]
        issue: TrackerIssue,
        comment_removed: bool,
        state_restored: bool,
        /// The part that was not done, and why.
        left: Option<String>,
    },
}

/// The data that reverts a delivery to the tracker.
///
/// The comment is found by this external id. The record of the delivery holds the old state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaneRevert {
    #[serde(flatten)]
    pub issue: TrackerIssue,
    pub external_id: ActionId,
}

impl PlaneAction {
    /// The issue to which something is owed.
    #[must_use]
    pub fn owed_issue(&self) -> Option<&TrackerIssue> {
        match self {
            Self::Owed { issue, .. } | Self::RevertOwed { issue, .. } => Some(issue),
            Self::Unusable { .. }
            | Self::Failed { .. }
            | Self::GivenUp { .. }
            | Self::Delivered { .. }
            | Self::Reverted { .. } => None,
        }
    }

    /// Why a part was not done. `None` if nothing is missing, or the work is still owed.
    #[must_use]
    pub fn missing_reason(&self) -> Option<&str> {
        match self {
            Self::Owed { .. } | Self::RevertOwed { .. } => None,
            Self::Unusable { reason } | Self::Failed { reason, .. } | Self::GivenUp { reason, .. } => Some(reason),
            Self::Delivered { left, .. } | Self::Reverted { left, .. } => left.as_deref(),
        }
    }

    /// The kind of the record that reports this outcome.
    fn record_kind(&self) -> ActionKind {
        match self {
            Self::Failed { .. } | Self::Unusable { .. } => ActionKind::TrackFailed,
            Self::Owed { .. }
            | Self::RevertOwed { .. }
            | Self::GivenUp { .. }
            | Self::Delivered { .. }
            | Self::Reverted { .. } => ActionKind::Tracked,
        }
    }
}

impl fmt::Display for PlaneAction {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owed { group, .. } => write!(f, "a comment and the state `{}` are owed", group.as_str())?,
            Self::RevertOwed { .. } => f.write_str("the reversal of an earlier action is owed")?,
            Self::Unusable { .. } => f.write_str("nothing can be sent")?,
            Self::Failed { .. } => f.write_str("the delivery failed")?,
            Self::GivenUp { .. } => f.write_str("given up")?,
            Self::Delivered { to_state: Some(_), .. } => f.write_str("comment made, state set")?,
            Self::Delivered { to_state: None, .. } => f.write_str("comment made, state unchanged")?,
            Self::Reverted { comment_removed: false, state_restored: false, left: None, .. } => {
                f.write_str("nothing had been sent, and nothing will be")?;
            }
            Self::Reverted { comment_removed, state_restored, .. } => {
                f.write_str(match (comment_removed, state_restored) {
                    (true, true) => "comment removed, state restored",
                    (true, false) => "comment removed",
                    (false, true) => "state restored",
                    (false, false) => "nothing reverted",
                })?
            }
        }
        self.missing_reason().map_or(Ok(()), |missing| write!(f, ": {missing}"))
    }
}

/// The action that a change of a task owes to the tracker, if it concerns the tracker.
///
/// `default_project` is used for tasks without a `plane_project_id`. A task that names no usable issue changes all the
/// same: its record is `partially_applied` with the reason, and nothing is tried.
#[must_use]
pub fn derive_owed_action(
    target_kind: RecordKind,
    fields: &RecordFields,
    patch: &[FieldPatch],
    schema: &NoteSchema,
    default_project: Option<&TrackerId>,
) -> Option<PlaneAction> {
    let changed = patch.iter().find(|p| p.field == "state").filter(|_| target_kind == RecordKind::Task)?;
    let group = TrackerStateGroup::from_state(schema.read_state(target_kind, changed.value.as_ref()?)?)?;
    Some(match read_issue(fields, default_project)? {
        Ok(issue) => PlaneAction::Owed { issue, group },
        Err(reason) => PlaneAction::Unusable { reason },
    })
}

/// The issue that a task names, or the reason why it is not usable. `None` if the task names no issue.
#[must_use]
pub fn read_issue(fields: &RecordFields, default_project: Option<&TrackerId>) -> Option<Result<TrackerIssue, String>> {
    let field_text = |field| entity::read_text(fields, field).ok().flatten().filter(|t| !t.trim().is_empty());
    let issue = field_text("plane_issue_id")?;
    let read = |field: &str, text: &str| TrackerId::parse(text).map_err(|e| format!("`{field}` is {e}"));
    let project = match (field_text("plane_project_id"), default_project) {
        (Some(text), _) => read("plane_project_id", &text),
        (None, Some(project)) => Ok(project.clone()),
        (None, None) => {
            Err("no project is set: add `plane_project_id` to the task, or set STEWARD_TRACKER_PROJECT".into())
        }
    };
    Some(match (read("plane_issue_id", &issue), project) {
        (Ok(issue), Ok(project)) => Ok(TrackerIssue { project, issue }),
        (Err(reason), _) | (_, Err(reason)) => Err(reason),
    })
}

/// The action that the undo of a recorded change owes to the tracker.
#[must_use]
pub fn derive_owed_revert(undone: &AuditRecord) -> Option<PlaneAction> {
    let recipe = undone.undo_recipe.as_ref()?.plane_revert.as_ref()?;
    Some(PlaneAction::RevertOwed { issue: recipe.issue.clone(), action_id: undone.draft.id.clone() })
}

/// Plans the record of an outcome in the tracker. It changes no record but adds one to the chain.
#[must_use]
pub fn plan_tracker_outcome(
    owing: &AuditRecord,
    outcome: &PlaneAction,
    workflow: WorkflowRef,
    now: DateTime<Utc>,
) -> Plan {
    let (kind, action) = (outcome.record_kind(), &owing.draft);
    let reason = outcome.missing_reason().map(str::to_owned);
    let draft = AuditDraft {
        reasoning: outcome.to_string(),
        ..action.derive_follow_up(kind, "Steward", reason, workflow, now)
    };
    Plan { draft, basis: PlanBasis::Fields, change: PlannedChange::Nothing }
}

/// The comment on the issue: the change of the task, its reason, and how to undo it.
///
/// Every untrusted word is escaped, so that it shows as plain text.
#[must_use]
pub fn render_comment(record: &AuditRecord) -> String {
    let draft = &record.draft;
    let state = draft.proposed_state.map_or("changed", RecordState::as_str);
    let mut html =
        format!("<p>Steward set the task <em>{}</em> to <strong>{state}</strong>", escape_html(draft.target.slug()));
    if let Some(resolution) = draft.resolution.as_ref().filter(|_| draft.kind == ActionKind::Confirmed) {
        let verb = if resolution.edited { "chosen" } else { "confirmed" };
        html.push_str(&format!(", {verb} by {}", escape_html(&resolution.by)));
    }
    html.push_str(".</p>");
    if let [first, rest @ ..] = draft.evidence.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
        let (source, note) = (escape_html(&first.source), escape_html(&first.note));
        // If a person chose another value, the message is not the reason for it.
        let conjunction =
            if draft.resolution.as_ref().is_some_and(|resolution| resolution.edited) { "After" } else { "Because" };
        html.push_str(&format!("<p>{conjunction} {source} said <q>{note}</q>{more}.</p>"));
    }
    html.push_str(&format!("<p>Undo it within 7 days: <code>steward undo {}</code></p>", draft.id));
    html
}

/// Escapes a text for HTML, on one line.
fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain_text::to_one_line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
