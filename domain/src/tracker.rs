//! What a change of a task means for the tracker in which the task is an issue as well (Plane).
//!
//! Pure: which issue is meant, what it should become, what became of it, and the words of the comment.
//! What is owed is said by the record of the change itself ([`PlaneAction`]); what came of it is a
//! record of its own ([`outcome`]), so that none is ever rewritten. Ids come from files that people
//! write: one that is no UUID names nothing. Sending is not here.

use crate::action::audit::{ActionKind, AuditDraft, AuditRecord, AuditResolution, FieldPatch, WorkflowRef};
use crate::action::plan::{ActionId, Disposition, Plan, PlanBasis, PlannedChange};
use crate::record::entity::{self, RecordState};
use crate::record::frontmatter::RecordFields;
use crate::record::path::{RecordKind, RecordPath};
use crate::record::plain_text;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// What our comments say they come from; with the action's id it names a comment for good.
pub const EXTERNAL_SOURCE: &str = "steward";

/// A UUID as the tracker gives it, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrackerId(String);

/// A text is no id of a tracker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID such as 1b4e28ba-2fa1-41d2-883f-0016d3cca427")]
pub struct TrackerIdError;

impl TrackerId {
    /// Reads 8-4-4-4-12 hex digits in any case.
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

/// Where an issue is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TrackerIssue {
    pub project: TrackerId,
    pub issue: TrackerId,
}

/// The states of a project that end an issue, by their group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrackerStateGroup {
    Completed,
    Cancelled,
}

impl TrackerStateGroup {
    /// The tracker's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
        }
    }

    fn from_state(state: RecordState) -> Option<Self> {
        match state {
            RecordState::Open => None,
            RecordState::Done => Some(Self::Completed),
            RecordState::Archived => Some(Self::Cancelled),
        }
    }
}

/// What a record says of the tracker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum PlaneAction {
    /// A comment and a transition are to be made.
    Owed {
        #[serde(flatten)]
        issue: TrackerIssue,
        group: TrackerStateGroup,
    },
    /// What was made for another action is to be taken back.
    RevertOwed {
        #[serde(flatten)]
        issue: TrackerIssue,
        of: ActionId,
    },
    /// The task names no issue that could be meant; nothing will be made.
    Unusable { reason: String },
    /// It was tried in vain once and is tried again.
    Failed {
        #[serde(flatten)]
        issue: TrackerIssue,
        reason: String,
    },
    /// The project has had no such issue for so long that it is tried no more, or the task names another.
    GivenUp {
        #[serde(flatten)]
        issue: TrackerIssue,
        reason: String,
    },
    /// The comment and the transition are made; without `to_state` the issue was left where it was.
    Made {
        #[serde(flatten)]
        issue: TrackerIssue,
        comment: TrackerId,
        from_state: Option<TrackerId>,
        to_state: Option<TrackerId>,
        /// What was not done, and why.
        left: Option<String>,
    },
    /// What had been made is taken back, as far as there was anything.
    Reverted {
        #[serde(flatten)]
        issue: TrackerIssue,
        comment_removed: bool,
        state_restored: bool,
        /// What was not done, and why.
        left: Option<String>,
    },
}

/// How to take back what was made in the tracker: the comment is known by this external id, and the
/// state from before stands in the record of the delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaneRevert {
    #[serde(flatten)]
    pub issue: TrackerIssue,
    pub external_id: ActionId,
}

impl PlaneAction {
    /// The issue that something is owed to.
    #[must_use]
    pub fn owed_issue(&self) -> Option<&TrackerIssue> {
        match self {
            Self::Owed { issue, .. } | Self::RevertOwed { issue, .. } => Some(issue),
            Self::Unusable { .. }
            | Self::Failed { .. }
            | Self::GivenUp { .. }
            | Self::Made { .. }
            | Self::Reverted { .. } => None,
        }
    }

    /// Why a part was not done; `None` where nothing is missing, or not yet.
    #[must_use]
    pub fn missing_reason(&self) -> Option<&str> {
        match self {
            Self::Owed { .. } | Self::RevertOwed { .. } => None,
            Self::Unusable { reason } | Self::Failed { reason, .. } | Self::GivenUp { reason, .. } => Some(reason),
            Self::Made { left, .. } | Self::Reverted { left, .. } => left.as_deref(),
        }
    }

    /// The kind of record that says so of an earlier one.
    fn record_kind(&self) -> ActionKind {
        match self {
            Self::Failed { .. } | Self::Unusable { .. } => ActionKind::TrackFailed,
            Self::Owed { .. }
            | Self::RevertOwed { .. }
            | Self::GivenUp { .. }
            | Self::Made { .. }
            | Self::Reverted { .. } => ActionKind::Tracked,
        }
    }
}

