//! One action as every face shows it: what would change, why, by which gates, and what a human may say to it.
//!
//! A row of the index says which; the rest is read from the audit record itself. A record that cannot be read any more
//! is still listed, with the reason.

use super::FactsError;
use super::quote;
use super::withheld::{WithheldSignal, attach_withheld_signals};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::Judgement;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{ActionLookup, ActionRow, Index};
use utoipa::ToSchema;

/// One audit record: a decision, an answer to one, or what followed for trust.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Action {
    /// 16 hex digits, the same for good.
    pub id: String,
    /// The type of its record: `steward-action` for a decision, `steward-action-reversed`, `-confirmed`, `-dismissed`, … for
    /// what followed one.
    pub kind: String,
    /// The audit record, as in `event/steward-action-….md`.
    pub record: String,
    /// What it is about, as in `task/pay-rent.md`.
    pub target: String,
    pub at: DateTime<Utc>,
    /// `still_active`, `likely_done`, `needs_input` or `stale_archive_candidate`.
    pub decision: String,
    /// 0 to 1.
    pub confidence: f64,
    /// `recorded` (nothing would change), `shadow` (only said), `pending` (waits for a human) or `live` (done).
    pub landing: String,
    /// The mode when it was decided: `shadow`, `live_high_confidence_only` or `live`.
    pub mode: String,
    /// `state_change`, `context_edit`, `parent_matter` or `related`; absent where nothing would change.
    pub class: Option<String>,
    pub change: Option<ActionChange>,
    /// It waits for a human's answer.
    pub waits: bool,
    /// It changed something that can still be undone, until then.
    pub undo_until: Option<DateTime<Utc>>,
    /// Whether `confirm` may carry it out; a ceiling of `ask` leaves it to the human.
    pub confirmable: bool,
    /// The action that this one answers.
    pub answers: Option<String>,
    /// Who answered, as they named themselves. Untrusted.
    pub by: Option<String>,
    /// Why, in their words. Untrusted.
    pub reason: Option<String>,
    /// How a human has answered this one: the kind of that record.
    pub answered: Option<String>,
    /// By which answers that were given together are known as one.
    pub together: Option<String>,
    /// A confirmation let something else happen than was proposed.
    pub edited: bool,
    /// Its place in the chain of records, from 1.
    pub seq: u64,
    /// The clerk's words on one line. Untrusted.
    pub reasoning: String,
    pub gates: Vec<ActionGate>,
    pub evidence: Vec<ActionEvidence>,
    /// Of a question, the signals that were not proposed because of it, newest first, at most 20.
    pub withheld: Vec<WithheldSignal>,
    /// Why its record cannot be read; what it would say is missing then.
    pub problem: Option<String>,
}

/// What changes, or would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ActionChange {
    /// The one field of the frontmatter.
    pub field: String,
    /// The value that goes; of a set its member. Untrusted.
    pub before: Option<String>,
    /// The value that comes; of a set its member. Untrusted.
    pub after: Option<String>,
}

/// One gate, with the values that decided.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionGate {
    pub gate: String,
    pub open: bool,
    pub found: String,
    pub needed: String,
}

/// A signal that it rests on.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionEvidence {
    /// The signal's record.
    pub signal: String,
    /// Untrusted.
    pub source: String,
    /// At most 50 characters, verbatim. Untrusted.
    pub quote: String,
    /// The quote as the signal's record has it, for pages; where that says something else by now, or is gone, what is
    /// kept of it. Untrusted.
    #[serde(skip)]
    pub words: String,
    /// How sure it is about what it is about, 0 to 1.
    pub target_confidence: f64,
    /// How sure it is about the effect, 0 to 1.
    pub effect_confidence: f64,
    /// It says what was decided.
    pub speaks: bool,
}

/// Everything that one record says.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionDetail {
    #[serde(flatten)]
    pub action: Action,
    pub clerk: Option<ActionClerk>,
    pub workflow: Option<ActionWorkflowRun>,
    /// How much each source was weighed, 0 to 1.
    pub source_contributions: BTreeMap<String, f64>,
    /// SHA-256 of the record before this one in the chain, in hex.
    pub prev_sha256: Option<String>,
    /// SHA-256 of this record's file, in hex.
    pub sha256: Option<String>,
    /// The fields concerned as they were before, as JSON. Untrusted.
    #[schema(value_type = Object)]
    pub prior_frontmatter: serde_json::Map<String, Value>,
    /// What the tracker was told of it, or is owed, in words of ours.
    pub tracker: Option<String>,
}

