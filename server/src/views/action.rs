//! One action as every interface shows it: its change, its evidence, its gates, and how a human can resolve it.
//!
//! A row of the index names the action; the rest is read from its audit record. A record that cannot be read is still
//! listed, with the reason.

mod detail;

use super::quote;
use super::record_signals::RecordSignal;
use super::withheld::WithheldSignal;
use super::{FactsError, VaultViews};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::Judgement;
use steward_domain::trust::ceiling;
use steward_domain::trust::mark::TrustMark;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{ActionLookup, ActionRow};
use utoipa::ToSchema;

pub use detail::{ActionClerk, ActionDetail, ActionWorkflowRun};

/// One audit record: a decision, a resolution of one, or a consequence for trust.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Action {
    /// The permanent id, 16 hex digits.
    pub id: String,
    /// The type of its record: `steward-action` for a decision; `steward-action-reversed`, `-confirmed`, `-dismissed`,
    /// … for what followed a decision.
    pub kind: String,
    /// The audit record, such as `event/steward-action-….md`.
    pub record: String,
    /// The target, such as `task/pay-rent.md`.
    pub target: String,
    pub at: DateTime<Utc>,
    /// `still_active`, `likely_done`, `needs_input` or `stale_archive_candidate`.
    pub decision: String,
    /// 0 to 1.
    pub confidence: f64,
    /// The disposition: `recorded` (nothing to change), `shadow` (what would have been changed), `pending` (waits for a
    /// human) or `live` (changed).
    pub disposition: String,
    /// The mode when it was decided: `shadow`, `live_high_confidence_only` or `live`.
    pub mode: String,
    /// `state_change`, `context_edit`, `parent_matter` or `related`; absent if nothing would change.
    pub class: Option<String>,
    pub change: Option<ActionChange>,
    /// Whether it can be answered. Of equal proposals only the newest one. Put-off and expired ones can be, too.
    pub waits: bool,
    /// Until when its change can be undone; absent if it cannot be undone.
    pub undo_until: Option<DateTime<Utc>>,
    /// Until when a person can take back the answer to it; absent if it has none that can be taken back.
    pub reopen_until: Option<DateTime<Utc>>,
    /// The id of that answer.
    #[serde(skip)]
    pub(crate) answer_id: Option<String>,
    /// Whether `confirm` can apply it. A ceiling of `ask` leaves the change to the human.
    pub confirmable: bool,
    /// The id of the action that this one resolves.
    pub resolves: Option<String>,
    /// Who resolved it, as they named themselves. Untrusted.
    pub by: Option<String>,
    /// Why, in their words. Untrusted.
    pub reason: Option<String>,
    /// Whether it is what a model undid or dismissed, which teaches nothing until a person agrees.
    #[serde(skip)]
    pub(crate) is_by_agent: bool,
    /// How a human has resolved this action: the kind of that record.
    pub resolution: Option<String>,
    /// The id that all resolutions of one batch share.
    pub batch_id: Option<String>,
    /// Whether the confirmation changed the proposed value.
    pub edited: bool,
    /// Its position in the audit chain, from 1.
    pub seq: u64,
    /// The clerk's words on one line. Untrusted.
    pub reasoning: String,
    pub gates: Vec<ActionGate>,
    pub evidence: Vec<ActionEvidence>,
    /// The newest signals about the record and those that the action cites, newest first. Empty if it proposes, makes and
    /// asks nothing.
    pub signals: Vec<RecordSignal>,
    /// The sender on which it sets a ceiling, or undoes that.
    #[serde(skip)]
    pub(crate) sender: Option<SettingSender>,
    /// The change in the terms of the rules.
    #[serde(skip)]
    pub(crate) proposed: Option<Mutation>,
    /// Whether an equal proposal was answered, so that this one waits no longer.
    #[serde(skip)]
    pub(crate) is_answered_elsewhere: bool,
    /// Whether an equal proposal after it waits in its place.
    #[serde(skip)]
    pub(crate) is_repeated: bool,
    /// For a question, the signals that it withholds: newest first, at most 20.
    pub withheld: Vec<WithheldSignal>,
    /// Why the audit record cannot be read. Its values are missing then.
    pub problem: Option<String>,
}