impl fmt::Display for PlaneAction {
    /// One line, in words of ours alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owed { group, .. } => write!(f, "a comment and the state `{}` are owed", group.as_str())?,
            Self::RevertOwed { .. } => f.write_str("taking back what was made is owed")?,
            Self::Unusable { .. } => f.write_str("nothing can be sent")?,
            Self::Failed { .. } => f.write_str("tried in vain")?,
            Self::GivenUp { .. } => f.write_str("given up")?,
            Self::Made { to_state: Some(_), .. } => f.write_str("comment made, state set")?,
            Self::Made { to_state: None, .. } => f.write_str("comment made, state as it was")?,
            Self::Reverted { comment_removed: false, state_restored: false, left: None, .. } => {
                f.write_str("nothing had been sent, and nothing will be")?;
            }
            Self::Reverted { comment_removed, state_restored, .. } => {
                f.write_str(match (comment_removed, state_restored) {
                    (true, true) => "comment removed, state put back",
                    (true, false) => "comment removed",
                    (false, true) => "state put back",
                    (false, false) => "nothing taken back",
                })?
            }
        }
        self.missing_reason().map_or(Ok(()), |missing| write!(f, ": {missing}"))
    }
}

/// What a change of these fields of a task owes to the tracker; `None` where that has no part in it.
///
/// `default_project` serves tasks without a `plane_project_id`.
#[must_use]
pub fn derive_owed_action(
    target: &RecordPath,
    fields: &RecordFields,
    patch: &[FieldPatch],
    default_project: Option<&TrackerId>,
) -> Option<PlaneAction> {
    let changed = patch.iter().find(|p| p.field == "state").filter(|_| target.kind() == RecordKind::Task)?;
    let state = changed.value.as_ref().and_then(Value::as_str).and_then(RecordState::parse)?;
    let group = TrackerStateGroup::from_state(state)?;
    Some(match read_issue(fields, default_project)? {
        Ok(issue) => PlaneAction::Owed { issue, group },
        Err(reason) => PlaneAction::Unusable { reason },
    })
}

/// The issue that a task names, or why it is none that can be meant; `None` where it names none.
#[must_use]
pub fn read_issue(fields: &RecordFields, default_project: Option<&TrackerId>) -> Option<Result<TrackerIssue, String>> {
    let written = |field| entity::read_text(fields, field).ok().flatten().filter(|t| !t.trim().is_empty());
    let issue = written("plane_issue_id")?;
    let read = |field: &str, text: &str| TrackerId::parse(text).map_err(|e| format!("`{field}` is {e}"));
    let project = match (written("plane_project_id"), default_project) {
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

/// What undoing a recorded change owes to the tracker.
#[must_use]
pub fn derive_owed_revert(undone: &AuditRecord) -> Option<PlaneAction> {
    let recipe = undone.undo_recipe.as_ref()?.plane_revert.as_ref()?;
    Some(PlaneAction::RevertOwed { issue: recipe.issue.clone(), of: undone.draft.id.clone() })
}

/// Plans the record of what came of what a record owes. It changes nothing but the chain.
#[must_use]
pub fn plan_tracker_outcome(
    owing: &AuditRecord,
    came: &PlaneAction,
    workflow: WorkflowRef,
    now: DateTime<Utc>,
) -> Plan {
    let (kind, of) = (came.record_kind(), &owing.draft);
    let answers = AuditResolution {
        of: of.id.clone(),
        at: of.timestamp,
        by: "Steward".into(),
        reason: came.missing_reason().map(str::to_owned),
        edited: false,
        together: None,
    };
    let draft = AuditDraft {
        kind,
        id: ActionId::derive(&[kind.as_str(), of.id.as_str()]),
        timestamp: now,
        landing: Disposition::Recorded,
        gates: Vec::new(),
        proposed_state: None,
        proposal: None,
        confirmable: false,
        pending_confirmation: false,
        evidence: Vec::new(),
        source_contributions: BTreeMap::new(),
        reasoning: came.to_string(),
        clerk: None,
        workflow,
        answers: Some(answers),
        ..of.clone()
    };
    Plan { draft, basis: PlanBasis::Fields, change: PlannedChange::Nothing }
}

/// The comment on the issue: what was done to the task, because of what, and how to take it back.
///
/// Every word from outside is escaped: it shows as itself.
#[must_use]
pub fn render_comment(record: &AuditRecord) -> String {
    let draft = &record.draft;
    let state = draft.proposed_state.map_or("changed", RecordState::as_str);
    let mut html =
        format!("<p>Steward set the task <em>{}</em> to <strong>{state}</strong>", escape_html(draft.target.slug()));
    if let Some(answer) = draft.answers.as_ref().filter(|_| draft.kind == ActionKind::Confirmed) {
        let chosen = if answer.edited { "chosen" } else { "confirmed" };
        html.push_str(&format!(", {chosen} by {}", escape_html(&answer.by)));
    }
    html.push_str(".</p>");
    if let [first, rest @ ..] = draft.evidence.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
        let (source, note) = (escape_html(&first.source), escape_html(&first.note));
        // What a person chose instead, nobody had said.
        let because = if draft.answers.as_ref().is_some_and(|answer| answer.edited) { "After" } else { "Because" };
        html.push_str(&format!("<p>{because} {source} said <q>{note}</q>{more}.</p>"));
    }
    html.push_str(&format!("<p>Take it back within 7 days: <code>steward undo {}</code></p>", draft.id));
    html
}

/// Text that shows as itself in HTML, on one line.
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