/// Who judged.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionClerk {
    pub provider: String,
    pub model: String,
    /// SHA-256 of the prompt, in hex.
    pub prompt_sha256: String,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The clerk gave no answer that could be used: this one stands for it.
    pub fallback: bool,
    /// Nobody was asked: the same evidence was judged before.
    pub cached: bool,
}

/// The run that acted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionWorkflowRun {
    pub id: String,
    pub run_id: String,
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
            landing: row.landing.as_str().to_owned(),
            mode: row.mode.as_str().to_owned(),
            class: row.class.map(|class| class.as_str().to_owned()),
            change: None,
            waits: row.pending && row.answered.is_none() && !row.settled,
            undo_until: compute_undo_deadline(row, now),
            confirmable: false,
            answers: row.answers.as_ref().map(ToString::to_string),
            by: None,
            reason: None,
            answered: row.answered.map(|kind| kind.as_str().to_owned()),
            together: row.together.as_ref().map(ToString::to_string),
            edited: row.edited,
            seq: row.seq,
            reasoning: String::new(),
            gates: Vec::new(),
            evidence: Vec::new(),
            withheld: Vec::new(),
            problem: None,
        }
    }

    fn with_record(mut self, record: &AuditRecord) -> Self {
        let draft = &record.draft;
        self.change = describe_change(record);
        self.confirmable = draft.confirmable;
        self.by = draft.answers.as_ref().map(|answer| answer.by.clone());
        self.reason = draft.answers.as_ref().and_then(|answer| answer.reason.clone());
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
            speaks: cited.speaks,
        };
        self.evidence = draft.evidence.iter().map(cited).collect();
        // What is in the record counts; a row only knows that something was changed.
        self.undo_until = self.undo_until.filter(|_| record.undo_recipe.is_some());
        self
    }
}

impl Action {
    /// It asks something of a human that they may set aside by `dismiss`.
    pub(crate) fn is_open_question(&self) -> bool {
        self.is_question() && self.answered.is_none()
    }

    pub(super) fn is_question(&self) -> bool {
        let asks = self.decision == Judgement::NeedsInput.as_str() && self.landing == Disposition::Recorded.as_str();
        asks && self.kind == ActionKind::Action.as_str()
    }
}

fn compute_undo_deadline(row: &ActionRow, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let changes = matches!(row.kind, ActionKind::Action | ActionKind::Confirmed) && row.landing == Disposition::Live;
    let until = row.at + chrono::TimeDelta::days(steward_domain::action::audit::UNDO_WINDOW_DAYS);
    (changes && row.answered != Some(ActionKind::Reversed) && now < until).then_some(until)
}