/// The states of a record, as they are written in its file.
pub(crate) const STATES: [&str; 3] = ["open", "done", "archived"];
/// The longest value that an assistant suggests, in characters.
const MAX_SUGGESTED: usize = 500;

/// The sender on which a person set a ceiling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingSender {
    /// The source's key.
    pub(crate) key: String,
    /// Untrusted.
    pub(crate) name: String,
}

/// The change that an action makes or proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ActionChange {
    /// The field of the frontmatter.
    pub field: String,
    /// The old value; for a set, the member that is removed. Untrusted.
    pub before: Option<String>,
    /// The new value; for a set, the member that is added. Untrusted.
    pub after: Option<String>,
}

/// One gate, with the value that was found and the value that was needed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionGate {
    pub gate: String,
    pub open: bool,
    pub found: String,
    pub needed: String,
}

/// A signal that the action cites.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionEvidence {
    /// The signal's record.
    pub signal: String,
    /// Untrusted.
    pub source: String,
    /// At most 50 characters, verbatim. Untrusted.
    pub quote: String,
    /// The quote for pages, as the signal's record has it; the kept part if that record was edited or is gone.
    /// Untrusted.
    #[serde(skip)]
    pub words: String,
    /// The confidence in its target, 0 to 1.
    pub target_confidence: f64,
    /// The confidence in its effect, 0 to 1.
    pub effect_confidence: f64,
    /// Whether it supports the decision.
    pub supports: bool,
}

impl Action {
    fn from_row(row: &ActionRow, now: DateTime<Utc>) -> Self {
        Self {
            id: row.id.to_string(),
            kind: row.kind.as_str().to_owned(),
            record: row.path.to_string(),
            target: row.target.to_string(),
            at: row.at,
            decision: row.decision.as_str().to_owned(),
            confidence: row.confidence,
            disposition: row.disposition.as_str().to_owned(),
            mode: row.mode.as_str().to_owned(),
            class: row.class.map(|class| class.as_str().to_owned()),
            change: None,
            waits: row.waits && !row.settled && !row.is_repeated,
            undo_until: compute_undo_deadline(row, now),
            reopen_until: compute_reopen_deadline(row, now),
            answer_id: if row.kind.can_be_taken_back() { Some(&row.id) } else { row.resolved_by.as_ref() }
                .map(ToString::to_string),
            confirmable: false,
            resolves: row.resolves.as_ref().map(ToString::to_string),
            by: None,
            reason: None,
            is_by_agent: false,
            resolution: row.resolution.map(|kind| kind.as_str().to_owned()),
            batch_id: row.batch_id.as_ref().map(ToString::to_string),
            edited: row.edited,
            seq: row.seq,
            reasoning: String::new(),
            gates: Vec::new(),
            evidence: Vec::new(),
            signals: Vec::new(),
            sender: None,
            proposed: None,
            is_answered_elsewhere: row.pending && !row.waits && row.resolution.is_none(),
            is_repeated: row.is_repeated,
            withheld: Vec::new(),
            problem: None,
        }
    }