fn describe_change(record: &AuditRecord) -> Option<ActionChange> {
    let draft = &record.draft;
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

/// A value as a person reads it.
fn format_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The cards of these rows, in their order. Reads one file for each.
///
/// # Errors
/// When the index cannot be read. None for a record that cannot be read: its card says so.
pub async fn read_actions(
    root: &VaultRoot,
    index: &Index,
    rows: Vec<ActionRow>,
    now: DateTime<Utc>,
) -> Result<Vec<Action>, FactsError> {
    let root = root.clone();
    let ids: Vec<ActionId> = rows.iter().map(|row| row.id.clone()).collect();
    let read =
        tokio::task::spawn_blocking(move || rows.iter().map(|row| read_action(&root, row, now)).collect::<Vec<_>>());
    let mut cards = read.await.map_err(|e| FactsError::Record { path: String::new(), reason: e.to_string() })?;
    for (card, id) in cards.iter_mut().zip(&ids) {
        attach_withheld_signals(index, card, id).await?;
    }
    Ok(cards)
}

fn read_action(root: &VaultRoot, row: &ActionRow, now: DateTime<Utc>) -> Action {
    let card = Action::from_row(row, now);
    match read_record(root, &row.path) {
        Ok((record, _)) => card.with_record(&record),
        Err(problem) => Action { problem: Some(problem), ..card },
    }
}

fn read_record(root: &VaultRoot, path: &RecordPath) -> Result<(AuditRecord, String), String> {
    let snapshot = root.read_file(path).map_err(|e| e.to_string())?;
    let record = AuditRecord::parse(&snapshot.bytes).map_err(|e| format!("{path}: {e}"))?;
    Ok((record, snapshot.hash.as_str().to_owned()))
}

/// The record that the beginning of an id names.
///
/// # Errors
/// [`FactsError::Malformed`], [`FactsError::Unknown`], [`FactsError::Ambiguous`].
pub async fn find_record_path(index: &Index, id: &str) -> Result<RecordPath, FactsError> {
    let shown = || id.chars().take(40).collect::<String>();
    match index.find_action(id).await? {
        ActionLookup::One(path) => Ok(path),
        ActionLookup::None => Err(FactsError::Unknown { id: shown() }),
        ActionLookup::Many(paths) => Err(FactsError::Ambiguous { id: shown(), count: paths.len() }),
    }
}

/// The action that the beginning of an id names.
///
/// # Errors
/// As [`find`].
pub async fn find_action_row(index: &Index, id: &str) -> Result<ActionRow, FactsError> {
    let path = find_record_path(index, id).await?;
    index.action_by_path(&path).await?.ok_or_else(|| FactsError::Unknown { id: id.to_owned() })
}

/// The records of these rows, in their order, with the reason where one cannot be read. Reads one file for each.
///
/// # Errors
/// None for a record that cannot be read.
pub async fn read_records(
    root: &VaultRoot,
    rows: Vec<ActionRow>,
) -> Result<Vec<(ActionRow, Result<AuditRecord, String>)>, FactsError> {
    let root = root.clone();
    let of = move |row: ActionRow| {
        let record = read_record(&root, &row.path).map(|(record, _)| record);
        (row, record)
    };
    let read = tokio::task::spawn_blocking(move || rows.into_iter().map(of).collect());
    read.await.map_err(|e| FactsError::Record { path: String::new(), reason: e.to_string() })
}

/// One action whole.
///
/// # Errors
/// As [`find`]; a record that cannot be read is no error.
pub async fn read_detail(root: &VaultRoot, index: &Index, id: &str) -> Result<ActionDetail, FactsError> {
    let path = find_record_path(index, id).await?;
    let row = index.action_by_path(&path).await?.ok_or_else(|| FactsError::Unknown { id: id.to_owned() })?;
    let (root, now, id) = (root.clone(), Utc::now(), row.id.clone());
    let read = tokio::task::spawn_blocking(move || build_detail(&root, &row, now));
    let mut detail = read.await.map_err(|e| FactsError::Record { path: path.to_string(), reason: e.to_string() })?;
    attach_withheld_signals(index, &mut detail.action, &id).await?;
    Ok(detail)
}

fn build_detail(root: &VaultRoot, row: &ActionRow, now: DateTime<Utc>) -> ActionDetail {
    let card = Action::from_row(row, now);
    let bare = |action| ActionDetail {
        action,
        clerk: None,
        workflow: None,
        source_contributions: BTreeMap::new(),
        prev_sha256: None,
        sha256: None,
        prior_frontmatter: serde_json::Map::new(),
        tracker: None,
    };
    let (record, sha256) = match read_record(root, &row.path) {
        Ok(read) => read,
        Err(problem) => return bare(Action { problem: Some(problem), ..card }),
    };
    let standing = steward_vault::tracker::outbox::read_delivery_status(root, &record);
    let draft = &record.draft;
    ActionDetail {
        clerk: draft.clerk.as_ref().map(|mark| ActionClerk {
            provider: mark.provider.clone(),
            model: mark.model.clone(),
            prompt_sha256: mark.prompt_sha256.clone(),
            prompt_tokens: mark.tokens.prompt_tokens,
            completion_tokens: mark.tokens.completion_tokens,
            fallback: mark.fallback,
            cached: mark.cached,
        }),
        workflow: Some(ActionWorkflowRun { id: draft.workflow.id.clone(), run_id: draft.workflow.run_id.clone() }),
        source_contributions: draft.source_contributions.clone(),
        prev_sha256: Some(record.prev_sha256.as_str().to_owned()),
        sha256: Some(sha256),
        prior_frontmatter: record.prior_frontmatter.clone(),
        tracker: match standing {
            Ok(standing) => standing.map(|standing| match &standing.came {
                Some((record, came)) => format!("{came}; see {record}"),
                None => standing.says.to_string(),
            }),
            Err(e) => Some(e.to_string()),
        },
        ..bare(card.with_record(&record))
    }
}