    fn with_record(mut self, record: &AuditRecord) -> Self {
        let draft = &record.draft;
        self.change = describe_change(record);
        self.by = draft.resolution.as_ref().map(|answer| answer.by.clone());
        if let Some(TrustMark::CeilingSet { subject, name, by, .. }) = &draft.trust {
            let by_setting = (draft.kind == ActionKind::CeilingSet).then(|| by.clone());
            self.by = self.by.take().or(by_setting);
            let key = subject.to_string();
            self.sender = Some(SettingSender { name: name.clone().unwrap_or_else(|| key.clone()), key });
        }
        if draft.kind == ActionKind::Action {
            let state_change = draft.proposed_state.map(|to| Mutation::StateChange { to });
            self.proposed = draft.proposal.as_ref().map(|proposal| proposal.mutation.clone()).or(state_change);
        }
        self.confirmable = draft.confirmable;
        self.is_by_agent = draft.is_resolved_by_agent();
        self.reason = draft.resolution.as_ref().and_then(|answer| answer.reason.clone());
        self.reasoning.clone_from(&draft.reasoning);
        let gate = |gate: &steward_domain::gates::result::GateResult| ActionGate {
            gate: gate.gate.as_str().to_owned(),
            open: gate.open,
            found: gate.found.clone(),
            needed: gate.needed.clone(),
        };
        self.gates = draft.gates.iter().map(gate).collect();
        let cited = |cited: &steward_domain::action::audit::CitedSignal| ActionEvidence {
            signal: cited.reference.to_string(),
            source: cited.source.clone(),
            quote: cited.note.clone(),
            words: quote::mark_cut_quote(&cited.note),
            target_confidence: cited.target_confidence,
            effect_confidence: cited.effect_confidence,
            supports: cited.supports,
        };
        self.evidence = draft.evidence.iter().map(cited).collect();
        // The row only knows that something was changed. The record knows whether there is an undo recipe.
        self.undo_until = self.undo_until.filter(|_| record.undo_recipe.is_some());
        self
    }
}

impl Action {
    /// Whether it is a proposal made in Watch that nobody has called right or wrong.
    pub(crate) fn can_be_judged(&self) -> bool {
        self.disposition == Disposition::Shadow.as_str()
            && self.kind == ActionKind::Action.as_str()
            && self.class.is_some()
            && self.resolution.is_none()
    }

    /// Whether a person may choose this value when they confirm it.
    pub(crate) fn can_take_value(&self, value: &str) -> bool {
        let Some(change) = self.change.as_ref().filter(|_| self.waits && self.confirmable) else { return false };
        let is_choice = change.field != "state" || STATES.contains(&value);
        is_choice && !value.is_empty() && value.chars().count() <= MAX_SUGGESTED
    }

    /// Whether it is what a model undid or dismissed, and no person has agreed.
    pub(crate) fn can_be_agreed_with(&self) -> bool {
        self.is_by_agent && self.resolution.is_none()
    }

    /// Whether it asks a human something that nobody has resolved; `dismiss` ends such a question.
    pub(crate) fn is_open_question(&self) -> bool {
        self.is_question() && self.resolution.is_none()
    }

    pub(crate) fn is_question(&self) -> bool {
        let asks =
            self.decision == Judgement::NeedsInput.as_str() && self.disposition == Disposition::Recorded.as_str();
        asks && self.kind == ActionKind::Action.as_str()
    }
}

fn compute_undo_deadline(row: &ActionRow, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let changes = row.kind.is_change() && row.disposition == Disposition::Live;
    let until = row.at + chrono::TimeDelta::days(steward_domain::action::audit::UNDO_WINDOW_DAYS);
    (changes && row.resolution != Some(ActionKind::Reversed) && now < until).then_some(until)
}

fn compute_reopen_deadline(row: &ActionRow, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let answered_at = match row.resolution {
        // The row is such an answer itself, and nobody has taken it back.
        None => Some(row.at).filter(|_| row.kind.can_be_taken_back()),
        Some(kind) => row.resolved_at.filter(|_| kind.can_be_taken_back()),
    }?;
    let until = answered_at + chrono::TimeDelta::days(steward_domain::action::audit::UNDO_WINDOW_DAYS);
    (now < until).then_some(until)
}

fn describe_change(record: &AuditRecord) -> Option<ActionChange> {
    let draft = &record.draft;
    if let Some(TrustMark::CeilingSet { from, to, .. }) = &draft.trust {
        let (from, to) = (from.map(|from| from.as_str().to_owned()), Some(to.as_str().to_owned()));
        let (before, after) = if draft.kind == ActionKind::Reversed { (to, from) } else { (from, to) };
        return Some(ActionChange { field: ceiling::FIELD.to_owned(), before, after });
    }
    let Some(proposal) = &draft.proposal else {
        let after = draft.proposed_state?.as_str().to_owned();
        return Some(ActionChange { field: "state".into(), before: draft.prior_state.clone(), after: Some(after) });
    };
    let replaced = proposal.replaces.as_ref().map(format_value);
    let (before, after) = match &proposal.mutation {
        Mutation::StateChange { to } => (replaced.or_else(|| draft.prior_state.clone()), Some(to.as_str().to_owned())),
        Mutation::ContextEdit { to, .. } => (replaced, Some(to.clone())),
        Mutation::ParentMatter { to } => (replaced, Some(to.to_string())),
        Mutation::Related { member, present: true, .. } => (None, Some(member.clone())),
        Mutation::Related { member, present: false, .. } => (Some(member.clone()), None),
    };
    Some(ActionChange { field: proposal.mutation.field().to_owned(), before, after })
}

/// Formats a value for a person.
fn format_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl VaultViews {
    /// Reads the actions of these rows, in their order. Reads one file for each.
    ///
    /// # Errors
    /// When the index cannot be read. A record that cannot be read is no error; its action has a `problem`.
    pub async fn read_actions(&self, rows: Vec<ActionRow>, now: DateTime<Utc>) -> Result<Vec<Action>, FactsError> {
        let root = self.root.clone();
        let ids: Vec<ActionId> = rows.iter().map(|row| row.id.clone()).collect();
        let read = tokio::task::spawn_blocking(move || {
            rows.iter().map(|row| read_action(&root, row, now)).collect::<Vec<_>>()
        });
        let mut actions = read.await.map_err(|e| FactsError::Record { path: String::new(), reason: e.to_string() })?;
        for (action, id) in actions.iter_mut().zip(&ids) {
            self.attach_withheld_signals(action, id).await?;
        }
        self.attach_record_signals(&mut actions).await?;
        Ok(actions)
    }

    /// Finds the audit record of the action whose id begins so.
    ///
    /// # Errors
    /// [`FactsError::Malformed`], [`FactsError::Unknown`], [`FactsError::Ambiguous`].
    pub async fn find_record_path(&self, id: &str) -> Result<RecordPath, FactsError> {
        let shortened = || id.chars().take(40).collect::<String>();
        match self.index.actions().find_action(id).await? {
            ActionLookup::One(path) => Ok(path),
            ActionLookup::None => Err(FactsError::Unknown { id: shortened() }),
            ActionLookup::Many(paths) => Err(FactsError::Ambiguous { id: shortened(), count: paths.len() }),
        }
    }

    /// Finds the action whose id begins so.
    ///
    /// # Errors
    /// As [`Self::find_record_path`].
    pub async fn find_action_row(&self, id: &str) -> Result<ActionRow, FactsError> {
        let path = self.find_record_path(id).await?;
        self.index.actions().action_by_path(&path).await?.ok_or_else(|| FactsError::Unknown { id: id.to_owned() })
    }

    /// Reads the audit records of these rows, in their order, each with the reason if it cannot be read. Reads one file for
    /// each.
    ///
    /// # Errors
    /// Only when the task fails. A record that cannot be read is no error.
    pub async fn read_records(
        &self,
        rows: Vec<ActionRow>,
    ) -> Result<Vec<(ActionRow, Result<AuditRecord, String>)>, FactsError> {
        let root = self.root.clone();
        let read_row = move |row: ActionRow| {
            let record = read_record(&root, &row.path).map(|(record, _)| record);
            (row, record)
        };
        let read = tokio::task::spawn_blocking(move || rows.into_iter().map(read_row).collect());
        read.await.map_err(|e| FactsError::Record { path: String::new(), reason: e.to_string() })
    }
}

fn read_action(root: &VaultRoot, row: &ActionRow, now: DateTime<Utc>) -> Action {
    let action = Action::from_row(row, now);
    match read_record(root, &row.path) {
        Ok((record, _)) => action.with_record(&record),
        Err(problem) => Action { problem: Some(problem), ..action },
    }
}

fn read_record(root: &VaultRoot, path: &RecordPath) -> Result<(AuditRecord, String), String> {
    let snapshot = root.read_file(path).map_err(|e| e.to_string())?;
    let record = AuditRecord::parse(&snapshot.bytes).map_err(|e| format!("{path}: {e}"))?;
    Ok((record, snapshot.hash.as_str().to_owned()))
}
